import { randomUUID } from "node:crypto";
import type { EventLog, LoggedEvent } from "../../src/kurrentdb.ts"; // in your project: "outbox-relay/kurrentdb"

export const CONTEXT = "payment.payout";

export interface Payout {
  readonly id: string;
  readonly account: string;
  readonly amount: number;
}

const streamOf = (tenant: string, id: string) => `${CONTEXT}.request-${tenant}-${id}`;

/** The command: one append. That the event asks for a job stands in its metadata, and nothing else is written. */
export async function requestPayout(log: EventLog, tenant: string, payout: Payout): Promise<void> {
  const [eventId, commandId] = [randomUUID(), randomUUID()];
  const origin = { correlationId: commandId, causationId: commandId, source: "service://payment/payout" };
  const metadata = { ...origin, tenant, eventId, intent: "outbox" };
  await log.append(streamOf(tenant, payout.id), null, [
    { id: eventId, type: "PayoutCreated.v1", data: payout, metadata },
  ]);
}

/** What a request's stream says, which is all there is to know about it. */
export async function historyOf(log: EventLog, tenant: string, id: string): Promise<readonly LoggedEvent[]> {
  return await log.read(streamOf(tenant, id), 0n, 100);
}

export function payoutIn(events: readonly LoggedEvent[]): Payout {
  return events.find(({ type }) => type === "PayoutCreated.v1")?.data as Payout;
}
