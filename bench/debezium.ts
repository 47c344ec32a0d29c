import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../test/servers/free-port.ts";
import type { PostgresServer } from "../test/servers/postgres.ts";
import { createScratch } from "../test/servers/scratch.ts";
import { debeziumClassPath, debeziumJava } from "./debezium-files.ts";

export interface DebeziumRun {
  readonly postgres: PostgresServer;
  readonly brokers: string;
  readonly topic: string;
  /** Made before the rows were written, so that Debezium finds all of them in the log. */
  readonly slot: string;
  /** Large batches, short pauses, a small linger and a cheap collector, instead of the defaults. */
  readonly tuned: boolean;
  /** Columns with other names than those of the flag table. */
  readonly fields?: { readonly id: string; readonly key: string; readonly route: string };
}

const FLAG_FIELDS = { id: "id", key: "aggregate_id", route: "aggregate_type" };

export interface Debezium extends AsyncDisposable {
  /** Rejected when it ends by itself. */
  readonly ended: Promise<never>;
  peakRssMb(): number;
}

export const PUBLICATION = "bench_peers";
const TUNING = {
  "debezium.source.max.batch.size": 8_192,
  "debezium.source.max.queue.size": 32_768,
  "debezium.source.poll.interval.ms": 10,
  "debezium.source.offset.flush.interval.ms": 1_000,
  "debezium.sink.kafka.producer.linger.ms": 5,
  "debezium.sink.kafka.producer.batch.size": 131_072,
};
/** The collector that costs the least CPU, for a figure that is bound by CPU. */
const TUNED_FLAGS = ["-XX:+UseParallelGC"];

/** Before the rows are written: what is to be read from the log, and from where on. */
export async function createSlots(
  postgres: PostgresServer,
  slots: readonly string[],
  published = "all tables",
): Promise<void> {
  await postgres.query(`create publication ${PUBLICATION} for ${published} with (publish = 'insert')`);
  for (const slot of slots) await postgres.query("select pg_create_logical_replication_slot($1, 'pgoutput')", [slot]);
}

export async function dropSlots(postgres: PostgresServer, slots: readonly string[]): Promise<void> {
  for (const slot of slots) {
    // The server notices late that a reader was killed, and keeps its slot until then.
    await postgres.query(
      "select pg_terminate_backend(active_pid, 10000) from pg_replication_slots where slot_name = $1 and active",
      [slot],
    );
    await postgres.query("select pg_drop_replication_slot($1)", [slot]);
  }
  await postgres.query(`drop publication ${PUBLICATION}`);
}

/** Debezium Server with the outbox event router, from the log of `public.outbox` to the topic, until it is disposed. */
export async function startDebezium(run: DebeziumRun): Promise<Debezium> {
  const scratch = createScratch("debezium", "disk");
  mkdirSync(join(scratch.path, "config"));
  const properties = { ...settingsOf(run, scratch.path, await freePort()), ...(run.tuned ? TUNING : {}) };
  const lines = Object.entries(properties).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(join(scratch.path, "config/application.properties"), lines.join(""));
  const logFile = join(scratch.path, "debezium.log");
  const log = openSync(logFile, "a");
  const flags = ["-Xmx1g", ...(run.tuned ? TUNED_FLAGS : [])];
  const words = [...flags, `-Dmark=${scratch.mark}`, "-cp", await debeziumClassPath(), "io.debezium.server.Main"];
  const child = spawn(await debeziumJava(), words, { cwd: scratch.path, stdio: ["ignore", log, log] });
  closeSync(log);
  const exited = once(child, "exit");
  await once(child, "spawn");
  const ended = exited.then(() => {
    throw new Error(`Debezium ended:\n${readFileSync(logFile, "utf8").slice(-4_000)}`);
  });
  ended.catch(() => {}); // after the dispose nobody minds
  return {
    ended,
    peakRssMb: () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1_024,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await exited;
      await scratch.remove();
    },
  };
}

function settingsOf(run: DebeziumRun, folder: string, httpPort: number): Record<string, string | number> {
  const { fields = FLAG_FIELDS } = run;
  const text = "org.apache.kafka.common.serialization.StringSerializer";
  return {
    "quarkus.http.host": "127.0.0.1",
    "quarkus.http.port": httpPort,
    "quarkus.log.console.json": "false",
    "debezium.sink.type": "kafka",
    "debezium.sink.kafka.producer.bootstrap.servers": run.brokers,
    "debezium.sink.kafka.producer.key.serializer": text,
    "debezium.sink.kafka.producer.value.serializer": text,
    "debezium.sink.kafka.producer.acks": "all",
    "debezium.format.key": "simplestring",
    "debezium.format.value": "simplestring",
    "debezium.format.header": "json",
    "debezium.format.header.schemas.enable": "false",
    "debezium.source.connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "debezium.source.plugin.name": "pgoutput",
    "debezium.source.slot.name": run.slot,
    "debezium.source.publication.name": PUBLICATION,
    "debezium.source.publication.autocreate.mode": "disabled",
    "debezium.source.snapshot.mode": "no_data",
    "debezium.source.offset.storage.file.filename": join(folder, "offsets.dat"),
    "debezium.source.database.hostname": "127.0.0.1",
    "debezium.source.database.port": run.postgres.port,
    "debezium.source.database.user": "postgres",
    "debezium.source.database.password": "any",
    "debezium.source.database.dbname": "postgres",
    "debezium.source.topic.prefix": "bench",
    // Headers of its own that nobody asked for here and that would cost it time.
    "debezium.source.extended.headers.enabled": "false",
    "debezium.source.table.include.list": "public.outbox",
    "debezium.transforms": "outbox",
    "debezium.transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
    "debezium.transforms.outbox.table.field.event.id": fields.id,
    "debezium.transforms.outbox.table.field.event.key": fields.key,
    "debezium.transforms.outbox.table.field.event.payload": "payload",
    "debezium.transforms.outbox.table.fields.additional.placement":
      "correlation_id:header:correlation-id,created_at:header:created-at",
    "debezium.transforms.outbox.route.by.field": fields.route,
    "debezium.transforms.outbox.route.topic.replacement": run.topic,
  };
}
