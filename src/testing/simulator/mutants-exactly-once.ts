import type { Mutant } from "./mutant.ts";

/**
 * Planted into what delivers exactly once, and into the model of a broker with transactions. That the row is looked at
 * after a fence has no bug of its own here: the ledger, the runs and the survey of the lanes each notice the same.
 */
export const EXACTLY_ONCE_MUTANTS: readonly Mutant[] = [
  {
    name: "ledger not read at the take-over",
    file: "relay/exactly-once.ts",
    find: "const committed = await this.#fence(this.#takeover.settledBatch, this.#ended.signal);",
    replace:
      "await this.#fence(this.#takeover.settledBatch, this.#ended.signal);\n    const committed: CommittedBatch[] = [];",
    why: "nobody learns what the former owner delivered and did not settle",
  },
  {
    name: "healing settle skipped",
    file: "relay/exactly-once.ts",
    find: "if (unsettled.length > 0 && !this.#isOver) await this.#heal(unsettled);",
    replace: "",
    why: "what the ledger says was delivered is read and sent again",
  },
  {
    name: "events read before the healing",
    file: "relay/exactly-once.ts",
    find: "if (unsettled.length > 0 && !this.#isOver) await this.#heal(unsettled);",
    replace: "if (unsettled.length > 0 && !this.#isOver) void this.#heal(unsettled);",
    why: "a run that begins before the healing settle shows what it is about to mark",
  },
  {
    name: "runs from before the healing accepted",
    file: "relay/lane.ts",
    find: "this.#acceptsFromRun = this.#host.nextRun();",
    replace: "this.#acceptsFromRun = 0;",
    and: [
      { find: "return this.#open && !this.#settler.isHandingBack;", replace: "return !this.#settler.isHandingBack;" },
      { find: "return this.#open && !this.#unmarked.areTooMany ?", replace: "return !this.#isLeaving ?" },
    ],
    why: "a run that is open already has a snapshot from before the healing settle",
  },
  {
    name: "ring overwritten",
    file: "relay/exactly-once.ts",
    find: "BigInt(Math.max(1, Math.min(UNSETTLED_MAX, ringSize >> 1)));",
    replace: "BigInt(1_000_000);",
    why: "batches are committed beyond what the ledger can keep while their settles wait",
  },
  {
    name: "spent session used again",
    file: "relay/exactly-once.ts",
    find: "if (this.#session !== null && !this.#session.isSpent) return this.#session;",
    replace: "if (this.#session !== null) return this.#session;",
    why: "a request of the last transaction arrives late and hits the next one",
  },
  {
    name: "number used again after an unknown commit",
    file: "relay/exactly-once.ts",
    find: "if (!this.#isOver) this.#host.lost(unknown);",
    replace: "",
    and: [
      {
        find: "if ((committed.at(-1)?.batch ?? 0n) !== this.#inLedger) throw strayed(this.#context.name, this.#lane);",
        replace: "void committed;",
      },
    ],
    why: "the commit may have taken effect: its events are sent again under the number that they have",
  },
  {
    name: "delivered told before the commit",
    file: "relay/exactly-once.ts",
    find: "        await this.#inTime(signal, (inTime) => session.commit(inTime));\n        this.#last = note.batch;",
    replace: "        void session.commit(signal).catch(() => undefined);\n        this.#last = note.batch;",
    why: "what is marked as delivered may never become visible",
  },
  {
    name: "failures after an abort told as delivered",
    file: "relay/exactly-once.ts",
    find: 'report(index, outcome.kind === "delivered" ? skipped : outcome);',
    replace: 'report(index, outcome.kind === "skipped" ? delivered : outcome);',
    why: "one event was refused, and the others of its transaction were aborted with it",
  },
  {
    name: "part of a batch settled",
    file: "relay/delivered-pile.ts",
    find: "return { batch, delivered: this.#ids.splice(0, count), ledger };",
    replace: "return { batch, delivered: this.#ids.splice(0, count).slice(0, max), ledger };",
    why: "the number of a batch stands for all of its events: the rest is read and sent again",
  },
  {
    name: "gap in the ledger guessed over",
    file: "relay/ledger-check.ts",
    find: "if (newest > settledBatch && missing !== 0n) {",
    replace: "if (newest > settledBatch && missing < 0n) {",
    why: "what is no longer in the ledger was delivered, and is sent again",
  },
  {
    name: "id given out again taken for delivered",
    file: "relay/ledger-marks.ts",
    find: "if (printOf(event) === prints.get(event.id)) known.add(event.id);",
    replace: "if (prints.has(event.id)) known.add(event.id);",
    why: "a database that forgot an event gave its id to another one, which was never delivered",
  },
  {
    name: "outage not told while fencing",
    file: "relay/exactly-once.ts",
    find: "if (isOutage) destination.failed(error.message, { probe });",
    replace: "if (isOutage && probe) destination.cancelProbe();",
    why: "a destination that is down is asked on and on",
  },
  {
    name: "answer to a fence not told",
    file: "relay/exactly-once.ts",
    find: "        destination.answered(probe);\n",
    replace: "",
    why: "the probe of an open circuit has no outcome, and nothing is sent any more",
  },
  {
    name: "silence forgotten at the take-over",
    file: "relay/lane.ts",
    find: "else this.#host.silences.noteEvent(messages[0]!.event.id, startedMs);",
    replace: "",
    why: "an event that is never answered voids its lane again and again",
  },
  {
    name: "transactions as large as before after a silence",
    file: "relay/lane.ts",
    find: "if (messages.length > 1) this.#host.silences.noteBatch(this.grant.lane);",
    replace: "if (messages.length > 1) return;",
    why: "the event that is never answered is never alone, so that nobody can tell which it is",
  },
  {
    name: "fence that does not fence",
    file: "publishers/memory/memory-transaction-broker.ts",
    find: "if (epoch !== undefined && epoch !== lane.epoch) {",
    replace: "if (epoch !== undefined && epoch > lane.epoch) {",
    why: "a former owner commits beside the present one",
  },
  {
    name: "fence aborts what was decided",
    file: "publishers/memory/memory-transaction-broker.ts",
    find: "    this.complete(address);\n    this.#abort(lane);",
    replace: "    this.#abort(lane);",
    why: "a commit that was acknowledged never becomes visible",
  },
];
