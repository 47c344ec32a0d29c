import type { OnExhausted } from "../../core/hold.ts";
import type { Limits, Timing } from "../../core/limits.ts";
import { exponentialRetry, type RetryPolicy, scheduledRetry } from "../../core/retry-policy.ts";
import corpus from "./corpus.json" with { type: "json" };
import {
  CALL_FAULTS,
  EVENT_FAULTS,
  type FaultKind,
  type FaultRates,
  LATER_TIMED_FAULTS,
  LEDGER_FAULTS,
  MESSAGE_FAULTS,
  PAUSE_FAULTS,
  PUBLISH_FAULTS,
  TIMED_FAULTS,
  type TimedFault,
  TRANSACTION_FAULTS,
} from "./faults.ts";
import { misjudged, onlyKeyOf, tableFaultsOf, widened } from "./persistent-faults.ts";
import { withLaterFaults } from "./refused-marks.ts";
import { SeededRandom } from "./seeded-random.ts";
import type { BrokerOptions, TransactionOptions } from "./sim-broker.ts";

export type Fate =
  | { readonly kind: "fine" | "poison" | "rejected" | "silent" | "unreadable" | "too large" }
  | { readonly kind: "flaky"; readonly failures: number }
  /** Always refused with the scope of its topic or destination. */
  | { readonly kind: "misjudged"; readonly scope: "topic" | "destination"; readonly afterMs: number | null }
  | { readonly kind: "crash"; readonly when: "before" | "after" };

export interface EventPlan {
  readonly id: string;
  readonly key: string | null;
  readonly type: string;
  readonly fate: Fate;
  /** Additional bytes in a column other than the payload. */
  readonly wide?: { readonly column: "headers" | "correlationId"; readonly bytes: number };
}

/** A transaction of the application. It locks its keys until it commits. */
export interface WritePlan {
  readonly atMs: number;
  readonly commitsAfterMs: number;
  readonly events: readonly EventPlan[];
}

export interface TimedPlan {
  readonly atMs: number;
  readonly kind: TimedFault;
  /** A number that selects the process, destination or topic. */
  readonly target: number;
  readonly forMs: number;
  /** Commits that a failover loses, milliseconds of a clock step, or 0 for a pause that also hands over the lanes. */
  readonly amount: number;
}

/** A destination is down for an hour, while processes crash and stop. */
export interface OutagePlan {
  readonly atMs: number;
  readonly untilMs: number;
  /** Selects the destination. */
  readonly target: number;
  readonly ends: readonly {
    readonly atMs: number;
    readonly kind: "crash" | "graceful stop";
    readonly target: number;
  }[];
}

/** A destination permanently refuses all keys but this one with the scope of the topic or the destination. */
export interface OnlyKeyPlan {
  readonly destination: string;
  readonly key: string;
  readonly scope: "topic" | "destination";
}

export interface RoutePlan {
  readonly types: readonly string[];
  readonly destination: string;
  readonly retry: RetryPolicy;
  readonly onExhausted: OnExhausted;
}

/** Everything that a seed decides before the run. During the run it only decides the draws per call. */
export interface Scenario {
  readonly seed: number;
  /** Only single events, keys and topics fail: then others must not wait for them. */
  readonly isCalm: boolean;
  readonly lanes: number;
  readonly durableClaims: boolean;
  readonly claimLeaseMs: number;
  readonly limits: Partial<Limits>;
  readonly timing: Timing;
  readonly brokers: readonly BrokerOptions[];
  readonly routes: readonly RoutePlan[];
  readonly slowKeys: Readonly<Record<string, number>>;
  readonly writes: readonly WritePlan[];
  readonly timed: readonly TimedPlan[];
  readonly outage: OutagePlan | null;
  readonly onlyKey: OnlyKeyPlan | null;
  readonly rates: FaultRates;
  /** Probability that an id lost in a failover is reused, and the maximum delay. */
  readonly idsAgain: { readonly chance: number; readonly withinMs: number };
  /** When each process slot starts first, and how long it stays down after the process ends. */
  readonly slots: readonly { readonly startsAtMs: number; readonly restartsAfterMs: number }[];
  /** No faults after this time. */
  readonly calmFromMs: number;
}

export const PAYLOAD_BYTES_MAX = 64;
const TRANSACTIONAL_SHARE = 0.4;
const SEEDS_PER_OUTAGE = 1_000;
const HOUR_MS = 3_600_000;
/** Bounds the run time of the long seeds: more processes would only make them slower. */
const OUTAGE_SLOTS_MAX = 3;
const TYPES = ["a.placed", "a.paid", "b.sent"] as const;
const CALM_KINDS: readonly FaultKind[] = [
  ...EVENT_FAULTS.filter((kind) => kind !== "crash poison" && kind !== "never answered"),
  "topic down",
  "retry event",
  "retry topic",
  "busy",
  "refused",
];

