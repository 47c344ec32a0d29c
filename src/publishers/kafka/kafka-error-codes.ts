import type { FailureScope } from "../../core/outcome.ts";

/** What a broker's error code means for the records of the request. */
interface CodeMeaning {
  readonly scope: FailureScope;
  /** No retry helps. */
  readonly isFinal: boolean;
  /** True: nothing was written. False: the records may have been written, or may still be. */
  readonly isDefinite: boolean;
  /** A retry may succeed at once, after a new lookup of the leader or coordinator. */
  readonly isPassing: boolean;
}

const definite = { isFinal: false, isDefinite: true, isPassing: false } as const;
const indefinite = { ...definite, isDefinite: false } as const;

/** The record itself is rejected for good. */
const refused: CodeMeaning = { scope: "event", ...definite, isFinal: true };
const failed: CodeMeaning = { scope: "event", ...definite };
const failedUncertain: CodeMeaning = { scope: "event", ...indefinite };
const topicRefused: CodeMeaning = { scope: "topic", ...definite };
const topicMoving: CodeMeaning = { scope: "topic", ...definite, isPassing: true };
/** The leader appended the record, but lost leadership or its in-sync replicas before they had it. */
const topicUncertain: CodeMeaning = { scope: "topic", ...indefinite, isPassing: true };
const clusterRefused: CodeMeaning = { scope: "destination", ...definite };
const clusterMoving: CodeMeaning = { scope: "destination", ...definite, isPassing: true };
const clusterUncertain: CodeMeaning = { scope: "destination", ...indefinite };
/** The producer id or epoch is no longer valid: a new producer continues. */
const producerSpent: CodeMeaning = { scope: "destination", ...definite };

type Entry = readonly [name: string, meaning: CodeMeaning, hint?: string];

/** Every code that can answer a producer's requests, with a hint for the operator. */
const PRODUCER_CODES: Readonly<Record<number, Entry>> = {
  [-1]: ["UNKNOWN_SERVER_ERROR", failedUncertain, "the broker failed; its own log has the reason"],
  2: [
    "CORRUPT_MESSAGE",
    failed,
    "the broker considers the record corrupt, or it has no key and the topic is compacted",
  ],
  3: ["UNKNOWN_TOPIC_OR_PARTITION", topicUncertain, "it does not exist: create it, or set createTopics"],
  5: ["LEADER_NOT_AVAILABLE", topicMoving, "a partition has no leader at the moment"],
  6: ["NOT_LEADER_OR_FOLLOWER", topicUncertain, "a partition is moving to another broker"],
  7: ["REQUEST_TIMED_OUT", topicUncertain, "the replicas did not confirm in time"],
  8: ["BROKER_NOT_AVAILABLE", clusterMoving],
  9: ["REPLICA_NOT_AVAILABLE", topicMoving],
  10: ["MESSAGE_TOO_LARGE", refused, "larger than the topic's max.message.bytes"],
  13: ["NETWORK_EXCEPTION", clusterUncertain],
  14: ["COORDINATOR_LOAD_IN_PROGRESS", clusterMoving],
  15: ["COORDINATOR_NOT_AVAILABLE", clusterMoving],
  16: ["NOT_COORDINATOR", clusterMoving],
  17: ["INVALID_TOPIC_EXCEPTION", refused, "the broker does not allow this name, or it is an internal topic"],
  18: ["RECORD_LIST_TOO_LARGE", refused, "larger than the topic's segment.bytes"],
  19: ["NOT_ENOUGH_REPLICAS", topicMoving, "fewer replicas are in sync than min.insync.replicas requires"],
  20: [
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    topicUncertain,
    "fewer replicas are in sync than min.insync.replicas requires",
  ],
  21: ["INVALID_REQUIRED_ACKS", clusterRefused],
  29: [
    "TOPIC_AUTHORIZATION_FAILED",
    topicRefused,
    "this user must not write to it: grant Write and Describe (and Create)",
  ],
  31: [
    "CLUSTER_AUTHORIZATION_FAILED",
    clusterRefused,
    "this user lacks a right on the cluster, usually IdempotentWrite",
  ],
  32: ["INVALID_TIMESTAMP", topicRefused, "this machine's clock is too far from the broker's for the topic's limits"],
  33: ["UNSUPPORTED_SASL_MECHANISM", clusterRefused, "the broker does not offer this sasl.mechanism"],
  34: ["ILLEGAL_SASL_STATE", clusterRefused, "the broker's port does not use SASL: remove sasl or use another port"],
  35: ["UNSUPPORTED_VERSION", clusterRefused, "the broker is too old or too new for this client"],
  36: ["TOPIC_ALREADY_EXISTS", topicMoving],
  37: [
    "INVALID_PARTITIONS",
    topicRefused,
    "the cluster does not allow this number of partitions: check createTopics.partitions",
  ],
  38: ["INVALID_REPLICATION_FACTOR", topicRefused, "the replication factor is larger than the number of brokers"],
  39: ["INVALID_REPLICA_ASSIGNMENT", topicRefused],
  40: ["INVALID_CONFIG", topicRefused],
  41: ["NOT_CONTROLLER", clusterMoving],
  42: ["INVALID_REQUEST", clusterRefused],
  43: ["UNSUPPORTED_FOR_MESSAGE_FORMAT", topicRefused, "the topic's message.format.version is too old for headers"],
  44: ["POLICY_VIOLATION", topicRefused, "a policy of the cluster forbids it"],
  45: ["OUT_OF_ORDER_SEQUENCE_NUMBER", producerSpent],
  46: ["DUPLICATE_SEQUENCE_NUMBER", producerSpent],
  47: ["INVALID_PRODUCER_EPOCH", producerSpent],
  48: ["INVALID_TXN_STATE", producerSpent],
  49: ["INVALID_PRODUCER_ID_MAPPING", producerSpent],
  50: [
    "INVALID_TRANSACTION_TIMEOUT",
    clusterRefused,
    "transactionTimeoutMs is above the broker's transaction.max.timeout.ms",
  ],
  51: ["CONCURRENT_TRANSACTIONS", clusterMoving],
  52: ["TRANSACTION_COORDINATOR_FENCED", producerSpent],
  53: ["TRANSACTIONAL_ID_AUTHORIZATION_FAILED", clusterRefused, "grant Write and Describe on the transactional ids"],
  54: ["SECURITY_DISABLED", clusterRefused],
  56: ["KAFKA_STORAGE_ERROR", topicUncertain, "a disk of the broker failed"],
  58: [
    "SASL_AUTHENTICATION_FAILED",
    clusterRefused,
    "the broker refused the credentials in sasl (KAFKA_USERNAME, KAFKA_PASSWORD or the token)",
  ],
  59: ["UNKNOWN_PRODUCER_ID", producerSpent],
  72: ["LISTENER_NOT_FOUND", topicMoving],
  74: ["FENCED_LEADER_EPOCH", topicMoving],
  75: ["UNKNOWN_LEADER_EPOCH", topicMoving],
  76: ["UNSUPPORTED_COMPRESSION_TYPE", topicRefused, "the broker does not support this compression"],
  83: ["ELIGIBLE_LEADERS_NOT_AVAILABLE", topicMoving],
  87: ["INVALID_RECORD", refused, "the broker rejects the record"],
  89: ["THROTTLING_QUOTA_EXCEEDED", clusterMoving],
  90: ["PRODUCER_FENCED", producerSpent],
  100: ["UNKNOWN_TOPIC_ID", topicMoving],
  103: ["INCONSISTENT_TOPIC_ID", topicMoving],
  105: ["TRANSACTIONAL_ID_NOT_FOUND", producerSpent],
  120: ["TRANSACTION_ABORTABLE", producerSpent],
};

