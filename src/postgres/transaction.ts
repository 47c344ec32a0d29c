import type { Pool } from "pg";
import { RelayError } from "../core/errors.ts";
import { type ErrorContext, translateError } from "./errors.ts";
import { HostPool } from "./hosts.ts";
import { ClientSession, type Row, type Session } from "./session.ts";
import { fixSettingsSql } from "./session-settings.ts";

/** A read waits only for DDL and maintenance. These can take long, so they are reported soon. */
const READ_LOCK_MS = 2_000;

/** How a transaction runs. */
export interface TransactionSettings {
  readonly context: ErrorContext;
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs?: number;
  readonly idleTimeoutMs?: number;
  readonly isolation?: "read committed" | "repeatable read";
  readonly readOnly?: boolean;
  /**
   * `local` where losing the write in a failover is harmless but waiting for a standby is not, as for the heartbeat.
   */
  readonly synchronousCommit?: "on" | "local";
  /** Settings for the planner or memory, for instance `{ enable_seqscan: "off" }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** An open transaction that its owner ends. */
export interface OpenTransaction {
  readonly session: Session;
  /** The rows of the statement sent with the BEGIN. */
  readonly firstRows: readonly Row[];
  /** Rolls back. Safe to repeat; never throws. */
  end(): Promise<void>;
}

/**
 * Runs `work` in one transaction: all or nothing. It uses only `set local`, so nothing outlives the transaction and it
 * works behind a pooler that changes the server connection between transactions.
 */
export async function transaction<T>(
  pool: Pool,
  settings: TransactionSettings,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const held = await acquire(pool, settings);
  let committing = false;
  try {
    await held.session.script(beginScript(settings));
    const result = await work(held.session);
    committing = true;
    if ((await held.session.command("commit")) !== "COMMIT") {
      throw new RelayError("DATABASE_REFUSED", `${settings.context.doing} was rolled back by the server`);
    }
    held.release();
    return result;
  } catch (error) {
    await held.abandon();
    throw translateError(error, { ...settings.context, committing });
  }
}

/**
 * Runs one statement in one transaction in ONE round trip. The statement itself decides whether it changes anything; it
 * cannot be rolled back after a look at its rows. A server error, whatever part it concerns, means that everything was
 * rolled back; only a lost connection leaves the outcome open.
 */
export async function statement(pool: Pool, settings: TransactionSettings, text: string): Promise<readonly Row[]> {
  return (await statements(pool, settings, [text]))[0] ?? [];
}

/** The same for several statements, none of which depends on the rows of another. Returns the rows of each. */
export async function statements(
  pool: Pool,
  settings: TransactionSettings,
  texts: readonly string[],
): Promise<readonly (readonly Row[])[]> {
  const held = await acquire(pool, settings);
  try {
    const results = await held.session.script(`${[beginScript(settings), ...texts].join(";")};commit`);
    held.release();
    return results.slice(-1 - texts.length, -1);
  } catch (error) {
    await held.abandon();
    throw translateError(error, settings.context);
  }
}

/** Runs one read-only statement in one round trip, without locks worth waiting for: for frequent polls. */
export async function glance(
  pool: Pool,
  context: ErrorContext,
  timeoutMs: number,
  text: string,
): Promise<readonly Row[]> {
  return await statement(pool, { context, statementTimeoutMs: timeoutMs, readOnly: true }, text);
}

/** Begins a transaction and runs its first statement, in one round trip. */
export async function openTransaction(
  pool: Pool,
  settings: TransactionSettings,
  first: string,
): Promise<OpenTransaction> {
  const held = await acquire(pool, settings);
  try {
    const results = await held.session.script(`${beginScript(settings)};${first}`);
    return { session: held.session, firstRows: results.at(-1) ?? [], end: held.abandon };
  } catch (error) {
    await held.abandon();
    throw translateError(error, settings.context);
  }
}

interface Held {
  readonly session: ClientSession;
  release(): void;
  abandon(): Promise<void>;
}

async function acquire(pool: Pool, settings: TransactionSettings): Promise<Held> {
  try {
    const client = await pool.connect();
    const session = new ClientSession(client, settings.statementTimeoutMs);
    let held = true;
    const release = (destroy: boolean) => {
      if (held) client.release(destroy);
      held = false;
      // A server that is gone, or accepts no writes any more, may have a successor.
      if (destroy && pool instanceof HostPool) pool.lookAgain();
    };
    return {
      session,
      release: () => release(session.broken),
      abandon: async () => {
        // A connection in an unknown state never returns to the pool.
        if (held && !session.broken) await session.command("rollback").catch(() => {});
        release(session.broken);
      },
    };
  } catch (error) {
    throw translateError(error, settings.context);
  }
}

function beginScript(settings: TransactionSettings): string {
  const modes = [
    `isolation level ${settings.isolation ?? "read committed"}`,
    settings.readOnly ? "read only" : "read write",
  ];
  const local: Record<string, string> = {
    statement_timeout: String(settings.statementTimeoutMs),
    synchronous_commit: settings.synchronousCommit ?? "on",
    ...settings.settings,
  };
  const lockTimeoutMs = settings.lockTimeoutMs ?? (settings.readOnly ? READ_LOCK_MS : undefined);
  if (lockTimeoutMs !== undefined) local.lock_timeout = String(lockTimeoutMs);
  if (settings.idleTimeoutMs !== undefined) local.idle_in_transaction_session_timeout = String(settings.idleTimeoutMs);
  // One statement for all settings, to keep the load of an idle relay low.
  return `begin transaction ${modes.join(", ")};${fixSettingsSql(local)}`;
}
