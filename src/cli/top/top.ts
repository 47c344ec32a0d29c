import { loadSettings } from "../../config/load-config.ts";
import { systemClock } from "../../core/clock.ts";
import { reasonOf } from "../../core/errors.ts";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import { deliveredFigures } from "../../operations/overview/relay-figures.ts";
import { TopMeter } from "../../operations/overview/top-meter.ts";
import { readStatus, type Status } from "../../operations/pipelines/status.ts";
import { CachedQuery } from "../../telemetry/cached-query.ts";
import { configSources } from "../config-sources.ts";
import { type Form, printJson } from "../terminal/output.ts";
import { type AnswerTimes, NO_ANSWERS, readAnswerTimes, relayUrls } from "./answer-times.ts";
import { allProblems, topScreen } from "./top-screen.ts";
import { TopTerminal } from "./top-terminal.ts";

/** The options of `top`. */
export interface TopFlags {
  readonly once?: boolean;
  readonly url?: readonly string[];
  readonly output: Form;
}

const REFRESH_EVERY_MS = 1_000;
/** The backlog is counted less often than the screen is drawn. */
const STATUS_EVERY_MS = 3_000;
const ANSWER_WAIT_MS = 500;

/** Draws until the user quits; without a terminal, prints once. */
export async function top(target: OperationTarget, { once = false, output, url = [] }: TopFlags): Promise<void> {
  const meter = new TopMeter();
  const answers = await answersOf(url);
  if (once || output === "json" || !process.stdout.isTTY) await printOnce(target, meter, answers, output);
  else await watch(target, meter, answers);
}

type AskAnswers = () => Promise<AnswerTimes>;

async function answersOf(texts: readonly string[]): Promise<AskAnswers> {
  const urls = relayUrls(texts);
  if (urls.length === 0) return async () => NO_ANSWERS;
  const { settings } = await loadSettings(configSources());
  return () => readAnswerTimes(urls, settings.ADMIN_TOKEN);
}

/** Samples twice, a second apart: a rate is a difference. */
async function printOnce(target: OperationTarget, meter: TopMeter, ask: AskAnswers, output: Form): Promise<void> {
  const [status, answers] = await Promise.all([readStatus(target), ask()]);
  await sample(target, meter);
  await systemClock.sleep(REFRESH_EVERY_MS);
  await sample(target, meter);
  const snapshot = meter.snapshot(status, systemClock.wallMs());
  if (output === "json") {
    printJson({ ...snapshot, destinations: answers.destinations, problems: allProblems(snapshot, answers) });
    return;
  }
  const size = {
    columns: process.stdout.columns || 120,
    rows: snapshot.pipelines.length + snapshot.unrouted.length + 100,
  };
  const lines = topScreen({ snapshot, answers, rates: [], problem: null, size, isColoured: false });
  process.stdout.write(`${lines.slice(0, -1).join("\n")}\n`);
}

async function watch(target: OperationTarget, meter: TopMeter, ask: AskAnswers): Promise<void> {
  // A failure at the start is reported as by other commands, not on a screen that disappears.
  let last: Status = await readStatus(target);
  let answers = NO_ANSWERS;
  const statuses = new CachedQuery<Status>(systemClock, STATUS_EVERY_MS, () => readStatus(target));
  const seen = new CachedQuery<AnswerTimes>(systemClock, STATUS_EVERY_MS, ask);
  const terminal = new TopTerminal(process.stdin, process.stdout);
  terminal.open();
  try {
    while (!terminal.signal.aborted) {
      const startedMs = systemClock.monotonicMs();
      const problem = await sample(target, meter).then(
        () => null,
        (error: unknown) => `The database does not answer: ${reasonOf(error)}`,
      );
      last = (await statuses.answer(ANSWER_WAIT_MS)).known?.value ?? last;
      answers = (await seen.answer(ANSWER_WAIT_MS)).known?.value ?? answers;
      const snapshot = meter.snapshot(last, systemClock.wallMs());
      const { isColoured, size } = terminal;
      terminal.draw(topScreen({ snapshot, answers, rates: meter.paces, problem, size, isColoured }));
      const restMs = REFRESH_EVERY_MS - (systemClock.monotonicMs() - startedMs);
      await systemClock.sleep(Math.max(50, restMs), terminal.signal);
    }
  } finally {
    terminal.close();
  }
}

async function sample({ database }: OperationTarget, meter: TopMeter): Promise<void> {
  const { totals } = await deliveredFigures(database);
  meter.sample(systemClock.monotonicMs(), totals);
}
