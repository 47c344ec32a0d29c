import type { QueueStore, SourceWarning } from "../../ports/queue-store.ts";
import type { TechnicalEvents } from "../../ports/technical-events.ts";
import type { PipelineContext } from "../context.ts";
import type { Lane } from "../lane.ts";
import { Chore } from "./chore.ts";

/** Delivered rows are deleted in steps of this many. */
const PRUNE_ROWS = 1_000;
const PRUNE_EVERY_MS = 5_000;
/** Enough steps to keep up with any drain, few enough not to overload the database. */
const PRUNE_STEPS = 200;
/**
 * A replayed or discarded dead letter takes effect within this time while the lane has few holds. A review reads each
 * hold, so a lane with many is reviewed less often, but at least every `reviewMs`.
 */
const REVIEW_SOON_MS = 2_000;
const REVIEW_PER_HOLD_MS = 10;
/**
 * In multiples of `reviewMs`: lanes without a hold in memory. A database that lost its last commits may have restored
 * one.
 */
const THOROUGH_REVIEW = 10;

interface ChoreHost {
  lanes(): readonly Lane[];
  readonly owner: string;
  /** Delivered rows older than this are deleted; null keeps them for ever. */
  readonly retentionMs: number | null;
}

/**
 * The periodic work of a pipeline. Work on the whole source is done only by the owner of lane 0, so that it is done
 * once.
 */
export function pipelineChores(context: PipelineContext, host: ChoreHost): Chore[] {
  const { clock, events, name: pipeline, store, timing } = context;
  const reviewedMs = new WeakMap<Lane, number>();
  const ownsFirstLane = () => host.lanes().some((lane) => lane.isOpen && lane.grant.lane === 0);
  const mismatches = new MismatchReports(pipeline, events);
  const chore: MakeChore = (name, everyMs, run) => new Chore({ name, pipeline, everyMs, clock, events, run });

  const chores = [
    chore("review holds", Math.min(REVIEW_SOON_MS, timing.reviewMs), async () => {
      for (const lane of host.lanes()) {
        const nowMs = clock.monotonicMs();
        const lastMs = reviewedMs.get(lane) ?? nowMs;
        const isDue = nowMs - lastMs >= reviewPauseMs(lane.holds.size, timing.reviewMs);
        if (isDue || !reviewedMs.has(lane)) reviewedMs.set(lane, nowMs);
        if (lane.isOpen && isDue) await lane.reviewHolds();
      }
    }),
    chore("rest idle lanes", timing.reviewMs, async () => {
      for (const lane of host.lanes()) await lane.rest();
    }),
    chore("report unrouted", timing.unroutedMs / CHECKS_PER_PERIOD, async () => {
      mismatches.update(ownsFirstLane() ? await store.unrouted() : []);
    }),
  ];
  if (store.warnings !== undefined) {
    const warnings = new SourceWarnings(pipeline, events, () => store.warnings!());
    const run = () => warnings.check();
    chores.push(
      new Chore({
        name: "look for warnings",
        pipeline,
        everyMs: 3 * timing.reviewMs,
        atOnce: true,
        clock,
        events,
        run,
      }),
    );
  }
  const { retentionMs } = host;
  if (retentionMs !== null) {
    chores.push(
      chore("prune", PRUNE_EVERY_MS, async () => {
        if (!ownsFirstLane()) return;
        let count = 0;
        for (let step = 0; step < PRUNE_STEPS && count === step * PRUNE_ROWS; step += 1) {
          count += await store.prune(retentionMs, PRUNE_ROWS);
        }
        if (count > 0) events.emit("EventsPruned", { pipeline, count });
      }),
    );
  }
  return [...chores, ...claimChores(context, host, chore, ownsFirstLane)];
}

type MakeChore = (name: string, everyMs: number, run: () => Promise<void>) => Chore;

