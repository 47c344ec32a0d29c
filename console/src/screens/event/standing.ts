import { plural, timeText } from "../../kit/format.ts";
import type { Destination, ShownEvent } from "../../kit/types.ts";

interface Standing {
  readonly tone: "good" | "info" | "warn" | "bad" | "plain";
  readonly what: string;
  /** What the operator can do; null if nothing is needed. */
  readonly advice: string | null;
  /** The error of its destination, where that is why it waits. */
  readonly reason?: string;
}

type Stood = Pick<
  ShownEvent,
  "state" | "key" | "hold" | "followers" | "parkedBehind" | "nextAttemptAt" | "pipeline" | "waitsFor"
>;
/** The destination of the event's pipeline, as the overview shows it. */
type Receiving = Pick<Destination, "destination" | "circuits" | "answers">;

/** Whether the later events of its key wait for this one. */
export function isHead({ hold, key }: Pick<ShownEvent, "hold" | "key">): boolean {
  return key !== null && hold?.parks === true;
}

/** Describes the state of an event and what to do about it. Null: nothing is known of its destination. */
export function standingOf(event: Stood, destination: Receiving | null): Standing {
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
  if (state === "unrouted") {
    const advice =
      "Add a route for it, or start the relay that handles it. An event of a table waits for that; the readers of a log have passed it, and only a new subscriber starts before it.";
    return { tone: "bad", what: "No route matches this event, so it is not delivered.", advice };
  }
  if (state === "pending") return pendingOf(event, destination);
  if (state === "discarded")
    return { tone: "plain", what: "Discarded by an operator: it is never sent.", advice: null };
  return { tone: "good", what: "Delivered: the destination has acknowledged it.", advice: null };
}

/** Why an event that has not failed is not delivered yet. */
function pendingOf({ nextAttemptAt, pipeline, waitsFor }: Stood, receiving: Receiving | null): Standing {
  if (waitsFor === "paused")
    return { tone: "warn", what: `Waiting: ${pipeline} is paused.`, advice: "It is delivered once that is resumed." };
  if (waitsFor === "scheduled" && nextAttemptAt !== null)
    return { tone: "info", what: `Scheduled: not delivered before ${timeText(nextAttemptAt)}.`, advice: null };
  const [circuit] = receiving?.circuits ?? [];
  if (receiving !== null && circuit !== undefined) {
    const place = circuit.topic === null ? "" : `topic ${circuit.topic} of `;
    const advice = "Check the destination. The relay probes it, and delivers what waits as soon as it accepts events.";
    const what = `Waiting: ${place}${receiving.destination} accepts no events.`;
    return { tone: "warn", what, advice, reason: circuit.reason };
  }
  if (receiving?.answers?.slow == null)
    return { tone: "info", what: "Written and waiting for delivery.", advice: null };
  const what = `Waiting: ${receiving.destination} is slow.`;
  return { tone: "warn", what, advice: "Check the destination, or pause or limit it." };
}

function waitingText(followers: ShownEvent["followers"]): string {
  if (followers === null) return " Later events of its key wait for it.";
  if (followers.count === 0) return " No later events of its key yet.";
  const more = followers.isMore ? "More than " : "";
  const verb = followers.count === 1 ? "waits" : "wait";
  return ` ${more}${plural(followers.count, "event")} of its key ${verb} behind it.`;
}
