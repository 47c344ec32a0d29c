import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { RelayError } from "../../core/errors.ts";
import { displayTable, quoteIdentifier, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import { transaction } from "../../postgres/transaction.ts";
import { type EventSource, eventSources, type OperationTarget, operationReadSettings } from "../events/event-source.ts";
import { knownPipelines } from "../pipelines/pipelines.ts";
import { insertSmokeEvent } from "./smoke-row.ts";

interface SmokeOptions {
  readonly table: TableName;
  readonly type: string;
  readonly timeoutMs: number;
  readonly onWait?: (waitedMs: number) => void;
}

/** The outcome of the test event. */
export interface SmokeResult {
  readonly outcome: "delivered" | "dead" | "late";
  readonly id: string;
  /** From the commit of the event until it was seen delivered, or until the timeout. */
  readonly waitedMs: number;
  /** Why it is not delivered, if known. */
  readonly reason: string | null;
}

const LOOK_MS = 50;

/**
 * Writes one event into an outbox, as a service does, and waits until a running relay has delivered it. It is a real
 * event that consumers of the destination receive. It is not deleted afterwards.
 */
export async function smoke(target: OperationTarget, options: SmokeOptions): Promise<SmokeResult> {
  const { database, columns } = target;
  const { onWait, table, timeoutMs, type } = options;
  const source = await servedSource(target, table);
  // A key of its own, so that an earlier failed test event blocks no other.
  const key = `outbox-relay-smoke-${randomUUID()}`;
  const payload = JSON.stringify({ smoke: true, at: new Date().toISOString() });
  const settings = writeSettings(database, "writing the test event", displayTable(table));
  const id = await transaction(database.pool, settings, async (session) => {
    const [row] = await session.rows("select has_table_privilege($1, 'insert'), current_user::text", [
      quoteTable(table),
    ]);
    if (row?.[0] !== "t") throw mayNotWrite(table, row?.[1] ?? database.role);
    return await insertSmokeEvent(session, table, columns, { type, key, payload }, source.table.id);
  });
  const startedMs = performance.now();
  for (;;) {
    const { state, reason } = await look(target, source, id);
    const waitedMs = Math.round(performance.now() - startedMs);
    if (state !== "waiting") return { outcome: state, id, waitedMs, reason };
    if (waitedMs >= timeoutMs)
      return { outcome: "late", id, waitedMs, reason: reason ?? (await whyLate(target, source)) };
    onWait?.(waitedMs);
    await sleep(LOOK_MS);
  }
}

function mayNotWrite(table: TableName, role: string): RelayError {
  const grant = `grant insert on ${quoteTable(table)} to ${quoteIdentifier(role)};`;
  return new RelayError("GRANT_MISSING", `The role ${role} lacks the right to write a test event: ${grant}`);
}

/** Writes no event where no relay would ever deliver it. */
async function servedSource(target: OperationTarget, table: TableName): Promise<EventSource> {
  const name = displayTable(table);
  const known = (await knownPipelines(target.database)).filter(({ source }) => source === name);
  if (known.length === 0) {
    const all = [...new Set((await knownPipelines(target.database)).map(({ source }) => source))].join(", ");
    throw new RelayError("TABLE_MISSING", `No relay has ever read ${name}. Known sources: ${all || "none yet"}`);
  }
  if (known.every(({ pause }) => pause !== null)) {
    throw new RelayError("CONFIG_INVALID", `${name} is paused: run \`outbox-relay resume ${name}\` first.`);
  }
  const { broken, usable } = await eventSources(target, name);
  if (usable[0] !== undefined) return usable[0];
  throw new RelayError("TABLE_MISSING", `${name} cannot be read: ${broken[0]?.reason ?? "it is gone"}`);
}

interface Look {
  readonly state: "delivered" | "dead" | "waiting";
  readonly reason: string | null;
}

async function look({ database }: OperationTarget, source: EventSource, id: string): Promise<Look> {
  const { table } = source;
  const settings = operationReadSettings(database, "looking for the test event", source.name);
  const [row] = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select ${source.delivered}, ${source.givenUp ?? "false"}, h.state, h.reason from ${table.quotedName} t
       left join ${database.tables.holds} h on h.event_id = $1::text and h.pipeline = any($2::text[])
       where ${table.id} = $1::text::${table.idType}`,
      [id, source.pipelines],
    ),
  );
  // The relay only deletes delivered rows.
  if (row === undefined || row[0] === "t") return { state: "delivered", reason: null };
  const isDead = row[1] === "t" || row[2] === "dead";
  return { state: isDead ? "dead" : "waiting", reason: row[3] ?? null };
}

async function whyLate({ database }: OperationTarget, source: EventSource): Promise<string> {
  const { instances } = database.tables;
  const [row] = await transaction(database.pool, operationReadSettings(database, "listing the instances"), (session) =>
    session.rows(
      `select count(*) from ${instances} where alive_until > clock_timestamp() and pipelines && $1::text[]`,
      [source.pipelines],
    ),
  );
  return Number(row?.[0]) === 0
    ? "no live instance serves it"
    : "it is waiting; `outbox-relay status` shows the backlog";
}
