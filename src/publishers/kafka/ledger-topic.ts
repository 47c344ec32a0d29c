import { setTimeout as pauseMs } from "node:timers/promises";
import { RelayError } from "../../core/errors.ts";
import { describeBrokers, type KafkaSettings } from "./kafka-config.ts";
import { CODE, describeCode } from "./kafka-error-codes.ts";
import { answersIn } from "./kafka-errors.ts";
import { askBroker, describeLedger, type KafkaAccess, type LedgerMetadata } from "./ledger-metadata.ts";
import { missingRights, refusedOnLedger } from "./transaction-rights.ts";

interface DescribedConfigs {
  readonly results: readonly {
    readonly configs: readonly { readonly name: string; readonly value: string | null }[];
  }[];
}

const TOPIC_RESOURCE = 2;
const READY_PAUSE_MS = 20;
/** How long it may take until all brokers know a new topic and its partitions. */
const TIMEOUT_MS = 15_000;

/**
 * The ledger's topic settings. Small segments, because only closed segments are compacted, and a lane that was idle for
 * long must scan the rest. Records keep the producer's compression, so that this client can read them. Notes have room
 * for thousands of long ids.
 */
const CREATION: Readonly<Record<string, string>> = {
  "cleanup.policy": "compact",
  "compression.type": "producer",
  "max.message.bytes": String(4 << 20),
  "segment.bytes": String(16 << 20),
  "unclean.leader.election.enable": "false",
};

const POLICY = "cleanup.policy";
const IN_SYNC = "min.insync.replicas";
const UNCLEAN = "unclean.leader.election.enable";

/** Creates the ledger with one partition per slot, or adds partitions, and checks that its settings lose no records. */
export async function prepareLedger(access: KafkaAccess, slots: number): Promise<void> {
  const giveUpMs = performance.now() + TIMEOUT_MS;
  for (;;) {
    const metadata = await describeOwnLedger(access);
    if (metadata.code === CODE.NONE && metadata.partitions.length >= slots) return await verify(access, metadata);
    if (performance.now() > giveUpMs) throw unready(access.settings, metadata, slots);
    if (metadata.code === CODE.UNKNOWN_TOPIC_OR_PARTITION) await create(access, metadata, slots);
    else if (metadata.code === CODE.NONE && metadata.partitions.length < slots) await grow(access, metadata, slots);
    await pauseMs(READY_PAUSE_MS);
  }
}

/** What `prepareLedger` would create. The brokers only validate the requests, rights included. */
export async function examineLedger(access: KafkaAccess, slots: number): Promise<readonly string[]> {
  const metadata = await describeOwnLedger(access);
  const { code, partitions } = metadata;
  const note = (what: string) => [`${ledgerOf(access.settings)} ${what}`];
  if (code === CODE.UNKNOWN_TOPIC_OR_PARTITION) {
    await create(access, metadata, slots, true);
    return note("does not exist yet");
  }
  if (code !== CODE.NONE) throw unready(access.settings, metadata, slots);
  if (partitions.length < slots) await grow(access, metadata, slots, true);
  await verify(access, metadata);
  return partitions.length < slots ? note(tooFew(metadata, slots)) : [];
}

/** Throws when this user lacks a right on it. */
async function describeOwnLedger(access: KafkaAccess): Promise<LedgerMetadata> {
  const metadata = await describeLedger(access);
  if (metadata.code === CODE.TOPIC_AUTHORIZATION_FAILED) throw refusedOnLedger(access.settings, ["Describe"]);
  const missing = metadata.code === CODE.NONE ? missingRights(metadata.rights) : [];
  if (missing.length > 0) throw refusedOnLedger(access.settings, missing);
  return metadata;
}

async function create(
  access: KafkaAccess,
  { controller }: LedgerMetadata,
  slots: number,
  validateOnly = false,
): Promise<void> {
  const { ledger, requestTimeoutMs } = access.settings;
  const configs = Object.entries(CREATION).map(([name, value]) => ({ name, value }));
  const { topic: name, replicationFactor } = ledger;
  const topic = { name, numPartitions: slots, replicationFactor, assignments: [], configs };
  try {
    await askBroker(access, controller, "CreateTopics", [topic], requestTimeoutMs, validateOnly);
  } catch (error) {
    throwUnlessPassing(access.settings, error, "Create", "could not be created");
  }
}

/** Partitions are only added, so the lanes keep theirs. */
async function grow(
  access: KafkaAccess,
  { controller }: LedgerMetadata,
  slots: number,
  validateOnly = false,
): Promise<void> {
  const { ledger, requestTimeoutMs } = access.settings;
  const topic = { name: ledger.topic, count: slots, assignments: null };
  try {
    await askBroker(access, controller, "CreatePartitions", [topic], requestTimeoutMs, validateOnly);
  } catch (error) {
    throwUnlessPassing(access.settings, error, "Alter", `needs ${slots} partitions and could not get them`);
  }
}

