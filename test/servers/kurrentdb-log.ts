import { appendFileSync, closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import { type Proposed, type Recorded, recordOf } from "./kurrentdb-record.ts";

/** What a writer expects of the stream's last revision. */
export type Expected = bigint | "any" | "no stream" | "stream exists";

export type AppendResult =
  | { readonly kind: "appended"; readonly revision: number; readonly position: bigint }
  | { readonly kind: "wrong version"; readonly current: number | null }
  | { readonly kind: "deleted" };

type Listener = () => void;

interface Stream {
  readonly events: Recorded[];
  /** Revisions below it are hidden; beyond every revision once the stream was deleted. */
  truncatedBefore: number;
  countMax: number;
  tombstoned: boolean;
}

const TOMBSTONE = "$streamDeleted";
const METADATA = "$metadata";
/** What the server writes as the place before which a deleted stream is truncated. */
const DELETED = "9223372036854775807";

/** The whole log in memory, each event in the file before its append is acknowledged. */
export class KurrentDbLog {
  readonly events: Recorded[] = [];
  /** Per category the events of its streams, as the projection `$by_category` links them. */
  readonly categories = new Map<string, Recorded[]>();
  readonly #streams = new Map<string, Stream>();
  readonly #listeners = new Set<Listener>();
  readonly #file: number;

  constructor(path: string) {
    if (existsSync(path)) {
      // A line that a kill cut off was never acknowledged.
      for (const line of readFileSync(path, "utf8").split("\n").slice(0, -1)) this.#add(recordOf(JSON.parse(line)));
    }
    this.#file = openSync(path, "a");
    if (this.events.length === 0) appendFileSync(path, "");
  }

  close(): void {
    closeSync(this.#file);
  }

  /** Returns what ends it. */
  onAppend(listener: Listener): Listener {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stream(name: string): Stream | undefined {
    return this.#streams.get(name);
  }

  /** The first revision that a reader is shown. */
  firstVisible(name: string): number {
    const stream = this.#streams.get(name);
    if (stream === undefined || stream.tombstoned) return Number.MAX_SAFE_INTEGER;
    return Math.max(stream.truncatedBefore, stream.events.length - stream.countMax);
  }

  isVisible({ stream, revision }: Recorded): boolean {
    return revision >= this.firstVisible(stream);
  }

  /** As the server decides it: what was appended already at the place where it should be is not appended again. */
  append(name: string, expected: Expected, proposed: readonly Proposed[]): AppendResult {
    const stream = this.#streams.get(name);
    const events = stream?.events ?? [];
    if (stream?.tombstoned) return { kind: "deleted" };
    const isDeleted = stream !== undefined && events.length > 0 && stream.truncatedBefore >= events.length;
    const isGone = isDeleted && stream.truncatedBefore === Number.MAX_SAFE_INTEGER;
    const wrong = { kind: "wrong version", current: events.length === 0 ? null : events.length - 1 } as const;
    if (expected === "stream exists" && (events.length === 0 || isGone)) return wrong;
    const start = placeOf(expected, events, proposed);
    if (start > events.length) return wrong;
    if (start < events.length) {
      const known = proposed.filter(({ id }, index) => events[start + index]?.id === id).length;
      if (known === proposed.length) return this.#appended(events[start + known - 1]);
      if (known > 0 || !(expected === "no stream" && isGone)) return wrong;
    }
    if (isGone) this.#setMetadata(name, { $tb: events.length });
    return this.#appended(this.#write(name, proposed).at(-1) ?? events.at(-1));
  }

  delete(name: string, expected: Expected): AppendResult {
    return this.#end(name, expected, () => this.#setMetadata(name, {}, `{"$tb":${DELETED}}`));
  }

  tombstone(name: string, expected: Expected): AppendResult {
    return this.#end(name, expected, () => this.#write(name, [{ ...plain, type: TOMBSTONE }]));
  }

  /** Without any check, for tests. */
  seed(events: readonly (Proposed & { readonly stream: string })[]): void {
    const lines: string[] = [];
    for (const { stream, ...proposed } of events) {
      const record = this.#add(this.#record(stream, proposed));
      lines.push(record.line());
      record.frame();
    }
    writeSync(this.#file, lines.join(""));
    for (const listener of this.#listeners) listener();
  }

  #end(name: string, expected: Expected, end: () => void): AppendResult {
    const stream = this.#streams.get(name);
    if (stream?.tombstoned) return { kind: "deleted" };
    const last = stream === undefined ? -1 : stream.events.length - 1;
    if (typeof expected === "bigint" && Number(expected) !== last) {
      return { kind: "wrong version", current: last < 0 ? null : last };
    }
    end();
    return this.#appended(this.events.at(-1));
  }

  #appended(record: Recorded | undefined): AppendResult {
    if (record === undefined) return { kind: "wrong version", current: null };
    return { kind: "appended", revision: record.revision, position: record.position };
  }

  #setMetadata(name: string, metadata: object, text = JSON.stringify(metadata)): void {
    this.#write(`$$${name}`, [{ ...plain, type: METADATA, data: Buffer.from(text) }]);
  }

  #write(name: string, proposed: readonly Proposed[]): Recorded[] {
    const records = proposed.map((event) => this.#add(this.#record(name, event)));
    writeSync(this.#file, records.map((record) => record.line()).join(""));
    for (const listener of this.#listeners) listener();
    return records;
  }

  #record(stream: string, proposed: Proposed): Recorded {
    const revision = this.#streams.get(stream)?.events.length ?? 0;
    return recordOf({ ...proposed, stream, revision, createdMs: Date.now() });
  }

  #add(record: Recorded): Recorded {
    record.index = this.events.length;
    this.events.push(record);
    const stream = this.#open(record.stream);
    stream.events.push(record);
    if (record.type === TOMBSTONE) stream.tombstoned = true;
    else if (record.type === METADATA && record.stream.startsWith("$$")) this.#describe(record);
    const category = /^([^$-][^-]*)-/.exec(record.stream)?.[1];
    if (category !== undefined) openIn(this.categories, category, () => []).push(record);
    return record;
  }

  /** Metadata replace each other as a whole. */
  #describe({ stream, data }: Recorded): void {
    const { $tb = 0, $maxCount = Number.MAX_SAFE_INTEGER } = JSON.parse(data.toString("utf8")) as {
      readonly $tb?: number;
      readonly $maxCount?: number;
    };
    const described = this.#open(stream.slice(2));
    described.truncatedBefore = Math.min($tb, Number.MAX_SAFE_INTEGER);
    described.countMax = $maxCount;
  }

  #open(name: string): Stream {
    const countMax = Number.MAX_SAFE_INTEGER;
    return openIn(this.#streams, name, () => ({ events: [], truncatedBefore: 0, countMax, tombstoned: false }));
  }
}

const plain: Proposed = {
  id: "",
  type: "",
  contentType: "application/json",
  data: Buffer.from("{}"),
  metadata: Buffer.alloc(0),
};

/** The revision that the first of the events should have. */
function placeOf(expected: Expected, events: readonly Recorded[], proposed: readonly Proposed[]): number {
  if (expected === "no stream") return 0;
  if (typeof expected === "bigint") return Number(expected) + 1;
  const known = events.findIndex(({ id }) => id === proposed[0]?.id);
  return known < 0 ? events.length : known;
}

function openIn<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
