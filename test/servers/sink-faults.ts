import type { SinkAnswer, SinkEvent } from "./sink-wire.ts";

/** Which events a fault strikes: all those that match every given pattern (a string means equality), at most `count`. */
export type FaultScope = {
  readonly id?: string | RegExp;
  readonly topic?: string | RegExp;
  readonly key?: string | RegExp;
  readonly count?: number;
};

export type EventFault = FaultScope &
  (
    | { readonly kind: "reject"; readonly reason?: string }
    | { readonly kind: "retry"; readonly reason?: string; readonly afterMs?: number }
    /** The failure of a whole topic: a retry answer with the scope "topic". */
    | { readonly kind: "unknown-topic" }
    /** The event takes effect at once, its answer comes late. */
    | { readonly kind: "delay"; readonly ms: number }
    /** No effect and no answer. */
    | { readonly kind: "hang" }
    /** The event takes effect, then the connection closes without its answer. Later events of the batch are not read. */
    | { readonly kind: "drop-after-effect" }
  );

/** `refuse` stops listening and destroys all connections until the faults are cleared. */
export type Fault = EventFault | { readonly kind: "refuse" };

export type FaultKind = Fault["kind"];

/** Whether an event struck by this fault takes effect all the same. */
export function takesEffect(fault: FaultKind | null): boolean {
  return fault === null || fault === "delay" || fault === "drop-after-effect";
}

export type FaultBook = {
  add(fault: EventFault): void;
  clear(): void;
  /** The oldest fault that strikes this event; uses up one of its count. */
  strike(event: SinkEvent): EventFault | undefined;
};

export function createFaultBook(): FaultBook {
  let entries: { readonly fault: EventFault; left: number }[] = [];
  return {
    add: (fault) => void entries.push({ fault, left: fault.count ?? Number.POSITIVE_INFINITY }),
    clear: () => {
      entries = [];
    },
    strike(event) {
      const entry = entries.find(({ fault }) => strikes(fault, event));
      if (!entry) return undefined;
      entry.left -= 1;
      if (entry.left === 0) entries = entries.filter((other) => other !== entry);
      return entry.fault;
    },
  };
}

function strikes(fault: EventFault, event: SinkEvent): boolean {
  return matches(fault.id, event.id) && matches(fault.topic, event.topic) && matches(fault.key, event.key);
}

function matches(pattern: string | RegExp | undefined, value: string | null): boolean {
  if (pattern === undefined) return true;
  if (value === null) return false;
  return typeof pattern === "string" ? pattern === value : value.search(pattern) >= 0;
}

/** What the client is told, or nothing if it is left waiting. */
export function answerFor(fault: EventFault | undefined): SinkAnswer | undefined {
  switch (fault?.kind) {
    case "reject":
      return { kind: "reject", reason: fault.reason ?? "rejected as ordered" };
    case "retry": {
      const afterMs = fault.afterMs === undefined ? {} : { afterMs: fault.afterMs };
      return { kind: "retry", reason: fault.reason ?? "busy as ordered", ...afterMs };
    }
    case "unknown-topic":
      return { kind: "retry", reason: "unknown topic", scope: "topic" };
    case "hang":
    case "drop-after-effect":
      return undefined;
    default:
      return { kind: "ok" };
  }
}
