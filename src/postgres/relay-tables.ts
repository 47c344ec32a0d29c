import { quoteIdentifier } from "./identifiers.ts";

/** The relay's own tables by quoted name. Every statement takes them from here, since the schema's name is free. */
export interface RelayTables {
  readonly schema: string;
  readonly instances: string;
  readonly pipelines: string;
  readonly lanes: string;
  readonly holds: string;
  readonly failedEvents: string;
  readonly identity: string;
  readonly technicalEvents: string;
  readonly relayState: string;
  readonly schemaVersions: string;
}

export const DEFAULT_RELAY_SCHEMA = "outbox_relay";

export function relayTables(relaySchema: string): RelayTables {
  const schema = quoteIdentifier(relaySchema);
  return {
    schema,
    instances: `${schema}.instances`,
    pipelines: `${schema}.pipelines`,
    lanes: `${schema}.lanes`,
    holds: `${schema}.holds`,
    failedEvents: `${schema}.failed_events`,
    identity: `${schema}.identity`,
    technicalEvents: `${schema}.technical_events`,
    relayState: `${schema}.relay_state`,
    schemaVersions: `${schema}.schema_versions`,
  };
}