/**
 * Codes of consumers, administration and broker-to-broker requests. If one arrives nevertheless, the result is unknown.
 */
const FOREIGN_CODES: Readonly<Record<number, string>> = {
  1: "OFFSET_OUT_OF_RANGE",
  4: "INVALID_FETCH_SIZE",
  11: "STALE_CONTROLLER_EPOCH",
  12: "OFFSET_METADATA_TOO_LARGE",
  22: "ILLEGAL_GENERATION",
  23: "INCONSISTENT_GROUP_PROTOCOL",
  24: "INVALID_GROUP_ID",
  25: "UNKNOWN_MEMBER_ID",
  26: "INVALID_SESSION_TIMEOUT",
  27: "REBALANCE_IN_PROGRESS",
  28: "INVALID_COMMIT_OFFSET_SIZE",
  30: "GROUP_AUTHORIZATION_FAILED",
  55: "OPERATION_NOT_ATTEMPTED",
  57: "LOG_DIR_NOT_FOUND",
  60: "REASSIGNMENT_IN_PROGRESS",
  61: "DELEGATION_TOKEN_AUTH_DISABLED",
  62: "DELEGATION_TOKEN_NOT_FOUND",
  63: "DELEGATION_TOKEN_OWNER_MISMATCH",
  64: "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
  65: "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
  66: "DELEGATION_TOKEN_EXPIRED",
  67: "INVALID_PRINCIPAL_TYPE",
  68: "NON_EMPTY_GROUP",
  69: "GROUP_ID_NOT_FOUND",
  70: "FETCH_SESSION_ID_NOT_FOUND",
  71: "INVALID_FETCH_SESSION_EPOCH",
  73: "TOPIC_DELETION_DISABLED",
  77: "STALE_BROKER_EPOCH",
  78: "OFFSET_NOT_AVAILABLE",
  79: "MEMBER_ID_REQUIRED",
  80: "PREFERRED_LEADER_NOT_AVAILABLE",
  81: "GROUP_MAX_SIZE_REACHED",
  82: "FENCED_INSTANCE_ID",
  84: "ELECTION_NOT_NEEDED",
  85: "NO_REASSIGNMENT_IN_PROGRESS",
  86: "GROUP_SUBSCRIBED_TO_TOPIC",
  88: "UNSTABLE_OFFSET_COMMIT",
  91: "RESOURCE_NOT_FOUND",
  92: "DUPLICATE_RESOURCE",
  93: "UNACCEPTABLE_CREDENTIAL",
  94: "INCONSISTENT_VOTER_SET",
  95: "INVALID_UPDATE_VERSION",
  96: "FEATURE_UPDATE_FAILED",
  97: "PRINCIPAL_DESERIALIZATION_FAILURE",
  98: "SNAPSHOT_NOT_FOUND",
  99: "POSITION_OUT_OF_RANGE",
  101: "DUPLICATE_BROKER_REGISTRATION",
  102: "BROKER_ID_NOT_REGISTERED",
  104: "INCONSISTENT_CLUSTER_ID",
  106: "FETCH_SESSION_TOPIC_ID_ERROR",
  107: "INELIGIBLE_REPLICA",
  108: "NEW_LEADER_ELECTED",
  109: "OFFSET_MOVED_TO_TIERED_STORAGE",
  110: "FENCED_MEMBER_EPOCH",
  111: "UNRELEASED_INSTANCE_ID",
  112: "UNSUPPORTED_ASSIGNOR",
  113: "STALE_MEMBER_EPOCH",
  114: "MISMATCHED_ENDPOINT_TYPE",
  115: "UNSUPPORTED_ENDPOINT_TYPE",
  116: "UNKNOWN_CONTROLLER_ID",
  117: "UNKNOWN_SUBSCRIPTION_ID",
  118: "TELEMETRY_TOO_LARGE",
  119: "INVALID_REGISTRATION",
  121: "INVALID_RECORD_STATE",
  122: "SHARE_SESSION_NOT_FOUND",
  123: "INVALID_SHARE_SESSION_EPOCH",
  124: "FENCED_STATE_EPOCH",
  125: "INVALID_VOTER_KEY",
  126: "DUPLICATE_VOTER",
  127: "VOTER_NOT_FOUND",
};

