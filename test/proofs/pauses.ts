// The proof for servers that stand still or restart: npm run prove:pauses -- --seconds 180
// PostgreSQL is ended at once in each phase of a relay's work, and Kafka stands still for minutes.
// Ends with 0 when the health named the pause, and all events were read once and in order.
import { parseArgs } from "node:util";
import pg from "pg";
import type { Stage } from "../e2e/stage.ts";
import { freePort } from "../servers/free-port.ts";
import { type KafkaServer, startKafka } from "../servers/kafka.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { watchHealth } from "./health-watch.ts";
import { conclude, describeVerdict, refuse, startLog } from "./progress.ts";
import { openServiceScene, type ServiceScene } from "./service-scene.ts";

const USAGE = `usage: npm run prove:pauses -- [--seconds 180] [--rounds 1] [--seed N]

PostgreSQL is ended without a checkpoint while a relay starts, claims, publishes, settles and stops: a lock keeps the
relay in the phase until then. So many rounds of it; then Kafka is paused by SIGSTOP for so many seconds.`;

const PHASES = ["start", "claim", "publish", "settle", "stop"] as const;
type Phase = (typeof PHASES)[number];

/** What another session holds so that a relay waits in the middle of the phase. */
const LOCKS: Readonly<Record<Exclude<Phase, "publish">, string>> = {
  start: "lock table outbox_relay.pipelines in access exclusive mode",
  claim: "lock table orders.outbox, billing.outbox_events in access exclusive mode",
  settle: "lock table outbox_relay.lanes in access exclusive mode",
  stop: "lock table outbox_relay.lanes in access exclusive mode",
};

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "180" },
    rounds: { type: "string", default: "1" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    help: { type: "boolean", default: false },
  },
});
const [seconds, rounds, seed] = [Number(values.seconds), Number(values.rounds), Number(values.seed)];
if (values.help || !(seconds > 0) || !(rounds >= 0) || !Number.isInteger(seed)) refuse(USAGE);

const again = `npm run prove:pauses -- --seconds ${seconds} --rounds ${rounds} --seed ${seed}`;
const log = startLog();
log(`again with: ${again}`);
conclude(await prove(), again);

interface Cast {
  readonly kafka: KafkaServer;
  readonly server: PostgresServer;
  readonly scene: ServiceScene;
}

async function prove(): Promise<boolean> {
  await using started = new AsyncDisposableStack();
  const kafka = started.use(await startKafka({ properties: { "auto.create.topics.enable": false } }));
  const server = started.use(await startPostgres({ version: 18 }));
  const env = { BATCH_SIZE: "50", POLL_INTERVAL_MS: "100", INSTANCE_LEASE: "5s" };
  const scene = started.use(await openServiceScene({ place: server, kafka, seed, env }));
  const writer = await scene.write();
  try {
    await startRelay(scene);
    await scene.flow(100);
    for (let round = 1; round <= rounds; round += 1) {
      for (const phase of PHASES) {
        await restartDuring(phase, { kafka, server, scene });
        await scene.flow(100);
        log(`round ${round}, ${phase}: it flows again, ${writer.diary.size} events written`);
      }
    }
    log(`pause Kafka for ${seconds} s`);
    await kafka.pause();
    const wasNamed = await watchHealth({ scene, service: scene.services.at(-1)!, seconds, log });
    kafka.resume();
    await scene.flow(100);
    const verdict = await scene.finish(writer);
    console.log(
      `\n${describeVerdict(verdict)}\n${wasNamed ? "the health named the pause" : "THE HEALTH SAID NOTHING"}`,
    );
    return wasNamed && verdict.violations.length === 0;
  } finally {
    kafka.resume();
    await writer.stop();
  }
}

async function startRelay(scene: ServiceScene): Promise<void> {
  scene.start({ PORT: String(await freePort()) });
}

/** Ends PostgreSQL when a relay is seen in the phase, and starts it again. */
async function restartDuring(phase: Phase, { kafka, server, scene }: Cast): Promise<void> {
  const relay = scene.services.at(-1)!;
  if (phase === "publish") {
    // Whatever is sent now gets no answer: what is taken stays on the wire.
    await kafka.pause();
    const before = await scene.pending();
    await until("more events wait", async () => (await scene.pending()) > before + 100);
    await restart(server, phase);
    kafka.resume();
    return;
  }
  if (phase === "start") {
    relay.kill("SIGKILL");
    await relay.ended;
  }
  await using lock = await takeLock(scene.stage, LOCKS[phase]);
  if (phase === "start") await startRelay(scene);
  if (phase === "stop") relay.kill("SIGTERM");
  await until(`a relay waits in the phase ${phase}`, () => lock.keepsWaiting(), 60_000);
  await restart(server, phase);
  if (phase === "stop") {
    const { code } = await relay.ended;
    log(`stop: the relay ended with ${code}`);
    await startRelay(scene);
  }
}

async function restart(server: PostgresServer, phase: Phase): Promise<void> {
  log(`${phase}: end PostgreSQL at once`);
  await server.stop("immediate");
  await server.restart();
}

/** The lock ends with the server. */
async function takeLock({ url }: Stage, sql: string) {
  const open = async () => {
    const client = new pg.Client({ connectionString: url, application_name: "lock" });
    client.on("error", () => {}); // the server is ended under it on purpose
    await client.connect();
    return client;
  };
  const [holder, watcher] = [await open(), await open()];
  await holder.query(`begin; ${sql}`);
  return {
    async keepsWaiting() {
      const { rows } = await watcher.query<{ count: number }>(
        "select count(*)::int from pg_stat_activity where usename = 'relay_shop' and wait_event_type = 'Lock'",
      );
      return rows[0]!.count > 0;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([holder.end(), watcher.end()].map((end) => end.catch(() => {})));
    },
  };
}
