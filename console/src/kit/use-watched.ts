import { useEffect, useState } from "preact/hooks";
import type { QueryValues } from "./place.ts";
import { type Asked, useApi } from "./use-api.ts";

/** Polls at an interval that depends on the last answer; 0 stops polling. */
export function useWatched<T>(path: string, query: QueryValues, everyMsOf: (data: T | null) => number): Asked<T> {
  const [everyMs, setEveryMs] = useState(() => everyMsOf(null));
  const asked = useApi<T>(path, query, { everyMs });
  const wanted = everyMsOf(asked.data);
  useEffect(() => setEveryMs(wanted), [wanted]);
  return asked;
}
