import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { kafkaClassPath } from "../../servers/kafka-binaries.ts";
import type { Place } from "./verdict.ts";

const run = promisify(execFile);
const outputBytesMax = 2 ** 30;

/** The transactions that records belong to, as a broker's own log tells them: producer id, epoch and sequence. */
export async function transactionsAt(brokerFolder: string, places: readonly Place[]): Promise<string[]> {
  const lines: string[] = [];
  for (const [name, there] of Map.groupBy(places, ({ topic, partition }) => `${topic}-${partition}`)) {
    const batches = await batchesOf(join(brokerFolder, "data", name));
    for (const { topic, partition, offset } of there) {
      const batch = batches.find((line) => holds(line, offset));
      lines.push(`${topic}/${partition}@${offset}: ${batch === undefined ? "not in the log" : pick(batch)}`);
    }
  }
  return lines;
}

async function batchesOf(folder: string): Promise<string[]> {
  const files = readdirSync(folder).filter((name) => name.endsWith(".log"));
  const tool = ["-cp", await kafkaClassPath(), "kafka.tools.DumpLogSegments", "--files"];
  const { stdout } = await run("java", [...tool, files.map((name) => join(folder, name)).join(",")], {
    maxBuffer: outputBytesMax,
  });
  return stdout.split("\n");
}

function holds(line: string, offset: number): boolean {
  const [, first, last] = /baseOffset: (\d+) lastOffset: (\d+)/.exec(line) ?? [];
  return first !== undefined && Number(first) <= offset && offset <= Number(last);
}

function pick(line: string): string {
  const fields = ["baseOffset", "producerId", "producerEpoch", "baseSequence", "isTransactional", "CreateTime"];
  return fields.map((field) => new RegExp(`\\b${field}: \\S+`).exec(line)?.[0] ?? "").join(" ");
}
