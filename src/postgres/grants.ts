import { quoteIdentifier, quoteTable, type TableName } from "./identifiers.ts";
import { DEFAULT_RELAY_SCHEMA } from "./relay-tables.ts";

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

/** What the relay does with its own tables. Nobody changes what the audit says, not even the relay. */
export const OWN_RIGHTS: readonly { readonly rights: readonly string[]; readonly tables: readonly string[] }[] = [
  {
    rights: ["select", "insert", "update", "delete"],
    tables: [
      ...["instances", "pipelines", "lanes", "holds", "failed_events", "technical_events", "parked", "passed"],
      ...["attempts", "replay_plans", "replay_items"],
    ],
  },
  { rights: ["select", "insert"], tables: ["audit"] },
  { rights: ["select"], tables: ["identity", "schema_versions", "relay_state"] },
];

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
  const schema = quoteIdentifier(relaySchema);
  const schemas = [...new Set([...tables, ...logs].map(({ schema }) => schema))];
  const rights = retention ? "select, update, delete" : "select, update";
  return [
    ...schemas.map((name) => `grant usage on schema ${quoteIdentifier(name)} ${to}`),
    ...tables.map((table) => `grant ${rights} on ${quoteTable(table)} ${to}`),
    ...logs.map((table) => `grant select on ${quoteTable(table)} ${to}`),
    ...(hasWal ? [`alter role ${quoteIdentifier(role)} replication;`] : []),
    `grant usage on schema ${schema} ${to}`,
    ...OWN_RIGHTS.map((own) => {
      const names = own.tables.map((table) => `${schema}.${table}`);
      return `grant ${own.rights.join(", ")} on ${names.join(", ")} ${to}`;
    }),
    "",
  ].join("\n");
}
