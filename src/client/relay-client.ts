import { type ApiOperations, type CallOptions, OPERATIONS } from "./api-operations.ts";
import type { ReplayPlan } from "./api-types.ts";
import { type Call, callerOf, type RelayClientOptions } from "./http-call.ts";

/** Options of `waitForReplay`. */
export interface WaitOptions extends CallOptions {
  /** The pause between two looks, 500 ms by default. */
  readonly everyMs?: number;
  /** Called with the plan after each look. `isServed` is false while no process works on it. */
  readonly onProgress?: (plan: ReplayPlan) => void;
}

/** The operations that answer in pages. */
export type PagedOperation =
  | "listAudit"
  | "listDeadLetters"
  | "listEvents"
  | "listKeys"
  | "listReplayItems"
  | "listReplays";

/** The request of an operation. */
export type RequestOf<Id extends keyof ApiOperations> = NonNullable<Parameters<ApiOperations[Id]>[0]>;

/** The answer of an operation. */
export type AnswerOf<Id extends keyof ApiOperations> = Awaited<ReturnType<ApiOperations[Id]>>;

/** Every operation of the HTTP API, and two that need several calls. A call that fails rejects with a RelayApiError. */
export interface RelayClient extends ApiOperations {
  /**
   * Resolves with the plan when it does not run: done, stopped, paused or cancelled, or never run. It waits for as long as
   * that takes; the signal of the options ends it.
   */
  waitForReplay(id: string, options?: WaitOptions): Promise<ReplayPlan>;
  /** All pages of a list, one after another: `for await (const { events } of client.pages("listEvents", { q }))`. */
  pages<Id extends PagedOperation>(
    operation: Id,
    request?: Omit<RequestOf<Id>, "cursor">,
    options?: CallOptions,
  ): AsyncIterable<AnswerOf<Id>>;
}

const LOOK_MS = 500;

/** A client of a running service. It connects with the first call, and keeps nothing open. */
export function createRelayClient(options: RelayClientOptions): RelayClient {
  return clientOf(callerOf(options));
}

/** The face of all operations over one way to call them. */
export function clientOf(call: Call): RelayClient {
  const operations = Object.entries(OPERATIONS).map(([id, { takes }]) => {
    const operation = id as keyof ApiOperations;
    const withRequest = (request: Readonly<Record<string, unknown>> = {}, more?: CallOptions) =>
      call(operation, request, more);
    return [id, takes ? withRequest : (more?: CallOptions) => call(operation, {}, more)];
  });
  const api = Object.fromEntries(operations) as unknown as ApiOperations;
  return { ...api, pages: (id, request, more) => pagesOf(call, id, request ?? {}, more), waitForReplay: waiterOf(api) };
}

async function* pagesOf<Id extends PagedOperation>(
  call: Call,
  id: Id,
  request: Readonly<Record<string, unknown>>,
  options?: CallOptions,
): AsyncGenerator<AnswerOf<Id>> {
  let cursor: string | null = null;
  do {
    const from: Readonly<Record<string, unknown>> = cursor === null ? request : { ...request, cursor };
    const page = (await call(id, from, options)) as AnswerOf<Id>;
    yield page;
    cursor = page.cursor;
  } while (cursor !== null);
}

function waiterOf(api: ApiOperations): RelayClient["waitForReplay"] {
  return async (id, { everyMs = LOOK_MS, onProgress, signal } = {}) => {
    for (;;) {
      const plan = await api.showReplay({ id }, signal === undefined ? {} : { signal });
      onProgress?.(plan);
      if (plan.state !== "running") return plan;
      await pause(everyMs, signal);
    }
  };
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, reject, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const end = () => reject(signal?.reason);
  signal?.addEventListener("abort", end, { once: true });
  if (signal?.aborted) end();
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  });
}
