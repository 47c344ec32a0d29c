import { unreachableError } from "../../core/connection-cause.ts";
import { RelayError } from "../../core/errors.ts";
import { explained } from "./kafka-client.ts";
import { describeBrokers, type KafkaSettings } from "./kafka-config.ts";
import { CODE, describeCode } from "./kafka-error-codes.ts";
import { answersIn, connectionReason } from "./kafka-errors.ts";
import type { KafkaAccess } from "./ledger-metadata.ts";
import { settingsOfAskedBroker } from "./transaction-coordinator.ts";

/** The topic operations that every relay needs, with their bits in the metadata response. */
const TOPIC_RIGHTS = { Read: 3, Write: 4, DescribeConfigs: 10 } as const;

/** The operations on the ledger that this user is not allowed. */
export function missingRights(rights: number | null): string[] {
  if (rights === null) return [];
  return Object.entries(TOPIC_RIGHTS)
    .filter(([, bit]) => (rights & (1 << bit)) === 0)
    .map(([operation]) => operation);
}

/** The error for a missing right on the ledger, with the command that grants it. */
export function refusedOnLedger(settings: KafkaSettings, operations: readonly string[], cause?: unknown): RelayError {
  const { topic } = settings.ledger;
  return refused(settings, operations, `Topic "${topic}"`, `--topic ${topic}`, cause);
}

/** A prefixed ACL, because each lane has its own id. */
function refusedTransactionalIds(settings: KafkaSettings, cause?: unknown): RelayError {
  const prefix = `${settings.service}.`;
  const on = `TransactionalId "${prefix}" (as a prefix)`;
  return refused(
    settings,
    ["Describe", "Write"],
    on,
    `--transactional-id ${prefix} --resource-pattern-type prefixed`,
    cause,
  );
}

function refusedOnCluster(settings: KafkaSettings, cause: unknown): RelayError {
  return refused(settings, ["IdempotentWrite"], "Cluster", "--cluster", cause);
}

function refused(
  settings: KafkaSettings,
  operations: readonly string[],
  on: string,
  flags: string,
  cause: unknown,
): RelayError {
  const where = describeBrokers(settings.brokers);
  const wanted = operations.map((operation) => `--operation ${operation}`).join(" ");
  const command = `kafka-acls.sh --bootstrap-server ${where} --add --allow-principal User:NAME ${wanted} ${flags}`;
  const what = `Kafka at ${where} does not allow this user ${operations.join(" and ")} on ${on}: \`${command}\`.`;
  return new RelayError("TRANSACTIONS_REFUSED", what, cause === undefined ? {} : { cause });
}

/** Why transactions cannot be used, when one of the first requests failed. */
export function transactionsFault({ client, settings }: KafkaAccess, error: unknown): RelayError {
  if (error instanceof RelayError) return error;
  const codes = new Set(answersIn(error).map(({ code }) => code));
  if (codes.has(CODE.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)) return refusedTransactionalIds(settings, error);
  if (codes.has(CODE.CLUSTER_AUTHORIZATION_FAILED)) return refusedOnCluster(settings, error);
  if (codes.has(CODE.INVALID_TRANSACTION_TIMEOUT)) {
    const what = `Kafka, transactionTimeoutMs: ${describeCode(CODE.INVALID_TRANSACTION_TIMEOUT)}.`;
    return new RelayError("CONFIG_INVALID", what, { cause: error });
  }
  const cause = explained(client, error);
  return unreachableError(connectionReason(settingsOfAskedBroker(settings, error), cause), cause);
}
