/** Begins the server's message when one id stood for several rows: of those only one was sent, so none is marked. */
export const SHARED_ID = "outbox-relay: several rows have the id";
