import { setImmediate as turn } from "node:timers/promises";
import type { AllStreamSubscription, ResolvedEvent, StreamSubscription } from "@kurrent/kurrentdb-client";
import type { LogItem } from "../../ports/event-log.ts";

type Source = AllStreamSubscription | StreamSubscription;

/** What `pagesOf` reads from. */
export interface Pages {
  readonly source: Source;
  readonly pageMax: number;
  readonly signal: AbortSignal;
  readonly confirmMsMax: number;
  /** Returns null for a message that carries nothing. */
  readonly itemOf: (resolved: ResolvedEvent) => LogItem | null;
}

/** A notification of the server. It is queued with the events, because it is true only at its position among them. */
class Mark {
  readonly item: LogItem | "fell behind";

  constructor(item: LogItem | "fell behind") {
    this.item = item;
  }
}

/** Queues notifications behind the events received so far. */
export function mark(source: Source, ...items: readonly (LogItem | "fell behind")[]): void {
  for (const item of items) source.push(new Mark(item));
}

/** Yields what has arrived, at most a page, as soon as there is something. */
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
        // Events of the same packet are queued only after this turn of the event loop.
        await turn();
      }
    }
  } finally {
    watch.stop();
    await cancel(source);
  }
}

/** Discards what is queued: a call that is not read would never end. */
async function cancel(source: Source): Promise<void> {
  // It rejects when there was never a connection.
  await source.unsubscribe().catch(() => {});
  source.resume();
}

function nextPage({ source, pageMax, itemOf }: Pages, state: { isLive: boolean }): LogItem[] {
  const page: LogItem[] = [];
  while (page.length < pageMax) {
    const read = source.read() as ResolvedEvent | Mark | null;
    if (read === null) {
      // The server reports it once; from then on it is true whenever everything received has been read.
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

/** Of several skipped positions in a row, only the last one matters. */
function add(page: LogItem[], item: LogItem): void {
  if (item.kind === "passed" && page.at(-1)?.kind === "passed") page.pop();
  page.push(item);
}

/** Watches the subscription. An error is kept until everything received before it has been read. */
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
      this.#fail(new Error(`no response within ${confirmMsMax} ms`));
    }, confirmMsMax);
    source.on("confirmation", () => clearTimeout(this.#timer));
    source.on("readable", this.#notice);
    // This listener is never removed: an `error` event without a listener would end the process.
    source.on("error", (error) => this.#fail(error));
    source.on("end", () => this.#fail(new Error("the server ended the subscription")));
    source.on("close", () => this.#fail(new Error("the subscription was closed")));
    signal.addEventListener("abort", this.#abort);
  }

  /** Resolves at once when something has changed since the last call. */
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

  /** Cancels at once: the reader may never call again. */
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
