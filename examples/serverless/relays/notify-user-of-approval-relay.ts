import { defineIntentRelay } from "../../../src/index.ts"; // in your project: "outbox-relay"

interface NotifyUserOfApproval {
  readonly userId: string;
  readonly entryId: string;
}

export default defineIntentRelay({
  type: "NotifyUserOfApproval",
  target: { url: `kafka://${process.env.NOTIFICATIONS_BROKERS}`, topic: "user-notifications" },
  translate: (intent) => {
    const { userId, entryId } = intent.json<NotifyUserOfApproval>();
    return { key: userId, body: { user_id: userId, text: `Your entry ${entryId} was approved` } };
  },
});
