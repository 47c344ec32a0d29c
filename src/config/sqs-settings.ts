import { setting } from "./setting.ts";
import { text } from "./value-types.ts";

/** Keys, profile and role are found by the SDK itself, in its own variables and files. */
export const sqsSettings = {
  SQS_ENDPOINT: setting(
    "destination.sqs.endpoint",
    text().optional(),
    "A server of one's own in the place of Amazon's, such as http://localhost:9324",
    { aliases: ["AWS_ENDPOINT_URL_SQS"] },
  ),
};
