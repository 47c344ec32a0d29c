import { defineIntentRelay } from "../../../src/index.ts"; // in your project: "outbox-relay"

interface SyncToPayroll {
  readonly entryId: string;
  readonly userId: string;
  readonly hours: number;
}

export default defineIntentRelay({
  type: "SyncToPayroll",
  target: { url: `${process.env.PAYROLL_URL}/hours` },
  translate: (intent) => {
    const { entryId, userId, hours } = intent.json<SyncToPayroll>();
    return { key: userId, body: { employee: userId, entry: entryId, hours } };
  },
});
