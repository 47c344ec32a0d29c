import type { Mutant } from "./mutant.ts";

/**
 * Bugs in exactly-once delivery and in the model of a broker with transactions. The check of rows after a fence has no
 * mutant: the ledger, the runs and the survey of the lanes each detect the same.
 */
export const EXACTLY_ONCE_MUTANTS: readonly Mutant[] = [
  {
    name: "ledger not read at the take-over",
    file: "relay/exactly-once.ts",
    find: "const committed = await this.#fence(this.#takeover.settledBatch, this.#ended.signal);",
    replace:
      "await this.#fence(this.#takeover.settledBatch, this.#ended.signal);\n    const committed: CommittedBatch[] = [];",
    why: "the new owner does not learn what the former owner delivered but did not settle",
  },
  {
    name: "healing settle skipped",
    file: "relay/exactly-once.ts",
    find: "if (unsettled.length > 0 && !this.#isOver) await this.#heal(unsettled);",
    replace: "",
    why: "events that are delivered according to the ledger are read and sent again",
  },
  {
    name: "events read before the healing",
    file: "relay/exactly-once.ts",
    find: "if (unsettled.length > 0 && !this.#isOver) await this.#heal(unsettled);",
    replace: "if (unsettled.length > 0 && !this.#isOver) void this.#heal(unsettled);",
    why: "a run that begins before the healing settle returns events that the settle is about to mark",
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
    why: "an open run has a snapshot from before the healing settle",
  },
  {
    name: "ring overwritten",
    file: "relay/exactly-once.ts",
    find: "BigInt(Math.max(1, Math.min(UNSETTLED_MAX, ringSize >> 1)));",
    replace: "BigInt(1_000_000);",
    why: "more batches are committed than the ledger can hold while their settles are pending",
  },
  {
    name: "spent session used again",
    file: "relay/exactly-once.ts",
    find: "if (this.#session !== null && !this.#session.isSpent) return this.#session;",
    replace: "if (this.#session !== null) return this.#session;",
    why: "a request of the last transaction arrives late and hits the next one",
  },
  {
    name: "batch number reused after an unknown commit",
    file: "relay/exactly-once.ts",
    find: "if (!this.#isOver) this.#host.lost(unknown);",
    replace: "",
    and: [
      {
        find: "if ((committed.at(-1)?.batch ?? 0n) !== this.#inLedger) throw laneMoved(this.#context.name, this.#lane);",
        replace: "void committed;",
      },
    ],
    why: "the commit may have taken effect: its events are sent again under the same number",
  },
  {
    name: "delivered reported before the commit",
    file: "relay/exactly-once.ts",
    find: "        await this.#inTime(signal, (inTime) => session.commit(inTime));\n        this.#last = note.batch;",
    replace: "        void session.commit(signal).catch(() => undefined);\n        this.#last = note.batch;",
    why: "events that are marked as delivered may never become visible",
  },
  {
    name: "failures after an abort reported as delivered",
    file: "relay/exactly-once.ts",
    find: 'report(index, outcome.kind === "delivered" ? skipped : outcome);',
    replace: 'report(index, outcome.kind === "skipped" ? delivered : outcome);',
    why: "one event was refused, and the others of its transaction were aborted with it",
  },
  {
    name: "part of a batch settled",
    file: "relay/delivered-buffer.ts",
    find: "return { batch, delivered: this.#ids.splice(0, count), ledger };",
    replace: "return { batch, delivered: this.#ids.splice(0, count).slice(0, max), ledger };",
    why: "a batch number covers all events of the batch: the rest is read and sent again",
  },
  {
    name: "batches of the ledger settled without their numbers",
    file: "relay/settler.ts",
    find: 'if (batch !== null) this.#delivered.endBatch(batch, "batch");',
    replace: "",
    why: "several batches count as one: the number of a later one proves events that are not settled",
  },
  {
    name: "gap in the ledger ignored",
    file: "relay/ledger-check.ts",
    find: "if (newest > settledBatch && missing !== 0n) {",
    replace: "if (newest > settledBatch && missing < 0n) {",
    why: "batches that the ledger no longer holds were delivered, and are sent again",
  },
  {
    name: "reused id treated as delivered",
    file: "relay/ledger-marks.ts",
    find: "if (printOf(event) === prints.get(event.id)) known.add(event.id);",
    replace: "if (prints.has(event.id)) known.add(event.id);",
    why: "after a failover another event got the id of a lost one, and was never delivered",
  },
  {
    name: "outage while fencing not reported",
    file: "relay/exactly-once.ts",
    find: "if (isOutage) destination.failed(error.message, { probe });",
    replace: "if (isOutage && probe) destination.cancelProbe();",
    why: "a destination that is down gets endless requests",
  },
  {
    name: "answer to a fence not reported",
    file: "relay/exactly-once.ts",
    find: "        destination.answered(probe);\n",
    replace: "",
    why: "the probe of an open circuit gets no outcome, and no more events are sent",
  },
  {
    name: "unanswered send forgotten at the take-over",
    file: "relay/lane.ts",
    find: "else this.#host.unanswered.noteEvent(messages[0]!.event.id, startedMs);",
    replace: "",
    why: "an unanswered event voids its lane repeatedly",
  },
  {
    name: "transactions not reduced after an unanswered send",
    file: "relay/lane.ts",
    find: "if (messages.length > 1) this.#host.unanswered.noteBatch(this.grant.lane);",
    replace: "if (messages.length > 1) return;",
    why: "the unanswered event is never sent alone, so it cannot be identified",
  },
  {
    name: "fence that does not fence",
    file: "publishers/memory/memory-transaction-broker.ts",
    find: "if (epoch !== undefined && epoch !== lane.epoch) {",
    replace: "if (epoch !== undefined && epoch > lane.epoch) {",
    why: "a former owner commits beside the current one",
  },
  {
    name: "fence aborts a decided commit",
    file: "publishers/memory/memory-transaction-broker.ts",
    find: "    this.complete(address);\n    this.#abort(lane);",
    replace: "    this.#abort(lane);",
    why: "a commit that was acknowledged never becomes visible",
  },
];
