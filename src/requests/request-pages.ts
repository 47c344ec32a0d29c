import type { LogItem } from "../ports/event-log.ts";

interface PageAhead {
  readonly page: readonly LogItem[];
  /** Starts reading the next page early; otherwise it is read when it is requested. */
  readonly prefetch: () => void;
}

/**
 * Yields one page after another. Reading ahead starts only when the consumer calls `prefetch`, so that it does not
 * compete with a dispatch that is being written. Aborts `read` at the end, because a page that is being read may never
 * arrive.
 */
export async function* readAhead(
  pages: AsyncIterable<readonly LogItem[]>,
  read: AbortController,
): AsyncGenerator<PageAhead> {
  const iterator = pages[Symbol.asyncIterator]();
  let next: ReturnType<typeof iterator.next> | null = null;
  const prefetch = () => {
    next ??= iterator.next();
    // The consumer of the page gets the error. Without this handler an error of a page that is never consumed would end
    // the process.
    next.catch(() => {});
    return next;
  };
  try {
    for (;;) {
      const { done, value: page } = await prefetch();
      next = null;
      if (done) return;
      yield { page, prefetch };
    }
  } finally {
    read.abort();
    await iterator.return?.();
  }
}
