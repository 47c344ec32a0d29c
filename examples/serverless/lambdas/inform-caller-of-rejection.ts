import { intentHandler } from "../../../src/lambda.ts"; // in your project: "outbox-relay/lambda"
import relay from "../relays/inform-caller-of-rejection-relay.ts";

export const handler = intentHandler(relay);
