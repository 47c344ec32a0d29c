import { firstColumn, type HandleKind, isFunction, KNOWN_OPEN, numbered, refused } from "./handle-session.ts";

/** Prisma: the `tx` of `$transaction(async (tx) => ..)`, not the client. */
export interface PrismaTransaction {
  $queryRawUnsafe(query: string, ...values: unknown[]): PromiseLike<unknown>;
  readonly $connect?: never;
}

/** A transaction of Prisma itself refuses statements after its end. */
export const prismaHandle: HandleKind = {
  supported: "Prisma: the tx that $transaction() gives to its function",
  session(given) {
    if (!isFunction(given.$queryRawUnsafe)) return null;
    if (isFunction(given.$connect)) {
      throw refused("this is the Prisma client; pass the tx that $transaction() gives to its function");
    }
    const handle = given as unknown as PrismaTransaction;
    return {
      column: async (statement, values) => firstColumn(await handle.$queryRawUnsafe(statement(numbered), ...values)),
      ...KNOWN_OPEN,
    };
  },
};
