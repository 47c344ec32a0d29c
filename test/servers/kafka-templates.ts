import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { cached } from "../../src/dev/embedded-postgres.ts";
import { freePort } from "./free-port.ts";
import { kafkaClassPath, kafkaVersion } from "./kafka-binaries.ts";
import { createScratch } from "./scratch.ts";

export type KafkaProperties = Readonly<Record<string, string | number | boolean>>;

const run = promisify(execFile);
const clusterId = "b3V0Ym94LXJlbGF5LXRlcw";

/** A formatted folder knows its node and its first users but no address, so that a copy of one made earlier will do. */
export async function copyDataFolder(
  nodeId: number,
  formatArguments: readonly string[],
  target: string,
): Promise<void> {
  const name = `kafka-data-${kafkaVersion}-${nodeId}-${shortHash(JSON.stringify(formatArguments))}`;
  const template = await cached(name, async (draft) => {
    await format(nodeId, draft, formatArguments);
  });
  await run("cp", ["-a", "--reflink=auto", template, target]);
}

async function format(nodeId: number, data: string, formatArguments: readonly string[]): Promise<string> {
  const file = `${data}.properties`;
  const [port, controllerPort] = [await freePort(), await freePort()];
  writeFileSync(
    file,
    propertiesText({
      "process.roles": "broker,controller",
      "node.id": nodeId,
      "controller.quorum.voters": `${nodeId}@127.0.0.1:${controllerPort}`,
      listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
      "controller.listener.names": "CONTROLLER",
      "log.dirs": data,
    }),
  );
  const tool = ["-cp", await kafkaClassPath(), "kafka.tools.StorageTool", "format", "-t", clusterId, "-c", file];
  await run("java", [...tool, ...formatArguments]);
  return file;
}

let archive: Promise<string> | undefined;

/** The loaded classes of a Kafka that has run once: a start from it takes little more than half of the time. */
export function classArchive(): Promise<string> {
  archive ??= makeClassArchive();
  return archive;
}

async function makeClassArchive(): Promise<string> {
  const classPath = await kafkaClassPath();
  const { stderr: javaVersion } = await run("java", ["-version"]);
  return await cached(`kafka-classes-${kafkaVersion}-${shortHash(javaVersion)}`, async (draft) => {
    console.log("preparing Kafka, once per machine: the next starts take half of the time");
    const scratch = createScratch("kafka", "memory");
    try {
      const file = await format(1, join(scratch.path, "data"), []);
      const child = spawn("java", [`-XX:ArchiveClassesAtExit=${draft}`, "-cp", classPath, "kafka.Kafka", file], {
        stdio: ["ignore", "ignore", "pipe"],
      });
      let log = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        log += text;
        // The archive is written on the way out.
        if (log.includes("Kafka Server started")) child.kill("SIGTERM");
      });
      await once(child, "close");
      if (!existsSync(draft)) throw new Error(`Kafka left no archive of its classes:\n${log.slice(-4_000)}`);
    } finally {
      await scratch.remove();
    }
  });
}

export function propertiesText(properties: KafkaProperties): string {
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}
