import { quoteIdentifier } from "./identifiers.ts";

/** The relay's own tables by quoted name. Every statement takes them from here, since the schema's name is free. */
export interface RelayTables {
  readonly schema: string;
  readonly instances: string;
  readonly pipelines: string;
  readonly lanes: string;
  readonly holds: string;
  readonly failedEvents: string;
  /** Events of logs that were passed and still wait: failed ones, and what waits behind them. */
  readonly parked: string;
  /** Events of logs that a ledger knows as delivered, until the reading comes by. */
  readonly passed: string;
  readonly identity: string;
  readonly technicalEvents: string;
  /** Attempts that were recorded: all that failed, and some that did not. */
  readonly attempts: string;
  /** Who did what, and why. */
  readonly audit: string;
  readonly replayPlans: string;
  readonly replayItems: string;
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
    parked: `${schema}.parked`,
    passed: `${schema}.passed`,
    identity: `${schema}.identity`,
    technicalEvents: `${schema}.technical_events`,
    attempts: `${schema}.attempts`,
    audit: `${schema}.audit`,
    replayPlans: `${schema}.replay_plans`,
    replayItems: `${schema}.replay_items`,
    relayState: `${schema}.relay_state`,
    schemaVersions: `${schema}.schema_versions`,
  };
}
