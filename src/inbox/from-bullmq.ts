import { type InboxMessage, inboxMessage } from "./inbox-message.ts";

/** A job that the relay added, by its shape; `BullmqEvent` of `outbox-relay/bullmq` is its data. */
export interface BullmqJob {
  readonly data: {
    readonly id: string;
    readonly type: string;
    readonly key: string | null;
    readonly headers: Readonly<Record<string, string>>;
    readonly payload: string;
    readonly encoding: "utf8" | "base64";
  };
}

/** A job of BullMQ as a message for `consume`. A processor that throws lets BullMQ try the job again. */
export function fromBullmq({ data }: BullmqJob): InboxMessage {
  const { encoding, headers = {}, id, key, payload, type } = Object(data) as BullmqJob["data"];
  return inboxMessage("BullMQ", { id, type, key, headers, payload: Buffer.from(payload ?? "", encoding) });
}
