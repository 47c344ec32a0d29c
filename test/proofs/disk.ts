// The proof for full disks: npm run prove:disk
// Ends with 0 when the health named the fault, all events were read once and in order, and nobody but the owner of the
// disk had to help.
import { setTimeout as pauseMs } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Verdict } from "../chaos/exactly-once/verdict.ts";
import { freePort } from "../servers/free-port.ts";
import { type KafkaServer, startKafka } from "../servers/kafka.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { mountSmallDisk } from "../servers/small-disk.ts";
import { until } from "../servers/until.ts";
import { watchHealth } from "./health-watch.ts";
import { conclude, describeVerdict, refuse, startLog } from "./progress.ts";
import { openServiceScene } from "./service-scene.ts";

const USAGE = `usage: npm run prove:disk -- [--under postgres|kafka|both] [--seconds 30] [--source flag|managed|wal] [--seed N]

The data of PostgreSQL or Kafka lies on a small disk, which is full for so many seconds while the application writes on.
A server that gives up is started again once there is room, as its owner would do. It needs root, to mount the disk.`;

const SIZE_MB = 260;
const ALONE_MS = 20_000;
/** Of PostgreSQL, so that its own log of changes fits; of Kafka, so that segments are made while the disk is full. */
const POSTGRES_FLAGS = ["-c", "max_wal_size=64MB", "-c", "min_wal_size=32MB"];
const KAFKA_PROPERTIES = {
  ...{ "auto.create.topics.enable": false, "log.segment.bytes": 1_048_576, "log.index.size.max.bytes": 65_536 },
  "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
};

const { values } = parseArgs({
  options: {
    under: { type: "string", default: "both" },
    seconds: { type: "string", default: "30" },
    source: { type: "string", default: "flag" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    help: { type: "boolean", default: false },
  },
});
const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
const source = (["flag", "managed", "wal"] as const).find((it) => it === values.source);
const under = (["postgres", "kafka"] as const).filter((it) => it === values.under || values.under === "both");
if (values.help || !(seconds > 0) || !Number.isInteger(seed) || source === undefined || under.length === 0) {
  refuse(USAGE);
}
if (process.getuid?.() !== 0) refuse("mounting a small disk needs root: run it with sudo");

const again = `npm run prove:disk -- --under ${values.under} --seconds ${seconds} --source ${source} --seed ${seed}`;
const log = startLog();
log(`again with: ${again}`);
let isProved = true;
for (const which of under) {
  const { verdict, wasNamed } = await prove(which);
  console.log(`\nfull disk under ${which}: ${describeVerdict(verdict)}`);
  console.log(`${wasNamed ? "the health named it" : "THE HEALTH SAID NOTHING although nothing moved"}\n`);
  isProved &&= wasNamed && verdict.violations.length === 0;
}
conclude(isProved, again);

async function prove(which: "postgres" | "kafka"): Promise<{ verdict: Verdict; wasNamed: boolean }> {
  await using started = new AsyncDisposableStack();
  const disk = started.use(await mountSmallDisk(SIZE_MB));
  const within = (server: typeof which) => (server === which ? { within: disk.folder } : {});
  const kafka = started.use(await startKafka({ ...within("kafka"), properties: KAFKA_PROPERTIES }));
  const place = started.use(await startPostgres({ version: 18, ...within("postgres"), flags: POSTGRES_FLAGS }));
  const scene = started.use(await openServiceScene({ place, kafka, seed, source: source! }));
  const service = scene.start({ PORT: String(await freePort()) });
  const writer = await scene.write();
  try {
    await scene.flow(500);
    disk.fill();
    log(`${which}: the disk is full, ${writer.diary.size} events written`);
    const wasNamed = await watchHealth({ scene, service, seconds, log });
    log(`${which}: ${(disk.freeBytes / 1_024).toFixed(0)} kB are free; giving the room back`);
    disk.free();
    await (which === "kafka" ? reviveKafka(kafka) : revivePostgres(place));
    await scene.flow(200);
    return { verdict: await scene.finish(writer), wasNamed };
  } finally {
    await writer.stop();
  }
}

/** It shuts itself down when its only disk fails. */
async function reviveKafka(kafka: KafkaServer): Promise<void> {
  await pauseMs(ALONE_MS / 4);
  if (kafka.isRunning) return log("kafka runs on by itself");
  log("kafka has ended; starting it again");
  await kafka.restart();
}

/** It restarts itself after a crash, unless that fails as well. */
async function revivePostgres(server: PostgresServer): Promise<void> {
  const answers = () =>
    server.query("select 1").then(
      () => true,
      () => false,
    );
  if (await until("PostgreSQL answers", answers, ALONE_MS).catch(() => false))
    return log("PostgreSQL runs on by itself");
  log("PostgreSQL has ended; starting it again");
  await server.restart();
}
