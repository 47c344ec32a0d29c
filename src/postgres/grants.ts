import { quoteIdentifier, quoteTable, type TableName } from "./identifiers.ts";
import { DEFAULT_RELAY_SCHEMA, relayTables } from "./relay-tables.ts";

interface GrantRequest {
  readonly role: string;
  readonly relaySchema?: string;
  /** The tables of events. */
  readonly tables: readonly TableName[];
  /** Tables that are only read, as logs are. */
  readonly logs?: readonly TableName[];
  /** Whether something is read from the write-ahead log. */
  readonly hasWal?: boolean;
  /** True where the relay deletes delivered events. */
  readonly retention?: boolean;
}

/** All rights that the relay needs to run, and no more, as SQL for the owner of the tables. */
export function grantsFor({
  role,
  relaySchema = DEFAULT_RELAY_SCHEMA,
  tables,
  logs = [],
  hasWal = false,
  retention = false,
}: GrantRequest): string {
  const to = `to ${quoteIdentifier(role)};`;
  const own = relayTables(relaySchema);
  const schemas = [...new Set([...tables, ...logs].map(({ schema }) => schema))];
  const rights = retention ? "select, update, delete" : "select, update";
  const written = [
    own.instances,
    own.pipelines,
    own.lanes,
    own.holds,
    own.failedEvents,
    own.technicalEvents,
    own.parked,
    own.passed,
    own.attempts,
    own.replayPlans,
    own.replayItems,
  ];
  return [
    ...schemas.map((schema) => `grant usage on schema ${quoteIdentifier(schema)} ${to}`),
    ...tables.map((table) => `grant ${rights} on ${quoteTable(table)} ${to}`),
    ...logs.map((table) => `grant select on ${quoteTable(table)} ${to}`),
    ...(hasWal ? [`alter role ${quoteIdentifier(role)} replication;`] : []),
    `grant usage on schema ${own.schema} ${to}`,
    `grant select, insert, update, delete on ${written.join(", ")} ${to}`,
    `grant select, insert on ${own.audit} ${to}`,
    `grant select on ${own.identity}, ${own.schemaVersions}, ${own.relayState} ${to}`,
    "",
  ].join("\n");
}
