import type { TechnicalEvents } from "../../ports/technical-events.ts";
import type { StreamRecord } from "../lambda-events.ts";

/** What is told of an item that has no readable intent type: no relay can ever take it. */
const NO_TYPE = "(none)";
/** Beyond these it is one trouble, not many. */
const TYPES_MAX = 1_000;

/** Tells of intents that nobody has a relay for, once per type: they stay in the table, undelivered. */
export class Mismatches {
  readonly #events: TechnicalEvents;
  readonly #pipeline: string;
  readonly #known: ReadonlySet<string>;
  readonly #told = new Set<string>();

  /** `known` are all types that have a relay, also where another process runs it. */
  constructor(events: TechnicalEvents, pipeline: string, known: readonly string[]) {
    this.#events = events;
    this.#pipeline = pipeline;
    this.#known = new Set(known);
  }

  see({ dynamodb, eventName }: StreamRecord): void {
    if (eventName !== "INSERT") return;
    const { id, intent } = dynamodb?.NewImage ?? {};
    const intentType = textOf((intent?.M as { readonly type?: unknown } | undefined)?.type) ?? NO_TYPE;
    if (this.#known.has(intentType) || this.#told.has(intentType) || this.#told.size >= TYPES_MAX) return;
    this.#told.add(intentType);
    const recordId = textOf(id) ?? null;
    this.#events.emit("RelayMismatch", { pipeline: this.#pipeline, intentType, count: 1, recordId });
  }
}

function textOf(attribute: unknown): string | undefined {
  const text = (attribute as { readonly S?: unknown } | undefined)?.S;
  return typeof text === "string" ? text : undefined;
}
