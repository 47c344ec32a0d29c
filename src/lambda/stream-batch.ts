import { RelayError } from "../core/errors.ts";
import type { StreamRecord } from "./lambda-events.ts";

/** What a batch of the stream says of one intent. */
interface StreamedIntent {
  readonly id: string;
  /** Of its records: more than one when it was put there again. */
  readonly sequenceNumbers: readonly string[];
}

interface StreamBatch {
  readonly intents: ReadonlyMap<string, StreamedIntent>;
  /** Records of another relay, or none that an outbox makes. */
  readonly strangers: readonly { readonly id: string | null; readonly type: string }[];
}

/** Sorts a batch. What was changed or removed is nobody's business here: only new intents are relayed. */
export function readBatch(records: readonly StreamRecord[], type: string): StreamBatch {
  const intents = new Map<string, { id: string; sequenceNumbers: string[] }>();
  const strangers: { id: string | null; type: string }[] = [];
  for (const record of records) {
    const change = record?.dynamodb;
    if (record?.eventName === "MODIFY" || record?.eventName === "REMOVE") continue;
    const id = textIn(change?.Keys?.id) ?? textIn(change?.NewImage?.id);
    const written = typeIn(change?.NewImage?.intent);
    if (id === null || (written !== null && written !== type)) {
      strangers.push({ id, type: written ?? "" });
      continue;
    }
    const known = intents.get(id) ?? { id, sequenceNumbers: [] };
    // AWS takes an empty one for a failure of the whole batch, which is right for a record without a number.
    known.sequenceNumbers.push(change?.SequenceNumber ?? "");
    intents.set(id, known);
  }
  return { intents, strangers };
}

/**
 * Whoever reads the wrong table finds none of the intents there and would pass over all of them; and what is no stream
 * at all is consumed by an answer. Throws CONFIG_INVALID instead.
 */
export function checkOrigin(records: readonly StreamRecord[], table: string): void {
  for (const { eventSource, eventSourceARN } of records.map((record) => record ?? {})) {
    if (eventSource !== undefined && eventSource !== "aws:dynamodb") {
      throw invalid(`records of ${JSON.stringify(eventSource)}: only the stream of an outbox in DynamoDB is relayed`);
    }
    const streamed = /:table\/([^/]+)\/stream\//.exec(eventSourceARN ?? "")?.[1];
    // A table of another account is named by its ARN.
    if (streamed !== undefined && streamed !== table.replace(/^arn:.*:table\//, "")) {
      throw invalid(`the stream of the table ${streamed}, and its outbox is ${table}: correct one of them`);
    }
  }
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `The relay was given ${what}.`);
}

function typeIn(intent: unknown): string | null {
  const map = (intent as { readonly M?: Readonly<Record<string, unknown>> } | undefined)?.M;
  return textIn(map?.type);
}

function textIn(attribute: unknown): string | null {
  const text = (attribute as { readonly S?: unknown } | undefined)?.S;
  return typeof text === "string" && text !== "" ? text : null;
}
