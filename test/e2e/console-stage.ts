import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../servers/free-port.ts";
import type { PostgresServer } from "../servers/postgres.ts";
import { type ServiceProcess, startService } from "./service-process.ts";
import { openStage, type Stage } from "./stage.ts";

/** A receiver in this process that can change its mind. */
export interface Judge extends AsyncDisposable {
  readonly origin: string;
  /** In the order of arrival: what was taken. */
  readonly taken: { readonly key: string; readonly number: number }[];
  /** What it answers with when it refuses; null when it takes everything. */
  refusal: string | null;
  /** How long it thinks about each. */
  delayMs: number;
}

export async function startJudge(): Promise<Judge> {
  const judge = { taken: [] as { key: string; number: number }[], refusal: null as string | null, delayMs: 0 };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    // why: a receiver that takes its time is what is tested
    if (judge.delayMs > 0) await sleep(judge.delayMs);
    if (judge.refusal !== null) {
      response.writeHead(422).end(judge.refusal);
      return;
    }
    judge.taken.push({ key: keyOf(request.headers), number: numberIn(Buffer.concat(chunks).toString("utf8")) });
    response.writeHead(204).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return Object.assign(judge, {
    origin: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  });
}

const keyOf = (headers: IncomingHttpHeaders) => String(headers["partition-key"] ?? "");
const numberIn = (body: string) => Number(/"number" ?: ?(\d+)/.exec(body)?.[1] ?? 0);

const TABLE = "shop.outbox";

/** One service with a console, one table with texts for everything, one receiver. */
export interface ConsoleStage extends Stage {
  readonly env: Readonly<Record<string, string>>;
  readonly address: string;
  readonly service: ServiceProcess;
  readonly judge: Judge;
  /** As an administrator. */
  api(path: string, body?: object): Promise<{ readonly status: number; readonly json: unknown }>;
  /** How many dead letters wait for somebody. */
  dead(): Promise<number>;
}

export const TOKENS = {
  viewer: "token-of-vera-the-viewer-0001",
  operator: "token-of-olaf-the-operator-0002",
  admin: "token-of-ada-the-admin-0003-x",
} as const;

export const API_TOKENS = [
  `vera:viewer:${TOKENS.viewer}`,
  `olaf:operator+payloads:${TOKENS.operator}`,
  `ada:admin+payloads:${TOKENS.admin}`,
].join();

let stages = 0;

const schemaOf = (table: string) => table.split(".")[0] ?? "";

const tableSql = (table: string, role: string) => `create schema ${schemaOf(table)};
  create table ${table} (id text primary key, aggregate_id text, event_type text not null, payload text not null,
    headers jsonb, correlation_id text, created_at timestamptz not null default clock_timestamp(),
    position bigint generated always as identity, published boolean not null default false);
  create index on ${table} (position) where not published;
  grant usage on schema ${schemaOf(table)} to ${role};
  grant select, update on ${table} to ${role}`;

export async function consoleStage(
  server: PostgresServer,
  settings: Readonly<Record<string, string>> = {},
  tables: readonly string[] = [TABLE],
): Promise<ConsoleStage> {
  stages += 1;
  const stage = await openStage(server, { database: `console_${process.pid}_${stages}`, tables: [] });
  for (const table of tables) await stage.sql(tableSql(table, stage.role));
  const judge = await startJudge();
  const port = await freePort();
  const env = {
    DATABASE_URL: stage.relayUrl,
    ...(tables.length === 1 ? { OUTBOX_TABLE: tables[0] ?? TABLE } : { OUTBOX_SCHEMAS: tables.map(schemaOf).join() }),
    ...("OUTBOX_DESTINATIONS" in settings ? {} : { OUTBOX_DESTINATION: judge.origin }),
    POLL_INTERVAL_MS: "100",
    NO_COLOR: "1",
    PORT: String(port),
    ...("API_TOKENS_FILE" in settings ? {} : { API_TOKENS }),
    ...settings,
  };
  const service = startService(["run"], env);
  const address = `http://127.0.0.1:${port}`;
  return {
    ...stage,
    env,
    address,
    service,
    judge,
    dead: async () => (await stage.sql("select from outbox_relay.failed_events where resolved_at is null")).length,
    api: async (path, body) => {
      const headers = { authorization: `Bearer ${TOKENS.admin}`, "content-type": "application/json" };
      const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
      const answer = await fetch(`${address}/api/v1${path}`, init);
      const text = await answer.text();
      return { status: answer.status, json: text === "" ? null : (JSON.parse(text) as unknown) };
    },
    [Symbol.asyncDispose]: async () => {
      await service[Symbol.asyncDispose]();
      await judge[Symbol.asyncDispose]();
      await stage[Symbol.asyncDispose]();
    },
  };
}
