import { setTimeout as pauseMs } from "node:timers/promises";
import { RelayError } from "../../core/errors.ts";
import { describeBrokers, type KafkaSettings } from "./kafka-config.ts";
import { CODE, describeCode } from "./kafka-error-codes.ts";
import { answersIn } from "./kafka-errors.ts";
import { askBroker, findLedger, type KafkaAccess, type LedgerPlace } from "./ledger-place.ts";
import { missingRights, refusedOnLedger } from "./transaction-rights.ts";

interface DescribedConfigs {
  readonly results: readonly {
    readonly configs: readonly { readonly name: string; readonly value: string | null }[];
  }[];
}

const TOPIC_RESOURCE = 2;
const READY_PAUSE_MS = 20;
/** How long it may take until all brokers know of a new topic and of its partitions. */
const PATIENCE_MS = 15_000;

/**
 * How the ledger is created. Small segments, because only closed ones are compacted, and a lane that was idle for long
 * has to look through what is not. Records as they were sent, so that this client can read them. Room for notes of
 * thousands of long ids.
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

/** Creates the ledger, gives it as many partitions as there are slots, and checks that it keeps what it is told. */
export async function prepareLedger(access: KafkaAccess, slots: number): Promise<void> {
  const giveUpMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const place = await findLedger(access);
    if (place.code === CODE.TOPIC_AUTHORIZATION_FAILED) throw refusedOnLedger(access.settings, ["Describe"]);
    const missing = place.code === CODE.NONE ? missingRights(place.rights) : [];
    if (missing.length > 0) throw refusedOnLedger(access.settings, missing);
    if (place.code === CODE.NONE && place.partitions.length >= slots) return await verify(access, place);
    if (performance.now() > giveUpMs) throw unready(access.settings, place, slots);
    if (place.code === CODE.UNKNOWN_TOPIC_OR_PARTITION) await create(access, place, slots);
    else if (place.code === CODE.NONE && place.partitions.length < slots) await grow(access, place, slots);
    await pauseMs(READY_PAUSE_MS);
  }
}

async function create(access: KafkaAccess, { controller }: LedgerPlace, slots: number): Promise<void> {
  const { ledger, requestTimeoutMs } = access.settings;
  const configs = Object.entries(CREATION).map(([name, value]) => ({ name, value }));
  const { topic: name, replicationFactor } = ledger;
  const topic = { name, numPartitions: slots, replicationFactor, assignments: [], configs };
  try {
    await askBroker(access, controller, "CreateTopics", [topic], requestTimeoutMs, false);
  } catch (error) {
    throwUnlessPassing(access.settings, error, "Create", "could not be created");
  }
}

/** Never fewer: the partitions of other lanes stay where they are. */
async function grow(access: KafkaAccess, { controller }: LedgerPlace, slots: number): Promise<void> {
  const { ledger, requestTimeoutMs } = access.settings;
  const topic = { name: ledger.topic, count: slots, assignments: null };
  try {
    await askBroker(access, controller, "CreatePartitions", [topic], requestTimeoutMs, false);
  } catch (error) {
    throwUnlessPassing(access.settings, error, "Alter", `needs ${slots} partitions and could not get them`);
  }
}

/** Answers that only say that another relay was faster, or that the cluster is not ready. */
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
  const cure = "create it by hand as its README says, or correct ledger.replicationFactor";
  throw unfit(settings, `${what}: ${describeCode(answer.code)}${said}: ${cure}`, error);
}

async function verify(access: KafkaAccess, place: LedgerPlace): Promise<void> {
  const { settings } = access;
  const configs = await describeConfigs(access, place);
  const policies = (configs.get(POLICY) ?? "").split(",").map((policy) => policy.trim());
  if (!policies.includes("compact") || policies.includes("delete")) {
    const found = `has ${POLICY}=${policies.join(",")} and would forget what was delivered`;
    throw unfit(settings, `${found}: ${alter(settings, `${POLICY}=compact`)}`);
  }
  const inSync = Number(configs.get(IN_SYNC) ?? 1);
  const replicas = Math.min(...place.partitions.map((partition) => partition.replicas));
  if (inSync > replicas) {
    const found = `has ${replicas} replicas but ${IN_SYNC}=${inSync}, so that nothing can be written`;
    throw unfit(settings, `${found}: ${alter(settings, `${IN_SYNC}=${replicas}`)}`);
  }
  if (configs.get(UNCLEAN) === "true") {
    const found = `has ${UNCLEAN}=true and may lose what was committed`;
    throw unfit(settings, `${found}: ${alter(settings, `${UNCLEAN}=false`)}`);
  }
}

async function describeConfigs(access: KafkaAccess, place: LedgerPlace): Promise<ReadonlyMap<string, string | null>> {
  const { topic } = access.settings.ledger;
  const resource = { resourceType: TOPIC_RESOURCE, resourceName: topic, configurationKeys: [POLICY, IN_SYNC, UNCLEAN] };
  try {
    const { results } = await askBroker<DescribedConfigs>(
      access,
      place.controller,
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

function unready(settings: KafkaSettings, { code, partitions }: LedgerPlace, slots: number): RelayError {
  if (code !== CODE.NONE) return unfit(settings, `is not ready: ${describeCode(code)}`);
  return unfit(settings, `has ${partitions.length} partitions, and ${slots} are needed`);
}

function unfit(settings: KafkaSettings, what: string, cause?: unknown): RelayError {
  const where = `Kafka at ${describeBrokers(settings.brokers)}`;
  const text = `${where}: the ledger topic "${settings.ledger.topic}" ${what}.`;
  return new RelayError("LEDGER_UNFIT", text, cause === undefined ? {} : { cause });
}
