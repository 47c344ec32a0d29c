import { intentHandler } from "../../../src/lambda.ts"; // in your project: "outbox-relay/lambda"
import relay from "../relays/notify-user-of-approval-relay.ts";

export const handler = intentHandler(relay);
