import { useEffect, useRef, useState } from "preact/hooks";
import { type LiveState, useEventStream } from "../../kit/event-stream.ts";
import type { EventRow } from "../../kit/types.ts";
import { type Tailed, withTailed } from "./tail-rows.ts";

export interface Tail {
  readonly rows: readonly EventRow[];
  readonly state: LiveState;
  /** Number of new events that arrived while paused. */
  readonly held: number;
  /** More events arrived at once than can be shown. */
  readonly isMissing: boolean;
}

/** A burst is drawn a few times per second, not event by event. */
const DRAW_EVERY_MS = 300;
const HELD_MAX = 2_000;

/** Follows the events that match a filter, starting from the loaded rows. While paused it listens but shows nothing new. */
export function useTail(q: string, rows: readonly EventRow[], mode: "off" | "on" | "paused"): Tail {
  const [shown, setShown] = useState<readonly Tailed[]>([]);
  const [held, setHeld] = useState(0);
  const [isMissing, setMissing] = useState(false);
  const waiting = useRef<Tailed[]>([]);
  const take = (what: Tailed["what"]) => (data: unknown) => {
    waiting.current = [...waiting.current.slice(1 - HELD_MAX), { what, event: data as EventRow }];
  };
  const listeners = { new: take("new"), changed: take("changed"), missed: () => setMissing(true) };
  const state = useEventStream(mode === "off" ? null : "/events/tail", { q }, listeners);
  useEffect(() => {
    waiting.current = [];
    setShown([]);
    setHeld(0);
    setMissing(false);
  }, [q, mode === "off"]);
  useEffect(() => {
    if (mode === "off") return;
    const timer = setInterval(() => {
      if (mode === "paused") setHeld(waiting.current.filter(({ what }) => what === "new").length);
      else if (waiting.current.length > 0) {
        const news = waiting.current;
        waiting.current = [];
        setHeld(0);
        setShown((before) => [...before, ...news].slice(-HELD_MAX));
      }
    }, DRAW_EVERY_MS);
    return () => clearInterval(timer);
  }, [mode]);
  return { rows: withTailed(rows, shown), state, held, isMissing };
}
