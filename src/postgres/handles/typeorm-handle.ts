import {
  firstColumn,
  type Given,
  type HandleKind,
  type HandleSession,
  isFunction,
  numbered,
  refused,
} from "./handle-session.ts";

/** TypeORM on PostgreSQL: the EntityManager of `dataSource.transaction(async (manager) => ..)`. */
export interface TypeOrmEntityManager {
  readonly "@instanceof": symbol;
  readonly queryRunner?: object | undefined;
  readonly createQueryRunner?: never;
  getRepository(...target: never[]): object;
}

/** A QueryRunner of TypeORM after `startTransaction()`. */
export interface TypeOrmQueryRunner {
  readonly isTransactionActive: boolean;
  query(text: string, values: unknown[], useStructuredResult: true): Promise<unknown>;
  startTransaction(...options: never[]): Promise<void>;
}

const MANAGER = Symbol.for("EntityManager");
const DATA_SOURCE = Symbol.for("DataSource");
const PASS = "pass the EntityManager that transaction() gives, or a QueryRunner after startTransaction()";

/** Recognizes TypeORM. */
export const typeOrmHandle: HandleKind = {
  supported: "TypeORM: the EntityManager that transaction() gives, or a QueryRunner after startTransaction()",
  session(given) {
    if (isQueryRunner(given)) return runnerSession(given);
    const mark = given["@instanceof"];
    if (mark === DATA_SOURCE) throw refused(`this is the TypeORM DataSource; ${PASS}`);
    if (isFunction(given.query) && isManager(Object(given.manager))) {
      throw refused(`this is a TypeORM Repository; ${PASS}`);
    }
    if (!isManager(given)) return null;
    const runner = Object(given.queryRunner) as Given;
    if (!isQueryRunner(runner)) throw refused(`this EntityManager of TypeORM has no transaction; ${PASS}`);
    return runnerSession(runner);
  },
};

function isManager(given: Given): boolean {
  // TypeORM before 0.3.12 has no marks.
  return given["@instanceof"] === MANAGER || (isFunction(given.getRepository) && "queryRunner" in given);
}

function isQueryRunner(given: Given): boolean {
  return isFunction(given.query) && isFunction(given.startTransaction) && "isTransactionActive" in given;
}

const POSTGRES = new Set(["postgres", "aurora-postgres", "cockroachdb"]);

function runnerSession(given: Given): HandleSession {
  const runner = given as unknown as TypeOrmQueryRunner;
  // Before 1.0 it is called `connection`.
  const source = Object(given.dataSource ?? given.connection) as { options?: { type?: unknown } };
  const type = source.options?.type;
  if (typeof type === "string" && !POSTGRES.has(type)) throw refused(`this is TypeORM on ${type}, not on PostgreSQL`);
  return {
    column: async (statement, values) => {
      const { records } = Object(await runner.query(statement(numbered), [...values], true)) as { records?: unknown };
      return firstColumn(records);
    },
    requireTransaction: async () => {
      if (!runner.isTransactionActive) throw refused(`this QueryRunner of TypeORM has no open transaction; ${PASS}`);
    },
    isStillOpen: () => runner.isTransactionActive,
  };
}
