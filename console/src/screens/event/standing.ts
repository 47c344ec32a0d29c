import { plural } from "../../kit/format.ts";
import type { ShownEvent } from "../../kit/types.ts";

interface Standing {
  readonly tone: "good" | "info" | "warn" | "bad" | "plain";
  readonly what: string;
  /** What the operator can do; null if nothing is needed. */
  readonly advice: string | null;
}

type Stood = Pick<ShownEvent, "state" | "key" | "hold" | "followers" | "parkedBehind" | "nextAttemptAt">;

/** Whether the later events of its key wait for this one. */
export function isHead({ hold, key }: Pick<ShownEvent, "hold" | "key">): boolean {
  return key !== null && hold?.parks === true;
}

/** Describes the state of an event and what to do about it. */
export function standingOf(event: Stood): Standing {
  const { followers, hold, key, parkedBehind, state } = event;
  const behind = isHead(event) ? waitingText(followers) : "";
  if (state === "dead") {
    const advice =
      isHead(event) && followers?.count !== 0
        ? "Fix the cause of the error, then replay it: the waiting events follow in order. Or discard it: they are delivered without it."
        : "Fix the cause of the error, then replay it, or discard it.";
    return { tone: "bad", what: `Not retried automatically.${behind}`, advice };
  }
  if (state === "retrying") {
    const advice = "The relay retries it automatically. To retry now, fix the cause and press Retry now.";
    return { tone: "warn", what: `${plural(hold?.attempts ?? 0, "attempt")} failed so far.${behind}`, advice };
  }
  if (state === "parked") {
    const what = `Waiting: ${parkedBehind === null ? "an earlier event" : parkedBehind} of the key ${key} is not delivered yet.`;
    return {
      tone: "warn",
      what,
      advice: "The relay delivers it in order once that event is replayed, skipped or discarded.",
    };
  }
  if (state === "pending") return { tone: "info", what: "Written and waiting for delivery.", advice: null };
  if (state === "discarded")
    return { tone: "plain", what: "Discarded by an operator: it is never sent.", advice: null };
  return { tone: "good", what: "Delivered: the destination has acknowledged it.", advice: null };
}

function waitingText(followers: ShownEvent["followers"]): string {
  if (followers === null) return " Later events of its key wait for it.";
  if (followers.count === 0) return " No later events of its key yet.";
  const more = followers.isMore ? "More than " : "";
  const verb = followers.count === 1 ? "waits" : "wait";
  return ` ${more}${plural(followers.count, "event")} of its key ${verb} behind it.`;
}
