import type { LiveState, Snapshot } from "./live-state.ts";
import type { Terminal } from "./terminal.ts";

const PLAIN_EVERY = 10;

/** Current rates: a line updated in place on a terminal, otherwise a plain line every ten seconds. */
export class StatusLines {
  readonly #unwatch: () => void;
  #seen = 0;

  constructor(terminal: Terminal, live: LiveState) {
    this.#unwatch = live.watch((state) => {
      const line = lineOf(state);
      if (line === null) return;
      if (terminal.isTerminal) terminal.status(line);
      else if (this.#seen % PLAIN_EVERY === 0) terminal.say(line);
      this.#seen += 1;
    });
  }

  stop(): void {
    this.#unwatch();
  }
}

function lineOf({ flow }: Snapshot): string | null {
  if (flow === null) return null;
  const count = (value: number) => Math.round(value).toLocaleString("en-US");
  const lag = `${(flow.lagMs / 1_000).toFixed(1)} s`;
  return `in ${count(flow.inPerS)}/s   out ${count(flow.outPerS)}/s   waiting ${count(flow.waiting)}   lag ${lag}   delivered ${count(flow.delivered)}`;
}
