import { FlowMeter } from "../../telemetry/metrics/flow-meter.ts";
import type { PIPELINE_STATES, Status } from "../pipelines/status.ts";

/** Rates and backlog of one pipeline, or of all together. */
interface Pace {
  /** Null before the second snapshot. */
  readonly publishedPerSecond: number | null;
  readonly pending: number | null;
  readonly isEstimate: boolean;
  readonly oldestAgeMs: number | null;
  readonly retrying: number;
  readonly parkedKeys: number;
  /** Events that wait behind a dead letter; null when not counted. */
  readonly behindDeadLetters: number | null;
  readonly deadLetters: number;
}

/** All pipelines at one moment, with their rates. */
export interface TopSnapshot extends Pace {
  readonly at: string;
  readonly relaySchema: string;
  readonly pipelines: readonly TopPipeline[];
  readonly unrouted: Status["unrouted"];
  readonly instances: Status["instances"];
  readonly grade: Status["grade"];
  readonly causes: Status["causes"];
  readonly problems: readonly string[];
}

/** One pipeline of a snapshot. */
export interface TopPipeline extends Pace {
  readonly pipeline: string;
  readonly state: (typeof PIPELINE_STATES)[number];
  readonly lanes: number;
  readonly ownedLanes: number;
}

const RATE_MS = 4_000;
const PACES_MAX = 600;

/** Derives rates from the lanes' totals of successive snapshots. */
export class TopMeter {
  readonly #flow = new FlowMeter();
  #lastMs: number | null = null;
  #paces: readonly number[] = [];

  sample(atMs: number, totals: ReadonlyMap<string, bigint>): void {
    this.#flow.sample(atMs, new Map([...totals].map(([pipeline, total]) => [pipeline, Number(total)])));
    const pace = this.#lastMs === null ? null : this.#flow.publishedSince([...totals.keys()], this.#lastMs);
    if (pace !== null) this.#paces = [...this.#paces, pace].slice(-PACES_MAX);
    this.#lastMs = atMs;
  }

  /** The total rate of each snapshot, oldest first. */
  get paces(): readonly number[] {
    return this.#paces;
  }

  snapshot(status: Status, atWallMs: number): TopSnapshot {
    const rate = (names: readonly string[]) =>
      this.#lastMs === null ? null : rounded(this.#flow.publishedSince(names, this.#lastMs - RATE_MS));
    const { causes, grade, instances, pipelines, problems, relaySchema, unrouted } = status;
    const isCounted = pipelines.every(({ pending }) => pending !== null);
    const ages = pipelines.flatMap(({ oldestAgeMs }) => oldestAgeMs ?? []);
    const sum = (count: (pipeline: Status["pipelines"][number]) => number) =>
      pipelines.reduce((total, pipeline) => total + count(pipeline), 0);
    return {
      at: new Date(atWallMs).toISOString(),
      relaySchema,
      publishedPerSecond: rate(pipelines.map(({ pipeline }) => pipeline)),
      pending: isCounted ? sum(({ pending }) => pending ?? 0) : null,
      isEstimate: pipelines.some(({ isEstimate }) => isEstimate),
      oldestAgeMs: ages.length === 0 ? null : Math.max(...ages),
      retrying: sum(({ retrying }) => retrying),
      parkedKeys: sum(({ parkedKeys }) => parkedKeys),
      behindDeadLetters: isCounted ? sum(({ behindDeadLetters }) => behindDeadLetters ?? 0) : null,
      deadLetters: sum(({ deadLetters }) => deadLetters),
      pipelines: pipelines.map((it) => ({
        pipeline: it.pipeline,
        state: it.state,
        publishedPerSecond: rate([it.pipeline]),
        pending: it.pending,
        isEstimate: it.isEstimate,
        oldestAgeMs: it.oldestAgeMs,
        retrying: it.retrying,
        parkedKeys: it.parkedKeys,
        behindDeadLetters: it.behindDeadLetters,
        deadLetters: it.deadLetters,
        lanes: it.lanes,
        ownedLanes: it.ownedLanes,
      })),
      unrouted,
      instances,
      grade,
      causes,
      problems,
    };
  }
}

function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value * 100) / 100;
}
