import type { StreamRecord } from "../lambda/lambda-events.ts";
import type { TechnicalEvents } from "../ports/technical-events.ts";

/** The type that is reported for an item without a readable intent type: no relay can process it. */
const NO_TYPE = "(none)";
/** Bounds the memory. With more types the cause is a single mistake. */
const TYPES_MAX = 1_000;

/** Reports intents whose type has no relay, once per type: they stay in the table, undelivered. */
export class Mismatches {
  readonly #events: TechnicalEvents;
  readonly #pipeline: string;
  readonly #known: ReadonlySet<string>;
  readonly #reported = new Set<string>();

  /** `known`: all types that have a relay, in this or another process. */
  constructor(events: TechnicalEvents, pipeline: string, known: readonly string[]) {
    this.#events = events;
    this.#pipeline = pipeline;
    this.#known = new Set(known);
  }

  see({ dynamodb, eventName }: StreamRecord): void {
    if (eventName !== "INSERT") return;
    const { id, intent } = dynamodb?.NewImage ?? {};
    const intentType = textOf((intent?.M as { readonly type?: unknown } | undefined)?.type) ?? NO_TYPE;
    if (this.#known.has(intentType) || this.#reported.has(intentType) || this.#reported.size >= TYPES_MAX) return;
    this.#reported.add(intentType);
    const recordId = textOf(id) ?? null;
    this.#events.emit("RelayMismatch", { pipeline: this.#pipeline, intentType, count: 1, recordId });
  }
}

function textOf(attribute: unknown): string | undefined {
  const text = (attribute as { readonly S?: unknown } | undefined)?.S;
  return typeof text === "string" ? text : undefined;
}
