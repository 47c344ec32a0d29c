import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, apiGet, apiUrl } from "./api.ts";
import type { QueryValues } from "./place.ts";

/** A question to the API with its last answer. Data and error may both be there: what is shown is then from before. */
export interface Asked<T> {
  readonly data: T | null;
  readonly error: ApiError | null;
  readonly isLoading: boolean;
  reload(): void;
}

interface State<T> {
  readonly key: string;
  readonly data: T | null;
  readonly error: ApiError | null;
  readonly isLoading: boolean;
}

const RETRY_FIRST_MS = 2_000;
const RETRY_LAST_MS = 15_000;
const KEPT_ANSWERS_MAX = 40;

/** Going back shows at once what was there, while it is asked for again. */
const kept = new Map<string, unknown>();

function keep(key: string, data: unknown): void {
  kept.delete(key);
  kept.set(key, data);
  const [oldest] = kept.keys();
  if (kept.size > KEPT_ANSWERS_MAX && oldest !== undefined) kept.delete(oldest);
}

/**
 * Asks when path or query change, again every `everyMs`, and again by itself while the service or its database cannot
 * answer. Not while nobody looks at the page. A path of null asks nothing.
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
  // The key holds path and query; each round asks anew.
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
        setState({ key, data, error: null, isLoading: false });
        if (everyMs > 0) again(everyMs);
      },
      (error: unknown) => {
        if (gone.signal.aborted) return;
        failures.current += 1;
        const shown = error instanceof ApiError ? error : new ApiError(0, "UNEXPECTED", String(error), null);
        setState((before) => ({ ...before, key, error: shown, isLoading: false }));
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

/** Another page or filter of the same list: the old rows stay until the new ones are there, so that nothing jumps. */
function begin<T>(key: string, before?: State<T>): State<T> {
  const isSamePath = before !== undefined && before.key.split("?")[0] === key.split("?")[0];
  const data = (kept.get(key) as T | undefined) ?? (isSamePath ? before.data : null);
  return { key, data, error: null, isLoading: key !== "" };
}

interface Action<Input> {
  readonly isBusy: boolean;
  readonly error: ApiError | null;
  run(input: Input): Promise<void>;
}

/** Something that changes something: one at a time, with what came of it. */
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
