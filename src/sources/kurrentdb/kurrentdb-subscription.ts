import { setImmediate as turn } from "node:timers/promises";
import type { AllStreamSubscription, ResolvedEvent, StreamSubscription } from "@kurrent/kurrentdb-client";
import type { LogItem } from "../../ports/event-log.ts";

type Source = AllStreamSubscription | StreamSubscription;

export interface Pages {
  readonly source: Source;
  readonly pageMax: number;
  readonly signal: AbortSignal;
  readonly confirmMsMax: number;
  /** Null for what says nothing. */
  readonly itemOf: (resolved: ResolvedEvent) => LogItem | null;
}

/** What came in beside the events; it is put in line with them, since only their order makes it true. */
class Mark {
  readonly item: LogItem | "fell behind";

  constructor(item: LogItem | "fell behind") {
    this.item = item;
  }
}

export function mark(source: Source, ...items: readonly (LogItem | "fell behind")[]): void {
  for (const item of items) source.push(new Mark(item));
}

/** Whatever is there, at most a page of it, as soon as there is something. */
export async function* pagesOf(pages: Pages): AsyncGenerator<LogItem[]> {
  const { source, signal, confirmMsMax } = pages;
  const watch = new Watch(source, signal, confirmMsMax);
  const state = { isLive: false };
  try {
    for (;;) {
      const page = nextPage(pages, state);
      if (signal.aborted) return;
      if (page.length > 0) yield page;
      else if (watch.error !== null) throw watch.error;
      else {
        await watch.change();
        // What came in the same packet is in line only after this turn.
        await turn();
      }
    }
  } finally {
    watch.stop();
    await cancel(source);
  }
}

/** What waits in it is let go: a call that nobody reads would never end. */
async function cancel(source: Source): Promise<void> {
  // It rejects when there was no connection to begin with.
  await source.unsubscribe().catch(() => {});
  source.resume();
}

function nextPage({ source, pageMax, itemOf }: Pages, state: { isLive: boolean }): LogItem[] {
  const page: LogItem[] = [];
  while (page.length < pageMax) {
    const read = source.read() as ResolvedEvent | Mark | null;
    if (read === null) {
      // The server says it once; from then on it is true whenever all that came has been taken.
      if (state.isLive && page.length > 0 && page.at(-1)?.kind !== "caught up") page.push({ kind: "caught up" });
      break;
    }
    const item = read instanceof Mark ? read.item : itemOf(read);
    if (item === "fell behind") state.isLive = false;
    else if (item !== null) add(page, item);
    if (item !== "fell behind" && item?.kind === "caught up") state.isLive = true;
  }
  return page;
}

/** Of several places in a row that were merely passed, the last one says it all. */
function add(page: LogItem[], item: LogItem): void {
  if (item.kind === "passed" && page.at(-1)?.kind === "passed") page.pop();
  page.push(item);
}

/** Notices what becomes of the subscription; an error is kept until what came before it was taken. */
class Watch {
  error: unknown = null;
  readonly #source: Source;
  readonly #signal: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  #wake: () => void = () => {};
  #changed = false;

  constructor(source: Source, signal: AbortSignal, confirmMsMax: number) {
    this.#source = source;
    this.#signal = signal;
    this.#timer = setTimeout(() => {
      this.#fail(new Error(`no answer within ${confirmMsMax} ms`));
    }, confirmMsMax);
    source.on("confirmation", () => clearTimeout(this.#timer));
    source.on("readable", this.#notice);
    // This one stays for good: an error that nobody listens to would end the process.
    source.on("error", (error) => this.#fail(error));
    source.on("end", () => this.#fail(new Error("the server ended the subscription")));
    source.on("close", () => this.#fail(new Error("the subscription was closed")));
    signal.addEventListener("abort", this.#abort);
  }

  /** Resolves at once when something has changed since it was last asked. */
  async change(): Promise<void> {
    if (!this.#changed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#changed = false;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#source.off("readable", this.#notice);
    this.#signal.removeEventListener("abort", this.#abort);
  }

  readonly #notice = () => {
    this.#changed = true;
    this.#wake();
  };

  /** Not left to the reader, who may never ask again. */
  readonly #abort = () => {
    this.#notice();
    void cancel(this.#source);
  };

  #fail(error: unknown): void {
    clearTimeout(this.#timer);
    this.error ??= error;
    this.#notice();
  }
}
