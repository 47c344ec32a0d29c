import type { RelayLine } from "./relay-log.ts";

type Tone = "good" | "bad" | "plain";

export interface Entry {
  readonly atMs: number;
  readonly tone: Tone;
  readonly text: string;
}

const ENTRIES_MAX = 40;
/** Lanes are taken one by one; they are told of together. */
const LANES_TOGETHER_MS = 300;
const ERROR_LEVEL = 50;

/** What technical events say to somebody who watches. */
const TOLD: Readonly<Record<string, { readonly tone: Tone; readonly text: (line: RelayLine, who: string) => string }>> =
  {
    InstanceJoined: { tone: "good", text: (_, who) => `${who} is up and joined.` },
    InstanceReaped: {
      tone: "plain",
      text: () => "The lease of the dead relay is over: its lanes are free to be taken.",
    },
    CircuitOpened: {
      tone: "bad",
      text: ({ reason }, who) => `${who} stopped sending: ${reason}. It probes until that is over.`,
    },
    CircuitClosed: { tone: "good", text: () => "The destination takes events again; the backlog drains." },
    IntentDeadLettered: {
      tone: "bad",
      text: ({ eventType, key, reason }) => `Dead letter: ${eventType} of ${key}. ${reason}.`,
    },
  };

/** What happened, newest first, in words. */
export class Journal {
  readonly entries: Entry[] = [];
  readonly #told: (entry: Entry) => void;
  readonly #circuits = new Map<string, string>();
  readonly #lanes = new Map<string, number>();
  #lanesTimer: NodeJS.Timeout | null = null;

  constructor(told: (entry: Entry) => void) {
    this.#told = told;
  }

  add(tone: Tone, text: string): void {
    const entry = { atMs: Date.now(), tone, text };
    this.entries.unshift(entry);
    if (this.entries.length > ENTRIES_MAX) this.entries.pop();
    this.#told(entry);
  }

  /** Why the destination takes nothing, as a relay sees it; null while it does. */
  get circuit(): string | null {
    return [...this.#circuits.values()][0] ?? null;
  }

  relayEnded(who: string, how: string): void {
    this.#circuits.delete(who);
    this.add("bad", `${who}'s process is gone (${how}). Events wait in their tables; a new one starts in 3 s.`);
  }

  /** Makes entries of the lines that matter to somebody who watches. */
  heard(who: string, line: RelayLine): void {
    const { event, level, message, reason } = line;
    if (event === "CircuitOpened") this.#circuits.set(who, String(reason));
    if (event === "CircuitClosed") this.#circuits.delete(who);
    if (event === "LaneTaken") this.#laneTaken(who);
    const told = event === undefined ? undefined : TOLD[event];
    if (told !== undefined) this.add(told.tone, told.text(line, who));
    else if (level >= ERROR_LEVEL) this.add("bad", reason === undefined ? message : `${message}: ${reason}`);
  }

  stop(): void {
    if (this.#lanesTimer !== null) clearTimeout(this.#lanesTimer);
  }

  #laneTaken(who: string): void {
    this.#lanes.set(who, (this.#lanes.get(who) ?? 0) + 1);
    this.#lanesTimer ??= setTimeout(() => {
      for (const [taker, lanes] of this.#lanes) {
        this.add("good", `${taker} took ${lanes === 1 ? "a lane" : `${lanes} lanes`} and delivers.`);
      }
      this.#lanes.clear();
      this.#lanesTimer = null;
    }, LANES_TOGETHER_MS);
  }
}
