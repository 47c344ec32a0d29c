import { FlowMeter } from "../../telemetry/flow-meter.ts";
import type { Status } from "../status.ts";

/** Of one pipeline, or of all together. */
interface Pace {
  /** Null before there were two looks. */
  readonly publishedPerSecond: number | null;
  readonly pending: number | null;
  readonly isEstimate: boolean;
  readonly oldestAgeMs: number | null;
  readonly retrying: number;
  readonly parkedKeys: number;
  readonly deadLetters: number;
}

/** One look at all pipelines, with the pace of each. */
export interface TopSnapshot extends Pace {
  readonly at: string;
  readonly relaySchema: string;
  readonly pipelines: readonly TopPipeline[];
  readonly instances: Status["instances"];
  readonly problems: readonly string[];
}

export interface TopPipeline extends Pace {
  readonly pipeline: string;
  readonly state: "running" | "paused" | "broken" | "not served";
  readonly lanes: number;
  readonly ownedLanes: number;
}

const RATE_MS = 4_000;
const PACES_MAX = 600;

/** Makes rates of the totals that the lanes have, look by look. */
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

  /** All pipelines together, look by look, the oldest first. */
  get paces(): readonly number[] {
    return this.#paces;
  }

  snapshot(status: Status, atWallMs: number): TopSnapshot {
    const rate = (names: readonly string[]) =>
      this.#lastMs === null ? null : rounded(this.#flow.publishedSince(names, this.#lastMs - RATE_MS));
    const { instances, pipelines, problems, relaySchema } = status;
    const counted = pipelines.flatMap(({ pending }) => pending ?? []);
    const ages = pipelines.flatMap(({ oldestAgeMs }) => oldestAgeMs ?? []);
    const sum = (count: (pipeline: Status["pipelines"][number]) => number) =>
      pipelines.reduce((total, pipeline) => total + count(pipeline), 0);
    return {
      at: new Date(atWallMs).toISOString(),
      relaySchema,
      publishedPerSecond: rate(pipelines.map(({ pipeline }) => pipeline)),
      pending: counted.length < pipelines.length ? null : counted.reduce((total, pending) => total + pending, 0),
      isEstimate: pipelines.some(({ isEstimate }) => isEstimate),
      oldestAgeMs: ages.length === 0 ? null : Math.max(...ages),
      retrying: sum(({ retrying }) => retrying),
      parkedKeys: sum(({ parkedKeys }) => parkedKeys),
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
        deadLetters: it.deadLetters,
        lanes: it.lanes,
        ownedLanes: it.ownedLanes,
      })),
      instances,
      problems,
    };
  }
}

function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value * 100) / 100;
}
