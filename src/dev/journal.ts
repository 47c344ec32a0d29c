import type { RelayLine } from "./relay-supervisor.ts";

type Tone = "good" | "bad" | "plain";

export interface Entry {
  readonly atMs: number;
  readonly tone: Tone;
  readonly text: string;
}

const ENTRIES_MAX = 40;
/** Lanes are taken one by one; one entry reports all that were taken within this time. */
const LANES_TOGETHER_MS = 300;
const ERROR_LEVEL = 50;

/** The entries for technical events. */
const MESSAGES_BY_EVENT: Readonly<
  Record<string, { readonly tone: Tone; readonly text: (line: RelayLine, who: string) => string }>
> = {
  InstanceJoined: { tone: "good", text: (_, who) => `${who} is running.` },
  InstanceReaped: {
    tone: "plain",
    text: () => "The lease of the dead relay has expired: its lanes are free.",
  },
  CircuitOpened: {
    tone: "bad",
    text: ({ reason }, who) => `${who} stopped sending: ${reason}. It probes until the destination recovers.`,
  },
  CircuitClosed: { tone: "good", text: () => "The destination accepts events again; the backlog drains." },
  IntentDeadLettered: {
    tone: "bad",
    text: ({ eventType, key, reason }) => `Dead letter: ${eventType} of ${key}. ${reason}.`,
  },
};

/** Recent events of the demo as text, newest first. */
export class Journal {
  readonly entries: Entry[] = [];
  readonly #onEntry: (entry: Entry) => void;
  readonly #circuits = new Map<string, string>();
  readonly #lanes = new Map<string, number>();
  #lanesTimer: NodeJS.Timeout | null = null;

  constructor(onEntry: (entry: Entry) => void) {
    this.#onEntry = onEntry;
  }

  add(tone: Tone, text: string): void {
    const entry = { atMs: Date.now(), tone, text };
    this.entries.unshift(entry);
    if (this.entries.length > ENTRIES_MAX) this.entries.pop();
    this.#onEntry(entry);
  }

  /** Why a relay's circuit is open; null while all are closed. */
  get circuit(): string | null {
    return [...this.#circuits.values()][0] ?? null;
  }

  relayEnded(who: string, how: string): void {
    this.#circuits.delete(who);
    this.add("bad", `${who}'s process ended (${how}). Events wait in their tables; a new process starts in 3 s.`);
  }

  /** Adds an entry for a log line that matters to the user. */
  addLogLine(who: string, line: RelayLine): void {
    const { event, level, message, reason } = line;
    if (event === "CircuitOpened") this.#circuits.set(who, String(reason));
    if (event === "CircuitClosed") this.#circuits.delete(who);
    if (event === "LaneTaken") this.#laneTaken(who);
    const shown = event === undefined ? undefined : MESSAGES_BY_EVENT[event];
    if (shown !== undefined) this.add(shown.tone, shown.text(line, who));
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
