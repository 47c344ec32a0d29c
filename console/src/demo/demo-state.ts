import { useEffect } from "preact/hooks";
import { createStore, useStore } from "../kit/store.ts";
import { toast } from "../kit/toast.tsx";

/** Of what `npm start` tells once a second, the part that is shown. */
export interface DemoState {
  /** Another one after each start. */
  readonly runId: string;
  /** Null when all has started. */
  readonly startingWith: string | null;
  readonly isDatabaseStopped: boolean;
  readonly relays: readonly { readonly state: "starting" | "running" | "dead" | "stopped"; readonly lanes: number }[];
  readonly traffic: { readonly isOn: boolean };
  readonly destination: {
    /** The user's own; null without one. */
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
    readonly isMended: boolean;
    readonly plansDone: number;
  };
  readonly journal: readonly { readonly atMs: number; readonly tone: string; readonly text: string }[];
}

const state = createStore<DemoState | null>(null);
const isGone = createStore(false);

/** Follows the process that `npm start` began; it outlives the relay, so the stream does too. */
export function useDemoState(): { readonly state: DemoState | null; readonly isGone: boolean } {
  useEffect(() => {
    const source = new EventSource("dev/events");
    source.addEventListener("message", (event) => {
      isGone.set(false);
      state.set(JSON.parse(event.data as string) as DemoState);
    });
    // The browser tries again by itself.
    source.addEventListener("error", () => isGone.set(true));
    return () => source.close();
  }, []);
  return { state: useStore(state), isGone: useStore(isGone) };
}

interface Wish {
  readonly fault: string;
  readonly on?: boolean;
}

/** Throws a switch or makes something happen. What cannot be had just now is told. */
export async function ask(wish: Wish): Promise<void> {
  try {
    const answer = await fetch("dev/faults", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(wish),
    });
    const told = (await answer.json()) as DemoState & { readonly detail?: string };
    if (answer.ok) state.set(told);
    else toast(told.detail ?? "That cannot be had just now.", { tone: "bad" });
  } catch {
    toast("The demo does not answer: has it been stopped?", { tone: "bad" });
  }
}
