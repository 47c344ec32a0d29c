import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { createScratch } from "./scratch.ts";
import { until } from "./until.ts";

/** A record as kcat saw it: nothing in here has passed through the client that the relay uses. */
export type KafkaRecord = {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  /** What the producer said. */
  readonly timestampMs: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [name: string, value: Buffer | null])[];
};

export type ReadOptions = {
  /** Default: all. */
  readonly partition?: number;
  /** Default: read_committed. */
  readonly isolation?: "read_committed" | "read_uncommitted";
  /** More settings of librdkafka, for instance of a listener that asks for credentials. */
  readonly settings?: Readonly<Record<string, string>>;
};

/** A reader that goes on and gathers what arrives. It lives through the death and return of brokers. */
export type TopicFollower = AsyncDisposable & {
  readonly records: readonly KafkaRecord[];
  /** Waits for so many records, or until the predicate likes them, and returns them all. */
  waitFor(
    wanted: number | ((records: readonly KafkaRecord[]) => boolean),
    timeoutMs?: number,
  ): Promise<readonly KafkaRecord[]>;
};

const run = promisify(execFile);
const outputBytesMax = 2 ** 30;

/** Everything that is in the topic now, partition by partition in the order of the offsets. */
export async function readTopic(brokers: string, topic: string, options: ReadOptions = {}): Promise<KafkaRecord[]> {
  const { stdout } = await run("kcat", [...kcatArguments(brokers, topic, options), "-J", "-e"], {
    encoding: "latin1",
    maxBuffer: outputBytesMax,
  });
  const records = stdout.split("\n").filter(Boolean).map(parseRecord);
  return records.sort((a, b) => a.partition - b.partition || a.offset - b.offset);
}

export async function readTopics(
  brokers: string,
  topics: readonly string[],
  options: ReadOptions = {},
): Promise<KafkaRecord[]> {
  return (await Promise.all(topics.map((topic) => readTopic(brokers, topic, options)))).flat();
}

/** From the beginning of the topic and on until the dispose. */
export async function followTopic(brokers: string, topic: string, options: ReadOptions = {}): Promise<TopicFollower> {
  const records: KafkaRecord[] = [];
  const kcat = await followLines(brokers, topic, ["-J"], (line) => records.push(parseRecord(line)), options);
  return {
    records,
    async waitFor(wanted, timeoutMs) {
      const enough = typeof wanted === "number" ? () => records.length >= wanted : wanted;
      const condition = () => {
        kcat.check();
        return enough(records);
      };
      await until(`records of ${topic}`, condition, timeoutMs).catch((error: Error) => {
        throw new Error(`${error.message}; there are ${records.length}`, { cause: error });
      });
      return records;
    },
    [Symbol.asyncDispose]: () => kcat[Symbol.asyncDispose](),
  };
}

/** The bare form: kcat prints as told by `output` (`-J`, or `-f` with a format), one line per record, unbuffered. */
export async function followLines(
  brokers: string,
  topic: string,
  output: readonly string[],
  onLine: (line: string) => void,
  options: ReadOptions = {},
): Promise<AsyncDisposable & { check(): void }> {
  // The mark on the command line lets nothing outlive the test process; the folder itself stays empty.
  const scratch = createScratch("kcat", "memory");
  const settings = { ...options.settings, "client.id": scratch.mark };
  // -E: a broker that is down for a while is no reason to end.
  const child = spawn("kcat", [...kcatArguments(brokers, topic, { ...options, settings }), ...output, "-u", "-E"], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  await once(child, "spawn");
  let rest = "";
  child.stdout.setEncoding("latin1").on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line);
  });
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    complaints = (complaints + chunk).slice(-2_000);
  });
  return {
    check() {
      if (hasExited(child)) throw new Error(`the reader of ${topic} has ended: ${complaints}`);
    },
    async [Symbol.asyncDispose]() {
      if (!hasExited(child)) {
        const closed = once(child, "close");
        child.kill("SIGKILL");
        await closed;
      }
      await scratch.remove();
    },
  };
}

/** The text of a header, or undefined. Of several with one name, the last, as consumers take it. */
export function headerText(record: KafkaRecord, name: string): string | undefined {
  return record.headers.findLast(([key]) => key === name)?.[1]?.toString("utf8");
}

function kcatArguments(brokers: string, topic: string, options: ReadOptions): string[] {
  const settings = {
    "isolation.level": options.isolation ?? "read_committed",
    // The end of a partition is told only after a fetch that found nothing.
    "fetch.wait.max.ms": "10",
    "reconnect.backoff.max.ms": "500",
    "topic.metadata.refresh.interval.ms": "1000",
    ...options.settings,
  };
  return [
    ...["-C", "-q", "-b", brokers, "-t", topic, "-o", "beginning"],
    ...(options.partition === undefined ? [] : ["-p", String(options.partition)]),
    ...Object.entries(settings).flatMap(([name, value]) => ["-X", `${name}=${value}`]),
  ];
}

type KcatRecord = {
  topic: string;
  partition: number;
  offset: number;
  ts: number;
  key: string | null;
  payload: string | null;
  headers?: (string | null)[];
};

/**
 * kcat escapes control characters and quotes and passes all other bytes on as they are, valid UTF-8 or not. Read as
 * Latin-1, each character is one byte of the original.
 */
function parseRecord(line: string): KafkaRecord {
  const { topic, partition, offset, ts, key, payload, headers = [] } = JSON.parse(line) as KcatRecord;
  const pairs: [string, Buffer | null][] = [];
  for (let index = 0; index < headers.length; index += 2) {
    pairs.push([bytes(headers[index] ?? "")?.toString("utf8") ?? "", bytes(headers[index + 1] ?? null)]);
  }
  return { topic, partition, offset, timestampMs: ts, key: bytes(key), value: bytes(payload), headers: pairs };
}

function bytes(text: string | null): Buffer | null {
  return text === null ? null : Buffer.from(text, "latin1");
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
