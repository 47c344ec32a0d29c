import { quoteIdentifier, quoteTable, type TableName } from "./identifiers.ts";
import { DEFAULT_RELAY_SCHEMA } from "./relay-tables.ts";

export interface GrantRequest {
  readonly role: string;
  readonly relaySchema?: string;
  /** The tables of events. */
  readonly tables: readonly TableName[];
  /** Tables that are only read, such as logs. */
  readonly logs?: readonly TableName[];
  /** Whether the relay reads the write-ahead log and the role does not have that right yet. */
  readonly hasWal?: boolean;
  /** True where the relay deletes delivered events. */
  readonly retention?: boolean;
  /** Managed outboxes, which the relay's role must own: only the owner creates and drops partitions. */
  readonly managed?: readonly OwnedTable[];
  /** Statements that create the publications for reading the write-ahead log. */
  readonly publications?: readonly string[];
  /** Tables that receive test events, and the sequences of their defaults. */
  readonly smoke?: { readonly tables: readonly TableName[]; readonly sequences: readonly TableName[] };
}

/** A table with its partitions, the owner of each, and whether the current role counts as the owner. */
export interface OwnedTable extends TableName {
  readonly parts: readonly (TableName & { readonly owner: string; readonly isOwn: boolean })[];
}

/** What the relay does with its own tables. The audit log is append-only, even for the relay. */
export const OWN_RIGHTS: readonly { readonly rights: readonly string[]; readonly tables: readonly string[] }[] = [
  {
    rights: ["select", "insert", "update", "delete"],
    tables: [
      ...["instances", "pipelines", "lanes", "holds", "failed_events", "technical_events", "parked", "passed"],
      ...["attempts", "destinations", "edits", "replay_plans", "replay_items"],
    ],
  },
  { rights: ["select", "insert"], tables: ["audit"] },
  { rights: ["select"], tables: ["identity", "schema_versions", "relay_state", "dead_letters"] },
];

/** All rights that the relay needs to run, and no more, as SQL for the owner of the tables. */
export function grantsFor(request: GrantRequest): string {
  const { role, relaySchema = DEFAULT_RELAY_SCHEMA, tables, logs = [], hasWal = false, retention = false } = request;
  const { managed = [], publications = [], smoke = { tables: [], sequences: [] } } = request;
  const to = `to ${quoteIdentifier(role)};`;
  const schema = quoteIdentifier(relaySchema);
  const schemas = [...new Set([...tables, ...logs, ...managed].map(({ schema }) => schema))];
  const rights = retention ? "select, update, delete" : "select, update";
  return [
    ...schemas.map((name) => `grant usage on schema ${quoteIdentifier(name)} ${to}`),
    ...tables.map((table) => `grant ${rights} on ${quoteTable(table)} ${to}`),
    ...logs.map((table) => `grant select on ${quoteTable(table)} ${to}`),
    ...ownershipOf(role, managed),
    ...(hasWal ? [`alter role ${quoteIdentifier(role)} replication; -- as a superuser`] : []),
    ...publications,
    ...smoke.tables.map((table) => `grant insert on ${quoteTable(table)} ${to}`),
    ...smoke.sequences.map((sequence) => `grant usage on sequence ${quoteTable(sequence)} ${to}`),
    `grant usage on schema ${schema} ${to}`,
    ...OWN_RIGHTS.map((own) => {
      const names = own.tables.map((table) => `${schema}.${table}`);
      return `grant ${own.rights.join(", ")} on ${names.join(", ")} ${to}`;
    }),
    "",
  ].join("\n");
}

/** Transfers managed outboxes to the role. Their former owners can still write to them. */
export function ownershipOf(role: string, managed: readonly OwnedTable[]): readonly string[] {
  const name = quoteIdentifier(role);
  const schemas = [...new Set(managed.map(({ schema }) => schema))];
  const foreign = managed.flatMap(({ parts }) => parts.filter(({ owner }) => owner !== role));
  return [
    // Only members of the new owner can transfer ownership to it; as members they keep their rights on the tables.
    ...(foreign.length === 0 ? [] : [`grant ${name} to current_user; -- a superuser can leave this out`]),
    ...schemas.map((schema) => `grant create on schema ${quoteIdentifier(schema)} to ${name};`),
    ...foreign.map((part) => `alter table ${quoteTable(part)} owner to ${name};`),
    ...managed.flatMap(({ parts, schema, table }) => {
      const former = new Set(parts.map(({ owner }) => owner).filter((owner) => owner !== role));
      return [...former].map(
        (owner) => `grant select, insert on ${quoteTable({ schema, table })} to ${quoteIdentifier(owner)};`,
      );
    }),
  ];
}
