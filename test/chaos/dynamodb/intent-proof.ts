import { type DynamoDbOutbox, dynamodbOutbox, type NewIntent } from "../../../src/dynamodb-outbox.ts";
import { SeededRandom } from "../../../src/testing/simulator/seeded-random.ts";
import { COMMAND, runCommand, type ServiceProcess, startService } from "../../e2e/service-process.ts";
import { DYNAMODB_ENVIRONMENT, type DynamoDb, startDynamoDb } from "../../servers/dynamodb.ts";
import { writeRelays } from "../../servers/dynamodb-relays.ts";
import { freePort } from "../../servers/free-port.ts";
import { type HttpReceiver, startHttpReceiver } from "../../servers/http-receiver.ts";
import { createScratch } from "../../servers/scratch.ts";
import { until } from "../../servers/until.ts";

export interface ProofOptions {
  readonly intents: number;
  /** How often DynamoDB is killed, at even distances. */
  readonly kills: number;
  /** How often a runner is killed, in between. */
  readonly runnerKills: number;
  readonly runners: number;
  readonly seed: number;
  readonly drainMs: number;
  readonly log: (line: string) => void;
}

export interface Verdict {
  readonly intents: number;
  readonly kills: number;
  readonly runnerKills: number;
  /** Neither at their destination nor among the dead letters. */
  readonly lost: readonly string[];
  /** At the destination, and nobody wrote them. */
  readonly unknown: readonly string[];
  /** Arrivals whose header and body do not both carry the intent's id. */
  readonly withoutKey: readonly string[];
  /** Not marked delivered although they arrived. */
  readonly unmarked: readonly string[];
  readonly deadExpected: number;
  /** In the table of dead letters, with the error of each attempt. */
  readonly dead: readonly string[];
  readonly wronglyDead: readonly string[];
  readonly duplicates: number;
  /** What can be in flight at the kills. */
  readonly duplicatesMax: number;
  readonly seconds: number;
}

const TYPES = ["SyncToPayroll", "NotifyUser"] as const;
const BATCH = 25;
/** Of one relay: the batch that its handler has in hand. */
const IN_FLIGHT_MAX = 100;
/** So often a batch may be sent again after one blow: a server that is just starting may take the marks too late once. */
const SENT_AGAIN_MAX = 2;
const AHEAD_MAX = 400;
/** Every so many is refused at once, another one by every attempt. */
const POISON_EVERY = 100;
const CREDENTIALS = { accessKeyId: "local", secretAccessKey: "local" };

/** Writes intents, relays them by the CLI's runner, and kills DynamoDB and runners meanwhile. */
export async function proveIntents(options: ProofOptions): Promise<Verdict> {
  const { intents, log } = options;
  await using started = new AsyncDisposableStack();
  const scratch = createScratch("dynamodb-proof", "memory");
  started.defer(() => scratch.remove());
  const [dynamodb, receiver] = await Promise.all([startDynamoDb(), startHttpReceiver()]);
  started.use(dynamodb);
  started.use(receiver);
  writeRelays(
    scratch.path,
    TYPES.map((type) => ({ type, url: `${receiver.origin}/${type}`, delaysMs: [50, 100] })),
  );
  const stand: Stand = {
    dynamodb,
    receiver,
    folder: scratch.path,
    fleet: [],
    written: [],
    arrivals: new Arrivals(receiver),
  };
  const outbox = openOutbox(dynamodb);
  started.defer(() => outbox.close());
  const created = await runCommand(["dynamodb", "create"], await variables(dynamodb), scratch.path);
  if (created.code !== 0) throw new Error(created.stderr);
  started.defer(() => stopAll(stand));
  for (let n = 0; n < options.runners; n += 1) stand.fleet.push(await startRunner(stand));
  const beganMs = performance.now();
  const writing = writeAll(outbox, stand, options);
  const struck = await strike(stand, options);
  await writing;
  log(`all ${intents} are written`);
  await until("everything is delivered or dead", () => isSettled(outbox, stand), options.drainMs);
  const seconds = (performance.now() - beganMs) / 1_000;
  const duplicatesMax = (options.kills + options.runnerKills) * TYPES.length * IN_FLIGHT_MAX * SENT_AGAIN_MAX;
  return { ...(await judge(outbox, stand)), ...struck, intents, seconds, duplicatesMax };
}

