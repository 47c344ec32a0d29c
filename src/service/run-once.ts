import { plural } from "../core/plural.ts";
import type { DrainReport } from "../relay/drain.ts";
import type { Engine } from "./engine.ts";
import { EXIT } from "./exit.ts";
import { type ProgressCounts, showProgress } from "./progress.ts";
import type { OnceResult } from "./running-service.ts";
import type { Service } from "./service.ts";

const FIGURES_MS = 2_000;

/** Delivers the current backlog and reports what is left. */
export async function runOnce(service: Service): Promise<OnceResult> {
  const engine = await service.prepare();
  if (engine === null) return { code: EXIT.ok, line: "there is no table to read" };
  const counter = new DeliveryCounter(engine);
  const hideProgress = showProgress(process.stderr, () => counter.counts());
  try {
    const first = await engine.relay.drain();
    const { count, unfinished } = await service.runPlans();
    const report = count === 0 ? first : await engine.relay.drain();
    const dead = (await engine.backlog.figures(FIGURES_MS)).reduce((sum, { last }) => sum + (last?.dead ?? 0), 0);
    return resultOf(
      counter.counts().delivered,
      { ...report, deadLetters: Math.max(report.deadLetters, dead) },
      unfinished,
    );
  } finally {
    hideProgress();
  }
}

/** Counts deliveries, and reads the backlog whenever a new count is available. */
class DeliveryCounter {
  readonly #backlog: Engine["backlog"];
  #delivered = 0;
  #failed = 0;
  #total: number | null = null;
  #isEstimate = false;
  #isAsking = false;
  /** The last figures, to detect new ones: the watch caches them. */
  #asked = "";

  constructor({ relay, backlog }: Engine) {
    this.#backlog = backlog;
    relay.on("BatchSettled", ({ delivered, failed }) => {
      this.#delivered += delivered;
      this.#failed += failed;
    });
  }

  counts(): ProgressCounts {
    if (process.stderr.isTTY && !this.#isAsking) void this.#ask();
    return { delivered: this.#delivered, failed: this.#failed, total: this.#total, isEstimate: this.#isEstimate };
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    const delivered = this.#delivered;
    const figures = (await this.#backlog.figures(FIGURES_MS)).flatMap(({ last }) => (last === null ? [] : [last]));
    this.#isAsking = false;
    const key = JSON.stringify(figures);
    if (key === this.#asked) return;
    this.#asked = key;
    this.#total = delivered + figures.reduce((sum, { pending }) => sum + pending, 0);
    this.#isEstimate = figures.some(({ isEstimate }) => isEstimate);
  }
}

/** The exit code and the closing line of a run that ends by itself. */
export function resultOf(delivered: number, report: DrainReport, plans: readonly string[] = []): OnceResult {
  const { blockedTopics, broken, deadLetters, elsewhere, paused, retrying, unreachable } = report;
  const stopped = paused.filter(({ waiting }) => waiting !== 0);
  const left = [
    deadLetters > 0 ? plural(deadLetters, "dead letter") : null,
    retrying > 0 ? `${retrying} wait for a retry` : null,
    blockedTopics.length > 0 ? `events for ${blockedTopics.join(", ")} wait for the topic` : null,
    elsewhere > 0 ? `${elsewhere} wait in lanes of other instances` : null,
    ...stopped.map(({ pipeline, waiting }) => `${waiting < 0 ? "some" : waiting} wait in ${pipeline}, which is paused`),
    plans.length > 0 ? `unfinished plans: ${plans.join(", ")}` : null,
    broken.length > 0 ? `not usable: ${broken.join(", ")}` : null,
    unreachable.length > 0 ? `not reachable: ${unreachable.join(", ")}` : null,
  ].filter((part) => part !== null);
  const line = [`${plural(delivered, "event")} delivered`, ...left].join("; ");
  if (unreachable.length > 0) return { code: EXIT.failed, line };
  return { code: left.length > 0 ? EXIT.partly : EXIT.ok, line };
}