/** The codes that single rules refer to, by name. */
export const CODE = {
  UNKNOWN_SERVER_ERROR: -1,
  NONE: 0,
  OFFSET_OUT_OF_RANGE: 1,
  CORRUPT_MESSAGE: 2,
  UNKNOWN_TOPIC_OR_PARTITION: 3,
  LEADER_NOT_AVAILABLE: 5,
  NOT_LEADER_OR_FOLLOWER: 6,
  REQUEST_TIMED_OUT: 7,
  MESSAGE_TOO_LARGE: 10,
  COORDINATOR_LOAD_IN_PROGRESS: 14,
  COORDINATOR_NOT_AVAILABLE: 15,
  NOT_COORDINATOR: 16,
  INVALID_TOPIC_EXCEPTION: 17,
  RECORD_LIST_TOO_LARGE: 18,
  TOPIC_AUTHORIZATION_FAILED: 29,
  CLUSTER_AUTHORIZATION_FAILED: 31,
  TOPIC_ALREADY_EXISTS: 36,
  INVALID_PARTITIONS: 37,
  NOT_CONTROLLER: 41,
  OUT_OF_ORDER_SEQUENCE_NUMBER: 45,
  DUPLICATE_SEQUENCE_NUMBER: 46,
  INVALID_PRODUCER_EPOCH: 47,
  INVALID_TXN_STATE: 48,
  INVALID_PRODUCER_ID_MAPPING: 49,
  INVALID_TRANSACTION_TIMEOUT: 50,
  CONCURRENT_TRANSACTIONS: 51,
  TRANSACTION_COORDINATOR_FENCED: 52,
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 53,
  OPERATION_NOT_ATTEMPTED: 55,
  UNKNOWN_PRODUCER_ID: 59,
  FENCED_LEADER_EPOCH: 74,
  UNKNOWN_LEADER_EPOCH: 75,
  OFFSET_NOT_AVAILABLE: 78,
  INVALID_RECORD: 87,
  PRODUCER_FENCED: 90,
  UNKNOWN_TOPIC_ID: 100,
  INCONSISTENT_TOPIC_ID: 103,
  TRANSACTIONAL_ID_NOT_FOUND: 105,
  TRANSACTION_ABORTABLE: 120,
} as const;

/** What a code means. An unknown code comes from a newer broker, so the result is unknown. */
export function meaningOf(code: number): CodeMeaning {
  return PRODUCER_CODES[code]?.[1] ?? clusterUncertain;
}

/** The protocol's name of a code. */
export function nameOf(code: number): string | null {
  return PRODUCER_CODES[code]?.[0] ?? FOREIGN_CODES[code] ?? null;
}

/** `NAME (code): hint`. */
export function describeCode(code: number): string {
  const name = `${nameOf(code) ?? "an error code unknown to this version of the relay"} (${code})`;
  const hint = PRODUCER_CODES[code]?.[2];
  return hint === undefined ? name : `${name}: ${hint}`;
}
