import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A job as it was added to a queue. */
export interface AddedJob {
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
  readonly opts: Readonly<Record<string, unknown>>;
}

export interface RedisHistory {
  /** Each time that a job was made, in order. */
  readonly added: readonly AddedJob[];
  /** The ids by the queue's own stream of events. */
  readonly announced: readonly string[];
  readonly bytes: Buffer;
}

/**
 * What was ever done to a queue, by the append-only file, in which Redis writes every change before it answers. It is
 * never rewritten here, and what stands there survives kill -9: no job can have been made that is not in it, whether
 * its hash still exists or not. After a failover it tells what Redis remembers.
 */
export function historyOf(folder: string, queue: string): RedisHistory {
  const files = join(folder, "appendonlydir");
  const names = readdirSync(files).filter((name) => name.endsWith(".incr.aof"));
  if (names.length !== 1) throw new Error(`the append-only file was rewritten: ${names.join(", ")}`);
  const bytes = readFileSync(join(files, names[0]!));
  const [prefix, events] = [`bull:${queue}:`, `bull:${queue}:events`];
  const added: AddedJob[] = [];
  const announced: string[] = [];
  for (const [command = "", key = "", ...rest] of commandsIn(bytes)) {
    if (/^hm?set$/i.test(command) && key.startsWith(prefix)) {
      const fields = Object.fromEntries(pairsOf(rest));
      const { data, name, opts } = fields;
      if (data === undefined || name === undefined) continue;
      added.push({ id: key.slice(prefix.length), name, data: JSON.parse(data), opts: JSON.parse(opts ?? "{}") });
    }
    if (!/^xadd$/i.test(command) || key !== events) continue;
    const at = rest.indexOf("event");
    const fields = Object.fromEntries(pairsOf(rest.slice(at)));
    if (fields.event === "added" && fields.jobId !== undefined) announced.push(fields.jobId);
  }
  return { added, announced, bytes };
}

function* commandsIn(bytes: Buffer): Iterable<string[]> {
  let at = 0;
  const line = () => {
    const end = bytes.indexOf("\r\n", at);
    const text = bytes.toString("latin1", at, end);
    at = end + 2;
    return text;
  };
  while (at < bytes.length) {
    const head = line();
    if (!head.startsWith("*")) throw new Error(`no command in the append-only file: ${head.slice(0, 80)}`);
    const words: string[] = [];
    for (let left = Number(head.slice(1)); left > 0; left -= 1) {
      const length = Number(line().slice(1));
      words.push(bytes.toString("utf8", at, at + length));
      at += length + 2;
    }
    yield words;
  }
}

function* pairsOf(words: readonly string[]): Iterable<[string, string]> {
  for (let at = 0; at + 1 < words.length; at += 2) yield [words[at]!, words[at + 1]!];
}