/** Renews this instance's durable claims and frees those of dead relays. */
function claimChores(
  { events, limits, name: pipeline, store, timing }: PipelineContext,
  host: ChoreHost,
  chore: MakeChore,
  ownsFirstLane: () => boolean,
): Chore[] {
  const { durableClaims } = store;
  if (durableClaims === null) return [];
  return [
    chore("refresh claims", durableClaims.leaseMs / 4, async () => {
      await durableClaims.refresh(
        host.owner,
        host.lanes().flatMap((lane) => lane.claims.ids()),
      );
    }),
    chore("reap stale claims", Math.min(3 * timing.reviewMs, durableClaims.leaseMs / 4), async () => {
      if (!ownsFirstLane()) return;
      const { freed, dead } = await durableClaims.reapStale(limits.reapRowsMax);
      if (freed + dead > 0) events.emit("StaleClaimsReaped", { pipeline, freed, dead });
    }),
  ];
}

function reviewPauseMs(holds: number, reviewMs: number): number {
  if (holds === 0) return THOROUGH_REVIEW * reviewMs;
  return Math.min(reviewMs, holds * REVIEW_PER_HOLD_MS);
}

/** Checks within the time for which no instance must have taken a type. */
const CHECKS_PER_PERIOD = 2;

/** A bound: a table full of invalid types must not cause a flood of reports. */
const TYPES_REPORTED_MAX = 100;

/**
 * Reports a type that no instance takes, once, and reports again when that is over. It does not report at the first
 * check: during a rolling deployment, for a moment no instance may take a type.
 */
class MismatchReports {
  readonly #pipeline: string;
  readonly #events: TechnicalEvents;
  /** By type: the checks in a row in which no instance took it. */
  #checks = new Map<string, number>();
  readonly #reported = new Set<string>();

  constructor(pipeline: string, events: TechnicalEvents) {
    this.#pipeline = pipeline;
    this.#events = events;
  }

  /** Takes the result of one check. */
  update(unrouted: readonly { readonly type: string; readonly count: number }[]): void {
    const checks = new Map(unrouted.map(({ type }) => [type, (this.#checks.get(type) ?? 0) + 1]));
    this.#checks = checks;
    for (const type of this.#reported) {
      if (checks.has(type)) continue;
      this.#reported.delete(type);
      this.#events.emit("RelayMatched", { pipeline: this.#pipeline, intentType: type });
    }
    for (const { type: intentType, count } of unrouted) {
      const isDue = checks.get(intentType)! > CHECKS_PER_PERIOD;
      if (!isDue || this.#reported.has(intentType) || this.#reported.size >= TYPES_REPORTED_MAX) continue;
      this.#reported.add(intentType);
      this.#events.emit("RelayMismatch", { pipeline: this.#pipeline, intentType, count, recordId: null });
    }
  }
}

/** Reports each warning of a source once, again when its text changes, and once more when it is over. */
class SourceWarnings {
  readonly #pipeline: string;
  readonly #events: TechnicalEvents;
  readonly #ask: NonNullable<QueueStore["warnings"]>;
  #reported: readonly SourceWarning[] = [];

  constructor(pipeline: string, events: TechnicalEvents, ask: NonNullable<QueueStore["warnings"]>) {
    this.#pipeline = pipeline;
    this.#events = events;
    this.#ask = ask;
  }

  /** Reads the present warnings and reports what has changed since the last check. */
  async check(): Promise<void> {
    const before = this.#reported;
    const now = await this.#ask();
    this.#reported = now;
    for (const { code } of before) {
      if (now.every((warning) => warning.code !== code)) {
        this.#events.emit("SourceWarningEnded", { pipeline: this.#pipeline, code });
      }
    }
    for (const { code, reason } of now) {
      if (before.some((warning) => warning.code === code && warning.reason === reason)) continue;
      this.#events.emit("SourceWarned", { pipeline: this.#pipeline, code, reason });
    }
  }
}
