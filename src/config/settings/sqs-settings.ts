import { setting } from "./setting.ts";
import { text } from "./value-types.ts";

/** Settings of SQS destinations. The SDK finds keys, profile and role in its own variables and files. */
export const sqsSettings = {
  SQS_ENDPOINT: setting(
    "destination.sqs.endpoint",
    text().optional(),
    "Endpoint to use instead of Amazon's, such as http://localhost:9324",
    { aliases: ["AWS_ENDPOINT_URL_SQS"] },
  ),
};
