import { plural } from "../../kit/format.ts";
import type { ShownEvent } from "../../kit/types.ts";

interface Standing {
  readonly tone: "good" | "info" | "warn" | "bad" | "plain";
  readonly what: string;
  /** What a person may do about it; null where nothing is to be done. */
  readonly advice: string | null;
}

type Stood = Pick<ShownEvent, "state" | "key" | "hold" | "followers" | "parkedBehind" | "nextAttemptAt">;

/** Whether everything of its key waits for this one. */
export function isHead({ hold, key }: Pick<ShownEvent, "hold" | "key">): boolean {
  return key !== null && hold?.parks === true;
}

/** How an event stands, in plain words. */
export function standingOf(event: Stood): Standing {
  const { followers, hold, key, parkedBehind, state } = event;
  const behind = isHead(event) ? waitingText(followers) : "";
  if (state === "dead") {
    const advice =
      isHead(event) && followers?.count !== 0
        ? "Mend what the error names, then replay it: the others follow in order. Or discard it, and they go on without it."
        : "Mend what the error names, then replay it, or discard it.";
    return { tone: "bad", what: `It is not tried any more, and waits for a person.${behind}`, advice };
  }
  if (state === "retrying") {
    const advice = "It is tried again by itself. Retry it now once the cause is mended.";
    return { tone: "warn", what: `${plural(hold?.attempts ?? 0, "attempt")} failed so far.${behind}`, advice };
  }
  if (state === "parked") {
    const what = `It waits, because ${parkedBehind === null ? "an earlier event" : parkedBehind} of the key ${key} is not out yet.`;
    return {
      tone: "warn",
      what,
      advice: "It goes out by itself, in order, once that one is replayed, skipped or discarded.",
    };
  }
  if (state === "pending") return { tone: "info", what: "It is written, and waits for its turn.", advice: null };
  if (state === "discarded")
    return { tone: "plain", what: "A person has given it up: it is never sent.", advice: null };
  return { tone: "good", what: "It is out: the destination has acknowledged it.", advice: null };
}

function waitingText(followers: ShownEvent["followers"]): string {
  if (followers === null) return " Its key waits behind it.";
  if (followers.count === 0) return " Nothing waits behind it yet.";
  const more = followers.isMore ? "More than " : "";
  const verb = followers.count === 1 ? "waits" : "wait";
  return ` ${more}${plural(followers.count, "event")} of its key ${verb} behind it.`;
}
