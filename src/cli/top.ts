import { systemClock } from "../core/clock.ts";
import { reasonOf } from "../core/errors.ts";
import type { OperationTarget } from "../operations/event-source.ts";
import { deliveredFigures } from "../operations/overview/relay-figures.ts";
import { TopMeter } from "../operations/overview/top-meter.ts";
import { readStatus, type Status } from "../operations/status.ts";
import { Remembered } from "../telemetry/remembered.ts";
import { topScreen } from "./top-screen.ts";
import { TopTerminal } from "./top-terminal.ts";

export interface TopFlags {
  readonly once?: boolean;
  readonly output: "text" | "json";
}

const LOOK_EVERY_MS = 1_000;
/** What waits is counted less often than the rest is shown. */
const STATUS_EVERY_MS = 3_000;
const PATIENCE_MS = 500;

/** Watches until the person has seen enough; where nobody can watch, tells it once. */
export async function top(target: OperationTarget, { once = false, output }: TopFlags): Promise<void> {
  const meter = new TopMeter();
  if (once || output === "json" || !process.stdout.isTTY) await tellOnce(target, meter, output);
  else await watch(target, meter);
}

/** Two looks a second apart: a rate is the difference of two. */
async function tellOnce(target: OperationTarget, meter: TopMeter, output: "text" | "json"): Promise<void> {
  const status = await readStatus(target);
  await look(target, meter);
  await systemClock.sleep(LOOK_EVERY_MS);
  await look(target, meter);
  const snapshot = meter.snapshot(status, systemClock.wallMs());
  if (output === "json") {
    process.stdout.write(`${JSON.stringify(snapshot, null, 2)}\n`);
    return;
  }
  const size = { columns: process.stdout.columns || 120, rows: snapshot.pipelines.length + 100 };
  const lines = topScreen({ snapshot, paces: [], trouble: null, size, isColoured: false });
  process.stdout.write(`${lines.slice(0, -1).join("\n")}\n`);
}

async function watch(target: OperationTarget, meter: TopMeter): Promise<void> {
  // What is wrong from the beginning is said as other commands say it, not on a screen that goes away.
  const first = await readStatus(target);
  const statuses = new Remembered<Status>(systemClock, STATUS_EVERY_MS, () => readStatus(target));
  const terminal = new TopTerminal(process.stdin, process.stdout);
  terminal.open();
  try {
    let last = first;
    while (!terminal.signal.aborted) {
      const beganMs = systemClock.monotonicMs();
      const trouble = await look(target, meter).then(
        () => null,
        (error: unknown) => `The database gives no answer: ${reasonOf(error)}`,
      );
      const { known } = await statuses.answer(PATIENCE_MS);
      last = known?.value ?? last;
      const snapshot = meter.snapshot(last, systemClock.wallMs());
      const { isColoured, size } = terminal;
      terminal.draw(topScreen({ snapshot, paces: meter.paces, trouble, size, isColoured }));
      const restMs = LOOK_EVERY_MS - (systemClock.monotonicMs() - beganMs);
      await systemClock.sleep(Math.max(50, restMs), terminal.signal);
    }
  } finally {
    terminal.close();
  }
}

async function look({ database }: OperationTarget, meter: TopMeter): Promise<void> {
  const { totals } = await deliveredFigures(database);
  meter.sample(systemClock.monotonicMs(), totals);
}
