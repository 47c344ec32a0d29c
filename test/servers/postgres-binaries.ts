import { embeddedBinaries } from "../../src/dev/embedded-postgres.ts";
import { installPrograms } from "./debian-programs.ts";

export type PostgresVersion = 15 | 18;

export const POSTGRES_15 = { postgres: "postgresql-15" };

/** The folder of `initdb` and `postgres`, readable by the server's account. */
export async function postgresBinaries(version: PostgresVersion): Promise<string> {
  if (version === 18) return await embeddedBinaries();
  await installPrograms("PostgreSQL 15", POSTGRES_15);
  return "/usr/lib/postgresql/15/bin";
}
