import type { Mutant } from "./mutant.ts";

/** Broken rules about faults that stay: they show only where something fails whenever it is tried. */
export const PERSISTENT_MUTANTS: readonly Mutant[] = [
  {
    name: "a failed probe probes again",
    file: "relay/lane-failures.ts",
    find: "const makesRoom = (isProbe && !isOutside(outcome)) || entry.silences >= SILENCES_MAX;",
    replace: "const makesRoom = entry.silences >= SILENCES_MAX;",
    why: "one event that is always refused keeps its destination or topic closed for all others",
  },
  {
    name: "failed events probe before new ones",
    file: "relay/poller.ts",
    find: "const isProbing = this.#context.destination.isProbing;",
    replace: "const isProbing = false;",
    why: "what failed before is the probe each time, and what could be delivered is never tried",
  },
  {
    name: "failed heads fill the lane",
    file: "relay/poller.ts",
    find: "if (this.#context.destination.isOpen) for (const lane of this.#lanes()) lane.handBackFailedHeads();",
    replace: "",
    and: [{ find: "destination.isOpen ? Math.min(room, lane.hasWaiting ? 0 : 1) : room;", replace: "name && room;" }],
    why: "there is no room to read the events that would get through",
  },
  {
    name: "failures with the destination counted at once",
    file: "core/blame.ts",
    find: "const LONELY_FAILURES_MAX = 3;",
    replace: "const LONELY_FAILURES_MAX = 0;",
    and: [
      {
        find: 'if (lonely === 0) return "everyone";',
        replace: 'if (lonely === 0 && traffic.failed > 9) return "everyone";',
      },
    ],
    why: "an outage buries the events that it meets",
  },
  {
    name: "a braked lane is not told",
    file: "relay/lane-brake.ts",
    find: "if (isOn === this.#isTold) return;",
    replace: "if (isOn || !isOn) return;",
    why: "a lane takes nothing any more, and everything looks well",
  },
  {
    name: "dead letters that park nobody brake a lane",
    file: "relay/hold-book.ts",
    find: "return dead && (!parks || key === null);",
    replace: "return dead && parks && !parks;",
    why: "what is done with keeps new events from being read",
  },
  {
    name: "a refused read is not told",
    file: "relay/troubles.ts",
    find: '    events.emit("SourceBroken",',
    replace: '    if (code !== "COLUMN_MISSING") events.emit("SourceBroken",',
    why: "nothing moves while a column is missing, and everything looks well",
  },
  {
    name: "a refused settle voids the lane",
    file: "relay/settler.ts",
    find: "if (!tookNoEffect(error) || this.#signal.aborted) throw error;",
    replace: 'if (!tookNoEffect(error) || this.#signal.aborted || error.code === "COLUMN_MISSING") throw error;',
    why: "what was delivered while a column was missing is sent again",
  },
  {
    name: "due heads without room keep the poller awake",
    file: "relay/poller.ts",
    find: "this.#headRoom(lane) > 0 ? lane.holds",
    replace: "lane.isOpen ? lane.holds",
    why: "the database is asked every millisecond for as long as the destination is down",
  },
  {
    name: "failing heads take every place",
    file: "relay/lane.ts",
    find: "if (this.#brake.isOn) return this.#free;",
    replace: "if (this.#claimMax > 0) return this.#free;",
    why: "where claims are few, events that are never answered leave no place for new ones",
  },
];
