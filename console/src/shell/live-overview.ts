import { type LiveState, useEventStream } from "../kit/event-stream.ts";
import { createStore, useStore } from "../kit/store.ts";
import type { Overview, Point } from "../kit/types.ts";

interface Live {
  readonly overview: Overview | null;
  /** Points received since the page was opened, oldest first. */
  readonly points: readonly Point[];
  readonly state: LiveState;
}

const POINTS_MAX = 720;
const QUIET_MS_MAX = 10_000;

const live = createStore<Live>({ overview: null, points: [], state: "off" });

/** The shell holds one stream for all screens. */
export function useLiveStream(isOn: boolean): void {
  const state = useEventStream(
    isOn ? "/live" : null,
    {},
    { overview: (data) => take(data as Overview) },
    { quietMsMax: QUIET_MS_MAX },
  );
  if (live.get().state !== state) queueMicrotask(() => live.set({ ...live.get(), state }));
}

function take(overview: Overview): void {
  const { points, state } = live.get();
  const { lastPoint } = overview;
  const isNew = lastPoint !== null && lastPoint.at !== points.at(-1)?.at;
  live.set({ overview, points: isNew ? [...points.slice(1 - POINTS_MAX), lastPoint] : points, state });
}

export function useLive(): Live {
  return useStore(live);
}