interface Stand {
  readonly dynamodb: DynamoDb;
  readonly receiver: HttpReceiver;
  readonly folder: string;
  readonly fleet: ServiceProcess[];
  readonly written: { readonly id: string; readonly isPoison: boolean }[];
  readonly arrivals: Arrivals;
}

/** How many have arrived, without reading everything again each time. */
class Arrivals {
  readonly #receiver: HttpReceiver;
  #count = 0;
  #readMs = Number.NEGATIVE_INFINITY;

  constructor(receiver: HttpReceiver) {
    this.#receiver = receiver;
  }

  count(): number {
    if (performance.now() - this.#readMs > 100) {
      this.#count = this.#receiver.arrivals().length;
      this.#readMs = performance.now();
    }
    return this.#count;
  }
}

async function variables({ endpoint }: DynamoDb): Promise<Record<string, string>> {
  return {
    ...DYNAMODB_ENVIRONMENT,
    DYNAMODB_ENDPOINT: endpoint,
    OUTBOX_DYNAMODB_SWEEP_INTERVAL: "200ms",
    OUTBOX_DYNAMODB_TIMEOUT: "4s",
    BATCH_SIZE: String(IN_FLIGHT_MAX),
    POLL_INTERVAL_MS: "50",
    PUBLISH_TIMEOUT: "1s",
    LEASE_TIMEOUT: "3s",
    PORT: String(await freePort()),
  };
}

async function startRunner({ dynamodb, folder }: Stand): Promise<ServiceProcess> {
  return startService(["dynamodb", "run"], await variables(dynamodb), COMMAND, folder);
}

function openOutbox({ endpoint }: DynamoDb): DynamoDbOutbox {
  return dynamodbOutbox({ endpoint, region: DYNAMODB_ENVIRONMENT.AWS_REGION, credentials: CREDENTIALS });
}

async function stopAll({ fleet }: Stand): Promise<void> {
  await Promise.all(fleet.map((runner) => runner[Symbol.asyncDispose]()));
}

/** Only a little ahead of the runner, so that what is killed is killed amid both. */
async function writeAll(outbox: DynamoDbOutbox, stand: Stand, { drainMs, intents, seed }: ProofOptions): Promise<void> {
  for (let first = 0; first < intents; first += BATCH) {
    const room = () => stand.written.length - stand.arrivals.count() < AHEAD_MAX + intents / POISON_EVERY;
    await until("the relays follow", room, drainMs);
    const numbers = Array.from({ length: Math.min(BATCH, intents - first) }, (_, index) => first + index);
    const batch = numbers.map((number) => newIntent(number, seed));
    await until("the outbox takes the intents", () =>
      outbox.write(batch).then(
        () => true,
        () => false,
      ),
    );
    for (const [index, { id = "" }] of batch.entries()) {
      stand.written.push({ id, isPoison: mannerOf(first + index) !== undefined });
    }
  }
}

function newIntent(number: number, seed: number): NewIntent {
  const manner = mannerOf(number);
  const type = TYPES[number % TYPES.length]!;
  const payload = { number, ...(manner === undefined ? {} : { manner }) };
  return { id: `${seed}-${number}`, type, key: `key-${number % 50}`, payload };
}

function mannerOf(number: number): string | undefined {
  if (number % POISON_EVERY === 7) return "status:422";
  return number % POISON_EVERY === 57 ? "status:503" : undefined;
}