export function scenarioOf(seed: number): Scenario {
  const random = new SeededRandom(seed, 1);
  const isCalm = random.chance(0.15);
  const calmFromMs = random.int(4_000, 25_000);
  // Faults that were added later have their own random stream, so that the seeds in the corpus keep their scenarios.
  const later = new SeededRandom(seed, 4);
  const rates = { ...swarm(random, new SeededRandom(seed, 3), isCalm), ...transactionRates(later, isCalm) };
  const timing = timingOf(random);
  const routes = routesOf(random);
  const hasOutage = seed % SEEDS_PER_OUTAGE === 0;
  const isOlder = corpus.seeds.includes(seed) || corpus.plain.includes(seed);
  const persistent = isOlder || hasOutage ? null : new SeededRandom(seed, 6);
  return withLaterFaults({
    seed,
    isCalm,
    lanes: random.pick([1, 1, 2, 3, 4]),
    durableClaims: random.chance(0.4),
    claimLeaseMs: claimLeaseOf(random.int(2, 6) * timing.leaseMs, timing.leaseMs, new SeededRandom(seed, 6)),
    limits: { ...limitsOf(random, isCalm), transactionSize: later.pick([1, 2, 3, 5, 10, 50]) },
    timing,
    brokers: brokersOf(random, routes).map((options) => withTransactions(later, options, seed)),
    routes,
    slowKeys:
      rates["slow key"] === undefined ? {} : { [keyName(0)]: random.int(50, Math.floor(timing.publishTimeoutMs / 2)) },
    writes: widened(
      isOlder ? null : new SeededRandom(seed, 8),
      misjudged(persistent, writesOf(random, rates, calmFromMs)),
    ),
    timed: [
      ...timedOf(random, rates, calmFromMs),
      ...laterTimedOf(later, isCalm, calmFromMs, seed),
      ...pausesOf(new SeededRandom(seed, 5), isCalm, calmFromMs, seed),
      ...tableFaultsOf(isOlder || hasOutage ? null : new SeededRandom(seed, 7), calmFromMs),
    ],
    onlyKey: onlyKeyOf(persistent, routes),
    outage: hasOutage ? outageOf(later, calmFromMs) : null,
    rates,
    idsAgain: idsAgainOf(isOlder ? null : new SeededRandom(seed, 9), rates),
    slots: slotsOf(random, calmFromMs).slice(0, hasOutage ? OUTAGE_SLOTS_MAX : undefined),
    calmFromMs,
  });
}

/** Frequent and immediate in some seeds: it causes harm only while an event with that id is in flight. */
function idsAgainOf(random: SeededRandom | null, rates: FaultRates): Scenario["idsAgain"] {
  if (rates.failover !== undefined && random?.chance(0.5)) return { chance: 0.8, withinMs: 200 };
  return { chance: (rates["id given out again"] ?? 0) * 5, withinMs: 3_000 };
}

/** At most as long as the lease of an instance, so that claims are renewed often and at different times. */
function claimLeaseOf(longMs: number, leaseMs: number, random: SeededRandom): number {
  return random.chance(0.5) ? longMs : Math.ceil(leaseMs * random.between(0.5, 1));
}

/** Each seed has only some of the faults: all of them together would hide bugs. */
function swarm(random: SeededRandom, extra: SeededRandom, isCalm: boolean): FaultRates {
  const rates: Partial<Record<FaultKind, number>> = {};
  const share = random.pick([0.1, 0.3, 0.6]);
  const add = (kinds: readonly FaultKind[], least: number, most: number): void => {
    for (const kind of kinds) {
      const isWanted = random.chance(share) && (!isCalm || CALM_KINDS.includes(kind));
      const rate = least * (most / least) ** random.next();
      if (isWanted) rates[kind] = rate;
    }
  };
  add(CALL_FAULTS, 0.000_5, 0.02);
  add(PUBLISH_FAULTS, 0.002, 0.05);
  add(MESSAGE_FAULTS, 0.002, 0.05);
  add(TIMED_FAULTS, 1, 4);
  add(EVENT_FAULTS, 0.005, 0.1);
  if (!isCalm && extra.chance(0.3)) rates["late renewal"] = extra.between(0.02, 0.3);
  return rates;
}

