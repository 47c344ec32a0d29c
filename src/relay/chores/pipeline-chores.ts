import type { PipelineContext } from "../context.ts";
import type { Lane } from "../lane.ts";
import { Chore } from "./chore.ts";

/** Delivered rows are deleted in steps of this many. */
const PRUNE_ROWS = 1_000;
const PRUNE_EVERY_MS = 5_000;
/** Enough to keep up with any drain, few enough to leave the database its breath. */
const PRUNE_STEPS = 200;
const STALE_ROWS = 1_000;
/** Every so many reviews also of lanes that know of no hold: a database that forgot its last commits may have one again. */
const THOROUGH_REVIEW = 10;

interface ChoreHost {
  lanes(): readonly Lane[];
  readonly owner: string;
  /** Delivered rows older than this are deleted; null keeps them. */
  readonly retentionMs: number | null;
}

/** What a pipeline does beside delivering. Work on the whole source is done by the owner of lane 0 alone. */
export function pipelineChores(context: PipelineContext, host: ChoreHost): Chore[] {
  const { clock, events, name: pipeline, store, timing } = context;
  let reviews = 0;
  const ownsFirstLane = () => host.lanes().some((lane) => lane.isOpen && lane.grant.lane === 0);
  const chore = (name: string, everyMs: number, run: () => Promise<void>) =>
    new Chore({ name, pipeline, everyMs, clock, events, run });

  const chores = [
    chore("review holds", timing.reviewMs, async () => {
      reviews += 1;
      const isThorough = reviews % THOROUGH_REVIEW === 0;
      for (const lane of host.lanes()) {
        if (lane.isOpen && (lane.holds.size > 0 || isThorough)) await lane.reviewHolds();
      }
    }),
    chore("rest idle lanes", timing.reviewMs, async () => {
      for (const lane of host.lanes()) await lane.rest();
    }),
    chore("report unrouted", timing.unroutedMs, async () => {
      if (!ownsFirstLane()) return;
      for (const { type, count } of await store.unrouted()) {
        events.emit("RelayMismatch", { pipeline, intentType: type, count });
      }
    }),
  ];
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
  const { durableClaims } = store;
  if (durableClaims !== null) {
    chores.push(
      chore("refresh claims", durableClaims.leaseMs / 4, async () => {
        await durableClaims.refresh(
          host.owner,
          host.lanes().flatMap((lane) => lane.claimedIds()),
        );
      }),
      chore("reap stale claims", Math.min(3 * timing.reviewMs, durableClaims.leaseMs / 4), async () => {
        if (!ownsFirstLane()) return;
        const { freed, dead } = await durableClaims.reapStale(STALE_ROWS);
        if (freed + dead > 0) events.emit("StaleClaimsReaped", { pipeline, freed, dead });
      }),
    );
  }
  return chores;
}
