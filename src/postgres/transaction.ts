import type { Pool } from "pg";
import { RelayError } from "../core/errors.ts";
import { type ErrorContext, translateError } from "./errors.ts";
import { HostPool } from "./hosts.ts";
import { ClientSession, type Row, type Session } from "./session.ts";
import { fixSettingsSql } from "./session-settings.ts";

export interface TransactionSettings {
  readonly context: ErrorContext;
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs?: number;
  readonly idleTimeoutMs?: number;
  readonly isolation?: "read committed" | "repeatable read";
  readonly readOnly?: boolean;
  /** `local` where losing the write in a failover is harmless and waiting for a standby is not: the heartbeat. */
  readonly synchronousCommit?: "on" | "local";
  /** Settings for the planner or memory, for instance `{ enable_seqscan: "off" }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** An open transaction that its owner ends. */
export interface OpenTransaction {
  readonly session: Session;
  /** The rows of the statement that came with the BEGIN. */
  readonly firstRows: readonly Row[];
  /** Rolls back. Legal to repeat; never throws. */
  end(): Promise<void>;
}

/**
 * Runs `work` in one transaction: all of it or nothing. Only `set local` is used and nothing outlives the transaction,
 * so that it works behind a pooler that changes the server connection between transactions.
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
 * One statement in one transaction in ONE round trip. The statement decides by itself whether it changes anything,
 * there is no way to roll it back after a look at its rows. An error that the server answers with, to whichever part,
 * means that everything was rolled back; only a lost connection leaves it open.
 */
export async function statement(pool: Pool, settings: TransactionSettings, text: string): Promise<readonly Row[]> {
  const held = await acquire(pool, settings);
  try {
    const results = await held.session.script(`${beginScript(settings)};${text};commit`);
    held.release();
    return results.at(-2) ?? [];
  } catch (error) {
    await held.abandon();
    throw translateError(error, settings.context);
  }
}

/**
 * One statement that only reads, in one round trip, without a lock worth waiting for: for what is sent again and again.
 */
export async function glance(
  pool: Pool,
  context: ErrorContext,
  timeoutMs: number,
  text: string,
): Promise<readonly Row[]> {
  return await statement(pool, { context, statementTimeoutMs: timeoutMs, readOnly: true }, text);
}

/** Begins a transaction and runs a first statement in it, in one round trip. */
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
      // A server that went away, or that takes no writes any more, may have a successor.
      if (destroy && pool instanceof HostPool) pool.lookAgain();
    };
    return {
      session,
      release: () => release(session.broken),
      abandon: async () => {
        // A connection whose state nobody knows never goes back to the pool.
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
  if (settings.lockTimeoutMs !== undefined) local.lock_timeout = String(settings.lockTimeoutMs);
  if (settings.idleTimeoutMs !== undefined) local.idle_in_transaction_session_timeout = String(settings.idleTimeoutMs);
  // One statement for all of them: an idle relay is measured by the statements it sends.
  return `begin transaction ${modes.join(", ")};${fixSettingsSql(local)}`;
}
