import { quoteIdentifier } from "./identifiers.ts";

/**
 * The relay's own tables by quoted name. Every statement takes them from here, since the schema's name is configurable.
 */
export interface RelayTables {
  readonly schema: string;
  readonly instances: string;
  readonly pipelines: string;
  readonly lanes: string;
  readonly holds: string;
  readonly failedEvents: string;
  /** The open ones of them as a view for people, with payloads as jsonb. */
  readonly deadLetters: string;
  /**
   * Events of logs that the checkpoint has passed but that are not delivered: failed ones, and those that wait behind
   * them.
   */
  readonly parked: string;
  /** Events of logs that a ledger lists as delivered and that have not been read yet. */
  readonly passed: string;
  readonly identity: string;
  readonly technicalEvents: string;
  /** Recorded attempts: all failed ones, and a sample of the others. */
  readonly attempts: string;
  /** The audit log: who did what, and why. */
  readonly audit: string;
  /** A pause or a limit for all pipelines of a destination, including later ones. */
  readonly destinations: string;
  /** Payloads and headers that an operator has edited, before and after. */
  readonly edits: string;
  readonly replayPlans: string;
  readonly replayItems: string;
  readonly relayState: string;
  readonly schemaVersions: string;
}

/** The relay's schema unless it is configured. */
export const DEFAULT_RELAY_SCHEMA = "outbox_relay";

/** The table names in this schema. */
export function relayTables(relaySchema: string): RelayTables {
  const schema = quoteIdentifier(relaySchema);
  return {
    schema,
    instances: `${schema}.instances`,
    pipelines: `${schema}.pipelines`,
    lanes: `${schema}.lanes`,
    holds: `${schema}.holds`,
    failedEvents: `${schema}.failed_events`,
    deadLetters: `${schema}.dead_letters`,
    parked: `${schema}.parked`,
    passed: `${schema}.passed`,
    identity: `${schema}.identity`,
    technicalEvents: `${schema}.technical_events`,
    attempts: `${schema}.attempts`,
    audit: `${schema}.audit`,
    destinations: `${schema}.destinations`,
    edits: `${schema}.edits`,
    replayPlans: `${schema}.replay_plans`,
    replayItems: `${schema}.replay_items`,
    relayState: `${schema}.relay_state`,
    schemaVersions: `${schema}.schema_versions`,
  };
}
