import type { LogItem } from "../ports/event-log.ts";

interface PageAhead {
  readonly page: readonly LogItem[];
  /** From now on there is time to read the next one; by itself it is read when it is asked for. */
  readonly readOn: () => void;
}

/**
 * One page after the other, each read when there is time for it. A log that may not read further on yet leaves the
 * process to whatever else has to be done. Aborts `read` in the end: the page that is being read may never come.
 */
export async function* readAhead(
  pages: AsyncIterable<readonly LogItem[]>,
  read: AbortController,
): AsyncGenerator<PageAhead> {
  const iterator = pages[Symbol.asyncIterator]();
  let next: ReturnType<typeof iterator.next> | null = null;
  const readOn = () => {
    next ??= iterator.next();
    // Whoever takes the page sees the error, and it may be that nobody does.
    next.catch(() => {});
    return next;
  };
  try {
    for (;;) {
      const { done, value: page } = await readOn();
      next = null;
      if (done) return;
      yield { page, readOn };
    }
  } finally {
    read.abort();
    await iterator.return?.();
  }
}
