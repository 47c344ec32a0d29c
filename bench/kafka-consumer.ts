import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const STALLED_MS = 120_000;

/** When how many records had reached the consumer, in milliseconds of the system's clock. */
export interface Arrivals {
  /** The moment at which the consumer had this share of all, 1 for the last one. */
  reachedMs(share: number): number;
}

/**
 * kcat, which knows nothing of the relay and of its client, reads committed records until it has as many as wanted. One
 * byte per record costs next to nothing; it comes in chunks of 4,096 and at the end.
 */
export function countArrivals(
  brokers: string,
  topic: string,
  wanted: number,
): Disposable & { readonly all: Promise<Arrivals> } {
  const kcat = startKcat(brokers, topic, ["-c", String(wanted), "-f", "."]);
  const marks: { readonly count: number; readonly atMs: number }[] = [];
  let count = 0;
  let stalled = setTimeout(() => kcat.kill("SIGKILL"), STALLED_MS);
  kcat.stdout?.on("data", (chunk: Buffer) => {
    count += chunk.length;
    marks.push({ count, atMs: nowMs() });
    clearTimeout(stalled);
    stalled = setTimeout(() => kcat.kill("SIGKILL"), STALLED_MS);
  });
  const all = once(kcat, "close").then((): Arrivals => {
    clearTimeout(stalled);
    if (count < wanted) throw new Error(`${count} of ${wanted} events reached the consumer: no figure can be given`);
    return { reachedMs: (share) => marks.find((mark) => mark.count >= share * wanted)!.atMs };
  });
  all.catch(() => {}); // whoever gave up waiting is not told again
  return { all, [Symbol.dispose]: () => void kcat.kill("SIGKILL") };
}

/** What a second look finds in a topic. */
export interface TopicContent {
  readonly records: number;
  /** Different ids among them. */
  readonly events: number;
  /** Offsets passed over between records: the ends of transactions take one each, and nothing else does. */
  readonly transactionEnds: number;
  /** Records that are older than the one of their key before them. */
  readonly outOfOrder: number;
}

/**
 * The order of a key is checked by this header, because nothing else of the order of writing is in both the relay's and
 * Debezium's records. It shows an exchange of two events as far as their times differ: rows of one time are not told
 * apart. Each ends the fraction of a second where it likes, so the texts are compared without the Z behind it: as plain
 * digits the shorter one sorts first, as it should.
 */
const CREATED_AT = /(?:,| )created-at=([^,]*)/;

/** Reads the whole topic; `idHeader` holds the event's id. */
export async function inspectTopic(brokers: string, topic: string, idHeader: string): Promise<TopicContent> {
  const kcat = startKcat(brokers, topic, ["-e", "-f", "%p %o %k %h\n"]);
  const id = new RegExp(`(?:,| )${idHeader}=([^,]*)`);
  const ids = new Set<string>();
  const lastOffsets = new Map<string, number>();
  let records = 0;
  let transactionEnds = 0;
  let outOfOrder = 0;
  const lastOfKey = new Map<string, string>();
  for await (const line of createInterface({ input: kcat.stdout! })) {
    const [partition = "", offset = "", key = ""] = line.split(" ", 3);
    transactionEnds += Number(offset) - (lastOffsets.get(partition) ?? -1) - 1;
    lastOffsets.set(partition, Number(offset));
    ids.add(id.exec(line)?.[1] ?? "none");
    records += 1;
    const createdAt = (CREATED_AT.exec(line)?.[1] ?? "").replace("Z", "");
    if (createdAt < (lastOfKey.get(key) ?? "")) outOfOrder += 1;
    lastOfKey.set(key, createdAt);
  }
  return { records, events: ids.size, transactionEnds, outOfOrder };
}

/** A count at the consumer is a measurement only when every event is there, none twice and none before its time. */
export function requireEachOnce(content: TopicContent, rows: number): void {
  if (content.outOfOrder > 0) throw new Error(`${content.outOfOrder} events are out of order: no figure can be given`);
  if (content.records === rows && content.events === rows) return;
  throw new Error(
    `of ${rows} events there are ${content.events} in ${content.records} records: no figure can be given`,
  );
}

/** Every record's value and the moment it arrived, line by line without a buffer in between, until the dispose. */
export function watchArrivals(
  brokers: string,
  topic: string,
  onValue: (value: string, atMs: number) => void,
): AsyncDisposable {
  const kcat = startKcat(brokers, topic, ["-u", "-f", "%s\n"]);
  createInterface({ input: kcat.stdout! }).on("line", (line) => onValue(line, nowMs()));
  return {
    async [Symbol.asyncDispose]() {
      const closed = once(kcat, "close");
      kcat.kill("SIGKILL");
      await closed;
    },
  };
}

/** The same clock in all processes of the machine, with parts of a millisecond. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

function startKcat(brokers: string, topic: string, more: readonly string[]): ChildProcess {
  const settings = ["-X", "isolation.level=read_committed", "-X", "fetch.wait.max.ms=100"];
  return spawn("kcat", ["-C", "-q", "-b", brokers, "-t", topic, "-o", "beginning", ...settings, ...more], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}
