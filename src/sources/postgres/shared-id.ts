/** The start of the server's message when several rows have one id. Only one of them was sent, so none is marked. */
export const SHARED_ID = "outbox-relay: several rows have the id";