function transactionRates(random: SeededRandom, isCalm: boolean): FaultRates {
  const rates: Partial<Record<FaultKind, number>> = {};
  const share = random.pick([0.1, 0.3, 0.6]);
  const least = 0.005;
  const most = random.pick([0.02, 0.1, 0.25]);
  for (const kind of [...TRANSACTION_FAULTS, ...LEDGER_FAULTS]) {
    const isWanted = random.chance(share) && !isCalm;
    const rate = least * (most / least) ** random.next();
    if (isWanted) rates[kind] = rate;
  }
  // Cheap, and harmful only to an engine that ignores it while it has an open transaction.
  const repeats = rates["retried without an answer"];
  return repeats === undefined ? rates : { ...rates, "retried without an answer": 4 * repeats };
}

/** Small rings, so that the loss of old batches shows. Seeds from before transactions have none. */
function withTransactions(random: SeededRandom, options: BrokerOptions, seed: number): BrokerOptions {
  const isWanted = random.chance(TRANSACTIONAL_SHARE);
  const transactions: TransactionOptions = {
    ringSize: random.pick([2, 4, 4, 8, 16]),
    timeoutMs: random.pick([500, 3_000, 60_000]),
  };
  return isWanted && !corpus.plain.includes(seed) ? { ...options, deduplicates: false, transactions } : options;
}

function outageOf(random: SeededRandom, calmFromMs: number): OutagePlan {
  const atMs = random.between(0, calmFromMs * 0.6);
  const untilMs = atMs + HOUR_MS;
  const ends = Array.from({ length: random.int(0, 4) }, () => ({
    atMs: random.between(calmFromMs, untilMs),
    kind: random.pick(["crash", "graceful stop"] as const),
    target: random.int(0, 1_000),
  }));
  return { atMs, untilMs, target: random.int(0, 1_000), ends };
}

function timingOf(random: SeededRandom): Timing {
  const leaseMs = random.int(1_000, 8_000);
  return {
    leaseMs,
    leaseMarginMs: Math.floor(leaseMs / 5),
    pollIntervalMs: random.int(100, 800),
    pollBusyMs: random.int(1, 20),
    balanceMs: random.int(200, 1_500),
    publishTimeoutMs: random.int(300, Math.min(4_000, leaseMs - 1)),
    reviewMs: random.int(1_000, 10_000),
    backoffInitialMs: random.int(20, 200),
    backoffMaxMs: random.int(500, 4_000),
    shutdownMs: random.int(500, 8_000),
    unroutedMs: random.int(5_000, 60_000),
    circuitInitialMs: random.int(50, 500),
    circuitMaxMs: random.int(500, 10_000),
  };
}

/** In seeds that check the separation of keys, the brakes are off and there is room for more than one slow key. */
function limitsOf(random: SeededRandom, isCalm: boolean): Partial<Limits> {
  return {
    batchSize: random.pick([1, 2, 3, 5, 10, 50]),
    publishesPerLane: random.int(isCalm ? 2 : 1, 3),
    inFlightEventsMax: random.pick(isCalm ? [20, 100] : [2, 5, 20, 100]),
    inFlightBytesMax: random.pick(isCalm ? [20_000] : [100, 600, 20_000]),
    keyQueueMax: random.pick(isCalm ? [1, 2] : [1, 2, 5, 50]),
    pageRows: random.pick([1, 2, 3, 10, 100]),
    runRowsMax: random.pick([2, 5, 20, 1_000]),
    runMs: random.pick([50, 1_000, 10_000]),
    settleEventsMax: random.pick([1, 2, 5, 100]),
    payloadBytesMax: PAYLOAD_BYTES_MAX,
    holdsPerLaneMax: isCalm ? 10_000 : random.pick([3, 20, 10_000]),
    failuresInRowMax: isCalm ? 1_000 : random.pick([5, 20, 100]),
  };
}

function routesOf(random: SeededRandom): RoutePlan[] {
  const policy = (): Pick<RoutePlan, "retry" | "onExhausted"> => ({
    retry: random.chance(0.5)
      ? exponentialRetry({
          initialMs: random.int(10, 500),
          factor: random.pick([1, 2]),
          maxMs: random.int(500, 3_000),
          jitter: random.pick([0, 0.2]),
          attemptsMax: random.int(1, 5),
        })
      : scheduledRetry(Array.from({ length: random.int(0, 3) }, () => random.pick([0, 100, 1_000]))),
    onExhausted: random.pick(["park", "park", "block", "skip"]),
  });
  if (random.chance(0.5)) return [{ types: ["*"], destination: "first", ...policy() }];
  return [
    { types: ["a.*"], destination: "first", ...policy() },
    { types: ["b.*"], destination: "second", ...policy() },
  ];
}

