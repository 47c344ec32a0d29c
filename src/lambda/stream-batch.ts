import { RelayError } from "../core/errors.ts";
import type { StreamRecord } from "./lambda-events.ts";

/** The records of one intent in a batch. */
interface StreamedIntent {
  readonly id: string;
  /** More than one if the intent was deleted and written again. */
  readonly sequenceNumbers: readonly string[];
}

interface StreamBatch {
  readonly intents: ReadonlyMap<string, StreamedIntent>;
  /** Records of another relay's type, or without an intent's id. */
  readonly mismatches: readonly { readonly id: string | null; readonly type: string }[];
}

/** Sorts the records of a batch. Changes and removals are ignored: only new intents are relayed. */
export function readBatch(records: readonly StreamRecord[], type: string): StreamBatch {
  const intents = new Map<string, { id: string; sequenceNumbers: string[] }>();
  const mismatches: { id: string | null; type: string }[] = [];
  for (const record of records) {
    const change = record?.dynamodb;
    if (record?.eventName === "MODIFY" || record?.eventName === "REMOVE") continue;
    const id = textIn(change?.Keys?.id) ?? textIn(change?.NewImage?.id);
    const written = typeIn(change?.NewImage?.intent);
    if (id === null || (written !== null && written !== type)) {
      mismatches.push({ id, type: written ?? "" });
      continue;
    }
    const known = intents.get(id) ?? { id, sequenceNumbers: [] };
    // AWS treats an empty number as a failure of the whole batch, which is right for a record without one.
    known.sequenceNumbers.push(change?.SequenceNumber ?? "");
    intents.set(id, known);
  }
  return { intents, mismatches };
}

/**
 * Rejects records of a wrong source. The intents of another table are not in this outbox, so all records would be
 * skipped, and any response consumes them. Throws CONFIG_INVALID instead.
 */
export function checkOrigin(records: readonly StreamRecord[], table: string): void {
  for (const { eventSource, eventSourceARN } of records.map((record) => record ?? {})) {
    if (eventSource !== undefined && eventSource !== "aws:dynamodb") {
      throw invalid(`records of ${JSON.stringify(eventSource)}, but it reads only the stream of an outbox in DynamoDB`);
    }
    const streamed = /:table\/([^/]+)\/stream\//.exec(eventSourceARN ?? "")?.[1];
    // The table may be configured by its ARN, if another account owns it.
    if (streamed !== undefined && streamed !== table.replace(/^arn:.*:table\//, "")) {
      throw invalid(
        `the stream of the table ${streamed}, but its outbox is ${table}: correct the trigger or DYNAMODB_OUTBOX`,
      );
    }
  }
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `The relay received ${what}.`);
}

function typeIn(intent: unknown): string | null {
  const map = (intent as { readonly M?: Readonly<Record<string, unknown>> } | undefined)?.M;
  return textIn(map?.type);
}

function textIn(attribute: unknown): string | null {
  const text = (attribute as { readonly S?: unknown } | undefined)?.S;
  return typeof text === "string" && text !== "" ? text : null;
}