/** Answers that mean that another relay was faster, or that the cluster is not ready yet. */
const PASSING: ReadonlySet<number> = new Set([
  CODE.TOPIC_ALREADY_EXISTS,
  CODE.INVALID_PARTITIONS,
  CODE.NOT_CONTROLLER,
  CODE.UNKNOWN_TOPIC_OR_PARTITION,
  CODE.REQUEST_TIMED_OUT,
]);

function throwUnlessPassing(settings: KafkaSettings, error: unknown, right: string, what: string): void {
  const [answer] = answersIn(error);
  if (answer === undefined) throw error;
  if (answer.code === CODE.TOPIC_AUTHORIZATION_FAILED || answer.code === CODE.CLUSTER_AUTHORIZATION_FAILED)
    throw refusedOnLedger(settings, [right], error);
  if (PASSING.has(answer.code)) return;
  const said = answer.message === null ? "" : ` (${answer.message})`;
  const cure = "create it by hand as the README of the Kafka publisher describes, or correct ledger.replicationFactor";
  throw unfit(settings, `${what}: ${describeCode(answer.code)}${said}: ${cure}`, error);
}

async function verify(access: KafkaAccess, metadata: LedgerMetadata): Promise<void> {
  const { settings } = access;
  const configs = await describeConfigs(access, metadata);
  const policies = (configs.get(POLICY) ?? "").split(",").map((policy) => policy.trim());
  if (!policies.includes("compact") || policies.includes("delete")) {
    const found = `has ${POLICY}=${policies.join(",")} and would delete the record of what was delivered`;
    throw unfit(settings, `${found}: ${alter(settings, `${POLICY}=compact`)}`);
  }
  const inSync = Number(configs.get(IN_SYNC) ?? 1);
  const replicas = Math.min(...metadata.partitions.map((partition) => partition.replicas));
  if (inSync > replicas) {
    const found = `has ${replicas} replicas but ${IN_SYNC}=${inSync}, so no write can succeed`;
    throw unfit(settings, `${found}: ${alter(settings, `${IN_SYNC}=${replicas}`)}`);
  }
  if (configs.get(UNCLEAN) === "true") {
    const found = `has ${UNCLEAN}=true and may lose committed records`;
    throw unfit(settings, `${found}: ${alter(settings, `${UNCLEAN}=false`)}`);
  }
}

async function describeConfigs(
  access: KafkaAccess,
  metadata: LedgerMetadata,
): Promise<ReadonlyMap<string, string | null>> {
  const { topic } = access.settings.ledger;
  const resource = { resourceType: TOPIC_RESOURCE, resourceName: topic, configurationKeys: [POLICY, IN_SYNC, UNCLEAN] };
  try {
    const { results } = await askBroker<DescribedConfigs>(
      access,
      metadata.controller,
      "DescribeConfigs",
      [resource],
      false,
      false,
    );
    return new Map(results[0]?.configs.map(({ name, value }) => [name, value]));
  } catch (error) {
    const codes = answersIn(error).map(({ code }) => code);
    if (codes.includes(CODE.TOPIC_AUTHORIZATION_FAILED))
      throw refusedOnLedger(access.settings, ["DescribeConfigs"], error);
    throw error;
  }
}

function alter(settings: KafkaSettings, config: string): string {
  const where = `--bootstrap-server ${describeBrokers(settings.brokers)} --entity-type topics`;
  return `\`kafka-configs.sh ${where} --entity-name ${settings.ledger.topic} --alter --add-config ${config}\``;
}

function unready(settings: KafkaSettings, metadata: LedgerMetadata, slots: number): RelayError {
  const { code } = metadata;
  return unfit(settings, code === CODE.NONE ? tooFew(metadata, slots) : `is not ready: ${describeCode(code)}`);
}

function tooFew({ partitions }: LedgerMetadata, slots: number): string {
  return `has ${partitions.length} partitions, but ${slots} are needed`;
}

function ledgerOf({ brokers, ledger }: KafkaSettings): string {
  return `Kafka at ${describeBrokers(brokers)}: the ledger topic "${ledger.topic}"`;
}

function unfit(settings: KafkaSettings, what: string, cause?: unknown): RelayError {
  const text = `${ledgerOf(settings)} ${what}.`;
  return new RelayError("LEDGER_UNFIT", text, cause === undefined ? {} : { cause });
}
