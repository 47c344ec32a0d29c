import { defineIntentRelay } from "../../../src/index.ts"; // in your project: "outbox-relay"

interface InformCallerOfRejection {
  readonly userId: string;
  readonly entryId: string;
  readonly why: string;
}

export default defineIntentRelay({
  type: "InformCallerOfRejection",
  target: { url: `sqs://${process.env.CALLERS_QUEUE}` },
  translate: (intent) => {
    const { userId, entryId, why } = intent.json<InformCallerOfRejection>();
    return { key: userId, body: { caller: userId, message: `${entryId} was rejected: ${why}` } };
  },
});
