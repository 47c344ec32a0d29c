import type { PipelineContext } from "../context.ts";
import type { Lane } from "../lane.ts";
import { Chore } from "./chore.ts";
import { CHECKS_PER_PERIOD, MismatchReports } from "./mismatch-reports.ts";
import { SourceWarnings } from "./source-warnings.ts";

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
