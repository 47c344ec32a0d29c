import { intentHandler } from "../../../src/lambda.ts"; // in your project: "outbox-relay/lambda"
import relay from "../relays/sync-to-payroll-relay.ts";

export const handler = intentHandler(relay);