async function strike(stand: Stand, options: ProofOptions): Promise<{ kills: number; runnerKills: number }> {
  const { dynamodb, fleet } = stand;
  const { drainMs, intents, kills, log, runnerKills } = options;
  const blows = [...Array(kills).fill("dynamodb"), ...Array(runnerKills).fill("runner")] as const;
  const random = new SeededRandom(options.seed);
  const order = blows.map((blow) => ({ blow, draw: random.next() })).sort((one, two) => one.draw - two.draw);
  for (const [index, { blow }] of order.entries()) {
    const at = Math.floor((intents * 0.9 * (index + 0.5 + random.next() * 0.4)) / order.length);
    await until(`${at} have arrived`, () => stand.arrivals.count() >= at, drainMs);
    log(`${at} have arrived: kill -9 of ${blow}`);
    if (blow === "dynamodb") await dynamodb.restart();
    else {
      const runner = fleet[index % fleet.length]!;
      runner.kill("SIGKILL");
      await runner.ended;
      fleet[index % fleet.length] = await startRunner(stand);
    }
  }
  return { kills, runnerKills };
}

async function isSettled(outbox: DynamoDbOutbox, { written }: Stand): Promise<boolean> {
  try {
    const found = await outbox.read(written.map(({ id }) => id));
    return [...found.values()].every(({ deliveredAt }) => deliveredAt !== null);
  } catch {
    return false;
  }
}

async function judge(outbox: DynamoDbOutbox, stand: Stand) {
  const { receiver, written } = stand;
  const seen = new Map<string, number>();
  const withoutKey: string[] = [];
  for (const { body, headers, url } of receiver.arrivals()) {
    const id = headers["idempotency-key"] ?? "";
    const { idempotency_key: inBody, number } = JSON.parse(body.toString()) as {
      idempotency_key: string;
      number: number;
    };
    seen.set(id, (seen.get(id) ?? 0) + 1);
    const isRight = id !== "" && id === inBody && id.endsWith(`-${number}`) && TYPES.some((type) => url === `/${type}`);
    if (!isRight) withoutKey.push(`${id} ${url} ${body.toString()}`);
  }
  const letters = await outbox.deadLetters({ limit: written.length });
  const dead = new Set(letters.filter(({ errors }) => errors.length > 0).map(({ id }) => id));
  const marked = await outbox.read(written.map(({ id }) => id));
  const known = new Set(written.map(({ id }) => id));
  return {
    lost: written.filter(({ id }) => !seen.has(id) && !dead.has(id)).map(({ id }) => id),
    unknown: [...seen.keys()].filter((id) => !known.has(id)),
    withoutKey,
    unmarked: [...seen.keys()].filter((id) => !marked.get(id)?.deliveredAt),
    deadExpected: written.filter(({ isPoison }) => isPoison).length,
    dead: [...dead],
    wronglyDead: written.filter(({ id, isPoison }) => !isPoison && dead.has(id)).map(({ id }) => id),
    duplicates: [...seen.values()].reduce((sum, count) => sum + count - 1, 0),
  };
}

export function describeVerdict(verdict: Verdict): string {
  const {
    dead,
    deadExpected,
    duplicates,
    duplicatesMax,
    intents,
    kills,
    lost,
    runnerKills,
    seconds,
    unknown,
    unmarked,
    withoutKey,
  } = verdict;
  return [
    `${intents} intents in ${seconds.toFixed(1)} s, DynamoDB killed ${kills} times, runners ${runnerKills} times:`,
    `${lost.length} lost, ${duplicates} duplicates (at most ${duplicatesMax}), ${dead.length} of ${deadExpected} expected dead letters,`,
    `${withoutKey.length} without their key, ${unknown.length} unknown, ${unmarked.length} unmarked`,
  ].join(" ");
}

/** All that must be empty. */
export function faultsOf({ lost, unknown, unmarked, withoutKey, wronglyDead }: Verdict) {
  return { lost, unknown, unmarked, withoutKey, wronglyDead };
}
