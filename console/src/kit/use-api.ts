import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, apiGet, apiUrl } from "./api.ts";
import type { QueryValues } from "./place.ts";

/** A request to the API with its last answer. With both data and error, the data is from before the error. */
export interface Asked<T> {
  readonly data: T | null;
  readonly error: ApiError | null;
  readonly isLoading: boolean;
  reload(): void;
}

interface State<T> {
  readonly key: string;
  readonly data: T | null;
  /** The key of the request that the data belongs to. */
  readonly dataKey: string;
  readonly error: ApiError | null;
  readonly isLoading: boolean;
}

const RETRY_FIRST_MS = 2_000;
const RETRY_LAST_MS = 15_000;
const KEPT_ANSWERS_MAX = 40;

/** Cached answers: going back shows the old data at once while it is loaded again. */
const kept = new Map<string, unknown>();

function keep(key: string, data: unknown): void {
  kept.delete(key);
  kept.set(key, data);
  const [oldest] = kept.keys();
  if (kept.size > KEPT_ANSWERS_MAX && oldest !== undefined) kept.delete(oldest);
}

/**
 * Loads when path or query change, every `everyMs`, and with backoff while the service or its database is unavailable.
 * Not while the page is hidden. A path of null loads nothing.
 */
export function useApi<T>(
  path: string | null,
  query: QueryValues = {},
  { everyMs = 0 }: { readonly everyMs?: number } = {},
): Asked<T> {
  const key = path === null ? "" : apiUrl(path, query);
  const [state, setState] = useState<State<T>>(() => begin<T>(key));
  const [round, setRound] = useState(0);
  const failures = useRef(0);
  // `key` stands for path and query; each round is a new request.
  useEffect(() => {
    if (path === null) return;
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = (ms: number) => {
      timer = setTimeout(() => (document.hidden ? again(ms) : setRound((it) => it + 1)), ms);
    };
    setState((before) => (before.key === key ? { ...before, isLoading: true } : begin<T>(key, before)));
    apiGet<T>(path, query, gone.signal).then(
      (data) => {
        failures.current = 0;
        keep(key, data);
        setState({ key, data, dataKey: key, error: null, isLoading: false });
        if (everyMs > 0) again(everyMs);
      },
      (error: unknown) => {
        if (gone.signal.aborted) return;
        failures.current += 1;
        const shown = error instanceof ApiError ? error : new ApiError(0, "UNEXPECTED", String(error), null);
        setState((before) => failed(before, key, shown));
        if (shown.isPassing) again(Math.min(RETRY_LAST_MS, RETRY_FIRST_MS * 2 ** (failures.current - 1)));
        else if (everyMs > 0) again(everyMs);
      },
    );
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [key, round, everyMs]);
  const reload = useCallback(() => setRound((it) => it + 1), []);
  return { data: state.data, error: state.error, isLoading: state.isLoading, reload };
}

/** For another page or filter of the same list the old rows stay until the new ones arrive, so that nothing jumps. */
function begin<T>(key: string, before?: State<T>): State<T> {
  const isSamePath = before !== undefined && before.key.split("?")[0] === key.split("?")[0];
  const found = kept.get(key) as T | undefined;
  if (found === undefined && isSamePath) return { ...before, key, error: null, isLoading: key !== "" };
  return { key, data: found ?? null, dataKey: key, error: null, isLoading: key !== "" };
}

/** Drops the data of another request: beside an error it would look like the data of this one. */
function failed<T>(before: State<T>, key: string, error: ApiError): State<T> {
  const data = before.dataKey === key ? before.data : null;
  return { key, data, dataKey: key, error, isLoading: false };
}

interface Action<Input> {
  readonly isBusy: boolean;
  readonly error: ApiError | null;
  run(input: Input): Promise<void>;
}

/** Runs a change, one at a time, and keeps its error. */
export function useAction<Input = void>(work: (input: Input) => Promise<void>): Action<Input> {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const run = async (input: Input): Promise<void> => {
    if (isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await work(input);
    } catch (failure) {
      setError(failure instanceof ApiError ? failure : new ApiError(0, "UNEXPECTED", String(failure), null));
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, error, run };
}

/** Polls at an interval that depends on the last answer; 0 stops polling. */
export function useWatched<T>(path: string, query: QueryValues, everyMsOf: (data: T | null) => number): Asked<T> {
  const [everyMs, setEveryMs] = useState(() => everyMsOf(null));
  const asked = useApi<T>(path, query, { everyMs });
  const wanted = everyMsOf(asked.data);
  useEffect(() => setEveryMs(wanted), [wanted]);
  return asked;
}
