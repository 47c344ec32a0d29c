import { RelayError } from "../core/errors.ts";
import { quoteLiteral } from "./identifiers.ts";

/** node-postgres: a client between BEGIN and COMMIT, not a pool. */
interface PgTransaction {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
  /** Since pg 8.17. Older ones do not tell, and the server is asked. */
  getTransactionStatus?(): string | null;
  readonly totalCount?: never;
}

/** Prisma: what `$transaction(async (tx) => ..)` gives, not the client. */
export interface PrismaTransaction {
  $queryRawUnsafe(query: string, ...values: unknown[]): PromiseLike<unknown>;
  readonly $connect?: never;
}

/** Drizzle on PostgreSQL: what `db.transaction(async (tx) => ..)` gives, not the database. */
interface DrizzleTransaction {
  execute(query: string): PromiseLike<unknown>;
  rollback(): never;
}

/** Kysely on PostgreSQL: what `db.transaction().execute(async (trx) => ..)` or `startTransaction()` gives. */
interface KyselyTransaction {
  readonly isTransaction: true;
  executeQuery(query: object): Promise<{ rows: unknown[] }>;
}

/** An open transaction of the application, recognised by its shape: none of the packages is imported. */
export type TransactionHandle = PgTransaction | PrismaTransaction | DrizzleTransaction | KyselyTransaction;

/** A statement made with the places of its parameters, counted from 1; all are texts. */
export type Statement = (place: (at: number) => string) => string;

/** The one way in which the writer and the inbox talk to a handle. */
export interface HandleSession {
  rows(statement: Statement, values: readonly (string | null)[]): Promise<readonly Record<string, unknown>[]>;
  /**
   * Rejects with TRANSACTION_MISSING unless a transaction is open; `probe` is sent only where the driver does not tell.
   * No SQL expression knows the answer, since a statement of its own runs in a transaction too.
   */
  requireTransaction(probe: string): Promise<void>;
  /** False when the driver says that the transaction ended meanwhile: the last statement ran outside. */
  isStillOpen(): boolean;
}

/** Throws TRANSACTION_MISSING for a pool, client or database that stands for no transaction. */
export function sessionOf(handle: TransactionHandle): HandleSession {
  const given: Record<string, unknown> = Object(handle);
  if (typeof given.$queryRawUnsafe === "function") return prismaSession(handle as PrismaTransaction);
  if (typeof given.executeQuery === "function") return kyselySession(handle as KyselyTransaction);
  if (typeof given.execute === "function") return drizzleSession(handle as DrizzleTransaction);
  if (typeof given.query === "function") return pgSession(handle as PgTransaction);
  const what = "The handle is no transaction of pg, Prisma, Drizzle or Kysely";
  throw new RelayError("TRANSACTION_MISSING", what);
}

const numbered = (at: number): string => `$${at}`;

function refused(what: string): RelayError {
  return new RelayError("TRANSACTION_MISSING", `Refused to write outside a transaction: ${what}`);
}

function pgSession(handle: PgTransaction): HandleSession {
  if ("totalCount" in handle) throw refused("this is a pool, whose statements each commit alone");
  return {
    rows: async (statement, values) => (await handle.query(statement(numbered), [...values])).rows.map(asRow),
    ...driverState(handle, (probe) => handle.query(probe)),
  };
}

/** A transaction of Prisma refuses by itself whatever comes after its end. */
function prismaSession(handle: PrismaTransaction): HandleSession {
  if (typeof (handle as { $connect?: unknown }).$connect === "function") {
    throw refused("this is the Prisma client; pass what $transaction gives to its function");
  }
  return {
    rows: async (statement, values) => rowsOf(await handle.$queryRawUnsafe(statement(numbered), ...values)),
    requireTransaction: async () => {},
    isStillOpen: () => true,
  };
}

/** So does one of Kysely. */
function kyselySession(handle: KyselyTransaction): HandleSession {
  if (handle.isTransaction !== true) throw refused("this is no Kysely transaction; pass what transaction() gives");
  return {
    rows: async (statement, values) => {
      const sql = statement(numbered);
      const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] };
      const compiled = { query, queryId: { queryId: "outbox-relay" }, sql, parameters: values };
      return (await handle.executeQuery(compiled)).rows.map(asRow);
    },
    requireTransaction: async () => {},
    isStillOpen: () => true,
  };
}

/** One of Drizzle goes on with its connection after the commit, hence the driver or the server is asked each time. */
function drizzleSession(handle: DrizzleTransaction): HandleSession {
  if (typeof handle.rollback !== "function") {
    throw refused("this is the Drizzle database; pass what transaction() gives to its function");
  }
  const { client } = Object((handle as { session?: unknown }).session) as { client?: PgTransaction };
  return {
    // As text alone, since a statement with parameters can only be made with Drizzle's own `sql`.
    rows: async (statement, values) => {
      const literal = (at: number) => (values[at - 1] == null ? "null" : quoteLiteral(String(values[at - 1])));
      return rowsOf(await handle.execute(statement(literal)));
    },
    ...driverState(Object(client) as PgTransaction, async (probe) => await handle.execute(probe)),
  };
}

const OPEN = "T";
/** The next statement fails anyway, with the server's own words. */
const FAILED = "E";

function driverState(client: PgTransaction, ask: (probe: string) => Promise<unknown>) {
  const status = (): string | null => client.getTransactionStatus?.() ?? null;
  return {
    requireTransaction: async (probe: string): Promise<void> => {
      const told = status();
      if (told === OPEN || told === FAILED) return;
      // Told otherwise it is asked too: a BEGIN may be under way that nobody awaited.
      await ask(probe).catch((error: unknown) => {
        throw hasCode(error, NO_TRANSACTION) ? refused("there is no BEGIN before it") : error;
      });
    },
    isStillOpen: () => (status() ?? OPEN) === OPEN,
  };
}

const NO_TRANSACTION = "25P01";
const CAUSES_MAX = 5;

/** Whether the server's code is this one, or begins with it; ORMs wrap the driver's error. */
export function hasCode(error: unknown, code: string): boolean {
  let at: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX && at instanceof Error; depth += 1) {
    if ("code" in at && typeof at.code === "string" && at.code.startsWith(code)) return true;
    at = at.cause;
  }
  return false;
}

/** node-postgres answers with an object that has rows, others with the rows. */
function rowsOf(answer: unknown): readonly Record<string, unknown>[] {
  const rows = Array.isArray(answer) ? answer : (answer as { rows?: unknown } | null)?.rows;
  return Array.isArray(rows) ? rows.map(asRow) : [];
}

function asRow(row: unknown): Record<string, unknown> {
  return Object(row) as Record<string, unknown>;
}
