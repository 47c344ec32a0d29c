import { useId } from "preact/hooks";

export type HintWord = keyof typeof WORDS;

/** A question mark that explains a term on click, Enter or tap; Esc closes it. */
export function Hint({ word }: { readonly word: HintWord }) {
  const id = useId();
  const [about, text] = WORDS[word];
  return (
    <span class="hint-place">
      <button type="button" class="hint-mark" aria-label={about} aria-describedby={id} popovertarget={id}>
        ?
      </button>
      <span id={id} class="hint-text" popover="auto">
        {text}
      </span>
    </span>
  );
}

/** Explanations of the terms in the console, each in a sentence or two. */
const WORDS = {
  lane: [
    "What is a lane?",
    "A lane is a hash slice of a pipeline's keys. One relay owns a lane at a time, so the events of a key stay in order.",
  ],
  parked: [
    "What is a parked key?",
    "A key is parked after one of its events failed: the later events of the key wait so that order is kept. They have not failed themselves.",
  ],
  dead: [
    "What is a dead letter?",
    "A failed event that is not retried automatically. The relay keeps it with its errors until you replay, edit or discard it.",
  ],
  parkedOrDead: [
    "What is the difference between parked and dead?",
    "A dead event has failed and waits for an operator. A parked event has not failed: it waits behind a failed event of the same key and is delivered automatically after it.",
  ],
  keyActions: [
    "What do Retry, Retry all, Skip and Discard do?",
    "Retry sends the blocking event again. Retry all does so for every failed event of the key, in order. Skip lets the key continue without the event, which stays a dead letter. Discard drops the event permanently.",
  ],
  eventActions: [
    "What do Replay, Skip and Discard do?",
    "Replay sends this event again now. Skip lets its key continue without it; it stays a dead letter. Discard drops it permanently.",
  ],
  stages: [
    "Why does a plan run in stages?",
    "A few events go first as a canary; the others follow only if those were delivered. If the same error returns, the plan stops and the others are not changed.",
  ],
  latency: [
    "What does this measure?",
    "The time from sending an event to the destination's answer. Waiting in the outbox and replays are not included.",
  ],
  age: [
    "What does this measure?",
    "The time from writing an event to the destination's answer. Waiting in the outbox is included.",
  ],
  circuit: [
    "What is a circuit?",
    "When a destination or one of its topics rejects everything, the relay opens its circuit: it stops sending, probes with single events, and resumes when one is delivered.",
  ],
} as const satisfies Readonly<Record<string, readonly [about: string, text: string]>>;
