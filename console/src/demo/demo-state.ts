import { useCallback, useEffect, useState } from "preact/hooks";
import { createStore, useStore } from "../kit/store.ts";
import { toast } from "../kit/toast.tsx";

/** The displayed part of the state that `npm start` sends once a second. */
export interface DemoState {
  /** Changes with each start of the demo. */
  readonly runId: string;
  /** Null once everything has started. */
  readonly startingWith: string | null;
  readonly isDatabaseStopped: boolean;
  readonly relays: readonly { readonly state: "starting" | "running" | "dead" | "stopped"; readonly lanes: number }[];
  readonly traffic: { readonly isOn: boolean };
  readonly destination: {
    /** The user's own broker; null without one. */
    readonly broker: string | null;
    readonly faults: { readonly down: boolean; readonly slow: boolean; readonly flaky: boolean };
    readonly arrived: number;
    readonly repeated: number;
    readonly outOfOrder: number;
    readonly lost: number;
    readonly outstanding: number;
  };
  readonly tour: {
    readonly isFlowing: boolean;
    readonly isBroken: boolean;
    readonly isFixed: boolean;
    readonly plansDone: number;
  };
  readonly journal: readonly { readonly atMs: number; readonly tone: string; readonly text: string }[];
}

const state = createStore<DemoState | null>(null);
const isGone = createStore(false);

/** Follows the `npm start` process. It outlives the relay, so the stream does too. */
export function useDemoState(): { readonly state: DemoState | null; readonly isGone: boolean } {
  useEffect(() => {
    const source = new EventSource("dev/events");
    source.addEventListener("message", (event) => {
      isGone.set(false);
      state.set(JSON.parse(event.data as string) as DemoState);
    });
    // EventSource reconnects automatically.
    source.addEventListener("error", () => isGone.set(true));
    return () => source.close();
  }, []);
  return { state: useStore(state), isGone: useStore(isGone) };
}

interface FaultRequest {
  readonly fault: string;
  readonly on?: boolean;
}

/** Toggles a fault or triggers an action. Shows a message if the demo rejects it. */
export async function ask(request: FaultRequest): Promise<void> {
  try {
    const answer = await fetch("dev/faults", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(request),
    });
    const result = (await answer.json()) as DemoState & { readonly detail?: string };
    if (answer.ok) state.set(result);
    else toast(result.detail ?? "This is not possible right now.", { tone: "bad" });
  } catch {
    toast("The demo does not answer. Check that npm start is running.", { tone: "bad" });
  }
}

const PREFIX = "outbox-relay-demo.";

/** A choice that survives a reload, unless the browser blocks storage. */
export function useRemembered(name: string, initial: string): readonly [string, (value: string) => void] {
  const [value, setValue] = useState(() => read(name) ?? initial);
  const change = useCallback(
    (next: string) => {
      setValue(next);
      try {
        localStorage.setItem(PREFIX + name, next);
      } catch {
        // Storage is blocked: the choice lasts until the page is closed.
      }
    },
    [name],
  );
  return [value, change];
}

function read(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}