function brokersOf(random: SeededRandom, routes: readonly RoutePlan[]): BrokerOptions[] {
  return routes.map(({ destination }) => ({
    name: destination,
    keyOrderInBatch: random.chance(0.5),
    deduplicates: random.chance(0.2),
    deliversAfterAbort: random.chance(0.3),
    transactions: null,
  }));
}

function writesOf(random: SeededRandom, rates: FaultRates, calmFromMs: number): WritePlan[] {
  const events = random.pick([10, 30, 60, 150]);
  const keys = random.int(1, 12);
  const nullShare = random.pick([0, 0.1, 0.5]);
  const hotShare = random.pick([0, 0, 0.7]);
  const writes: WritePlan[] = [];
  for (let id = 0; id < events; ) {
    const size = Math.min(events - id, random.pick([1, 1, 1, 2, 5]));
    const isLate = random.chance(rates["late writer"] ?? 0);
    const plans = Array.from({ length: size }, (_, index): EventPlan => {
      const key = random.chance(hotShare) ? keyName(0) : keyName(random.int(0, keys - 1));
      return {
        id: `e${id + index}`,
        key: random.chance(nullShare) ? null : key,
        type: random.pick(TYPES),
        fate: fateOf(random, rates),
      };
    });
    id += size;
    const atMs = random.between(0, calmFromMs * 0.85);
    writes.push({ atMs, commitsAfterMs: isLate ? random.int(50, 4_000) : random.between(0, 2), events: plans });
  }
  return writes.sort((left, right) => left.atMs - right.atMs);
}

function fateOf(random: SeededRandom, rates: FaultRates): Fate {
  const failures = random.int(1, 4);
  const when = random.pick(["before", "after"] as const);
  // Identifying an event that crashes the process takes several leases of virtual time: few such events are enough.
  const crashRate = Math.min(rates["crash poison"] ?? 0, 0.01);
  let draw = random.next();
  const falls = (rate: number | undefined): boolean => {
    draw -= rate ?? 0;
    return draw < 0;
  };
  if (falls(rates.poison)) return { kind: "poison" };
  if (falls(rates.flaky)) return { kind: "flaky", failures };
  if (falls(rates["always rejected"])) return { kind: "rejected" };
  if (falls(rates["never answered"])) return { kind: "silent" };
  if (falls(crashRate)) return { kind: "crash", when };
  if (falls(rates.unreadable)) return { kind: "unreadable" };
  if (falls(rates["too large"])) return { kind: "too large" };
  return { kind: "fine" };
}

function timedOf(random: SeededRandom, rates: FaultRates, calmFromMs: number): TimedPlan[] {
  return TIMED_FAULTS.flatMap((kind) => {
    const times = Math.round(rates[kind] ?? 0);
    return Array.from({ length: times }, () => ({
      kind,
      atMs: random.between(0, calmFromMs),
      target: random.int(0, 1_000),
      forMs: kind === "failover" ? random.pick([2, 100, 3_000]) : random.int(100, 8_000),
      amount: kind === "failover" ? random.int(0, 20) : random.int(200, 20_000),
    }));
  }).sort((left, right) => left.atMs - right.atMs);
}

function laterTimedOf(random: SeededRandom, isCalm: boolean, calmFromMs: number, seed: number): TimedPlan[] {
  const times = random.chance(0.3) && !isCalm && !corpus.plain.includes(seed) ? random.int(1, 4) : 0;
  return LATER_TIMED_FAULTS.flatMap((kind) =>
    Array.from({ length: times }, () => ({
      kind,
      atMs: random.between(0, calmFromMs),
      target: random.int(0, 1_000),
      forMs: 0,
      amount: 0,
    })),
  );
}

/** Every third pause also hands over the lanes. */
function pausesOf(random: SeededRandom, isCalm: boolean, calmFromMs: number, seed: number): TimedPlan[] {
  const isOlder = corpus.seeds.includes(seed) || corpus.plain.includes(seed);
  const times = random.chance(0.2) && !isCalm && !isOlder ? random.int(1, 4) : 0;
  return PAUSE_FAULTS.flatMap((kind) =>
    Array.from({ length: times }, () => ({
      kind,
      atMs: random.between(0, calmFromMs),
      target: random.int(0, 1_000),
      forMs: random.int(50, 10_000),
      amount: random.int(0, 2),
    })),
  );
}

function slotsOf(random: SeededRandom, calmFromMs: number): Scenario["slots"] {
  const count = random.pick([1, 1, 2, 2, 3, 4, 8]);
  return Array.from({ length: count }, (_, index) => ({
    startsAtMs: index === 0 ? 0 : random.between(0, calmFromMs * 0.5),
    restartsAfterMs: random.int(50, 3_000),
  }));
}

function keyName(index: number): string {
  return `k${index}`;
}
