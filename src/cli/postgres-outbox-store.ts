import { TableFinder } from "../config/find-tables.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import { migrateUp, requireSchema } from "../postgres/migrations/migrate.ts";
import { openDatabase } from "../postgres/pool.ts";
import { openOutboxSource } from "../sources/openoutbox/openoutbox-source.ts";
import { postgresSource } from "../sources/postgres/postgres-source.ts";
import type { OutboxStore } from "./outbox-store.ts";

/** Tables of a database, beside the relay's own schema. */
export function postgresOutboxStore({ database: options, service, sources }: ServiceConfig): OutboxStore {
  const database = openDatabase(options);
  const finder = new TableFinder(database, sources);
  return {
    async ping() {
      await database.pool.query("select 1");
    },
    migrate: async () => (await migrateUp(database)).map(({ name }) => name),
    requireFit: () => requireSchema(database),
    find: () => finder.find(),
    source({ schema, table, preset }) {
      const { claimLeaseMs, columns } = sources;
      if (preset !== "openoutbox") return postgresSource({ database, table: { schema, table }, columns });
      const lease = claimLeaseMs === null ? {} : { leaseMs: claimLeaseMs };
      return openOutboxSource({ database, table: { schema, table }, relayId: service, ...lease });
    },
    close: () => database.close(),
  };
}
