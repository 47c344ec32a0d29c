/** A bug planted into the shipped code when it is loaded. The simulator must notice each of them. */
export interface Mutant {
  readonly name: string;
  /** Below `src`. */
  readonly file: string;
  /** Stands exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  readonly why: string;
  /** In the same file, where two guards stand for one rule and either of them would do. */
  readonly and?: { readonly find: string; readonly replace: string };
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: "in-flight set not consulted",
    file: "core/in-flight.ts",
    find: "return this.#runOf.has(id) || this.#lingering.has(id);",
    replace: "return this.#runOf.has(id) && this.#lingering.has(id);",
    why: "a run that races a settle shows what is on its way already",
  },
  {
    name: "in-flight set forgets at the settle",
    file: "core/in-flight.ts",
    find: "if (this.#openRun !== null && run !== this.#openRun) this.#lingering.add(id);",
    replace: "",
    why: "the open run's snapshot is older than the settle and still shows the event",
  },
  {
    name: "passed-over key not remembered",
    file: "relay/poller.ts",
    find: "if (event.key !== null && !open.leftOut.has(event.lane)) open.passedOver.add(event.key);",
    replace: "",
    why: "a later page shows the follower of an event that found no place",
  },
  {
    name: "handed-back key not passed over",
    file: "relay/lane.ts",
    find: "      this.#host.passOver(event.key);\n",
    replace: "",
    why: "the open run goes on with the followers of an event that was given back",
  },
  {
    name: "run begun amid a hand-back",
    file: "relay/lane.ts",
    find: "return this.#open && !this.#settler.isHandingBack;",
    replace: "return this.#open;",
    why: "what is on its way back to the source is not shown, its followers are",
  },
  {
    name: "hold not honoured",
    file: "relay/lane.ts",
    find: "if (this.holds.get(event.id) !== undefined || this.holds.parks(event.key)) return false;",
    replace: "if (this.holds.get(event.id) !== undefined) return false;",
    why: "followers pass an event that failed after the run had begun",
  },
  {
    name: "followers sent in the same batch",
    file: "relay/lane-queue.ts",
    find: "const count = sendable(line, manyOfKey ? max - taken.length : 1);",
    replace: "const count = sendable(line, max - taken.length);",
    why: "where the destination does not keep them back, followers of a failed event are delivered",
  },
  {
    name: "key in two publishes",
    file: "relay/lane-queue.ts",
    find: "if (line.waiting.length > 0 && line.unanswered === 0) return line;",
    replace: "if (line.waiting.length > 0) return line;",
    and: { find: "if (line.unanswered === 0) this.#list(line);", replace: "this.#list(line);" },
    why: "two publishes of a key are on the wire and arrive in any order",
  },
  {
    name: "requeued at the back",
    file: "relay/lane-queue.ts",
    find: "line.waiting = [...entries, ...line.waiting];",
    replace: "line.waiting = [...line.waiting, ...entries];",
    why: "what is sent again comes after its followers",
  },
  {
    name: "a faulty event lets others pass",
    file: "relay/lane-queue.ts",
    find: "if (line.waiting[0]?.fault !== null) return 1;",
    replace: "",
    why: "followers go out together with an event that is to be buried",
  },
  {
    name: "lease deadline ignored",
    file: "relay/tenure.ts",
    find: "if (nowMs >= this.#deadlineMs)",
    replace: "if (nowMs >= this.#deadlineMs + 60_000)",
    why: "a process that could not renew goes on publishing beside its successor",
  },
  {
    name: "suspended machine not noticed",
    file: "relay/tenure.ts",
    find: "this.#driftMs) >= DRIFT_MAX_MS)",
    replace: "this.#driftMs) >= DRIFT_MAX_MS * 1_000)",
    why: "the monotonic clock stood still, the lease did not",
  },
  {
    name: "lease counted from the answer",
    file: "relay/instance.ts",
    find: "if (alive) tenure.renewed(sent);",
    replace: "if (alive) tenure.renewed(sentAt(clock));",
    why: "the database counts from the request: a late answer makes the lease look longer than it is",
  },
  {
    name: "abandon does not wait for publishes",
    file: "relay/dispatcher.ts",
    find: "controller.abort();\n    await this.idle();",
    replace: "controller.abort();",
    why: "the lane begins anew while its former life is still on the wire",
  },
  {
    name: "leave does not wait for publishes",
    file: "relay/lane.ts",
    find: "    await this.#dispatcher.idle();\n",
    replace: "",
    why: "a lane that is handed over has events on the wire, and they are sent again",
  },
  {
    name: "graceful stop forgets to settle",
    file: "relay/lane.ts",
    find: "    await this.#settler.idle();\n",
    replace: "",
    why: "delivered events are not marked and are sent again",
  },
  {
    name: "lane not released",
    file: "relay/lane.ts",
    find: "    await this.#context.store.release(this.grant);\n",
    replace: "",
    why: "a lane given up by a living instance stays its own, and nobody serves it",
  },
  {
    name: "excess lanes kept",
    file: "relay/session.ts",
    find: "for (const lane of owned.slice(share)) void this.#leave(lane);",
    replace: "",
    why: "who comes later never gets a lane",
  },
  {
    name: "handed-back events kept",
    file: "relay/settler.ts",
    find: "    this.#handedBack.push(...ids);\n",
    replace: "",
    why: "durable claims that nobody works on are never freed while their owner lives",
  },
  {
    name: "failed settle ignored",
    file: "relay/settler.ts",
    find: "        this.#listener.lost(error);\n",
    replace: "",
    why: "what was to be written is dropped, and the lane goes on as if it were",
  },
  {
    name: "busy database taken for lost",
    file: "relay/settler.ts",
    find: "if (!tookNoEffect(error) || this.#signal.aborted) throw error;",
    replace: "throw error;",
    why: "nothing took effect, yet everything in flight is sent again",
  },
  {
    name: "silence taken for success",
    file: "relay/dispatcher.ts",
    find: "tell(entry, this.#withoutAnswer(entry, error, startedMs));",
    replace: 'tell(entry, { kind: "delivered" });',
    why: "an event without an answer is marked as delivered and may be lost",
  },
  {
    name: "attempts spent on destination errors",
    file: "relay/lane-failures.ts",
    find: 'else if (outcome.scope === "event") this.#eventFailed',
    replace: 'else if (outcome.scope !== "topic") this.#eventFailed',
    why: "an outage buries the events that it meets",
  },
  {
    name: "attempts spent on topic errors",
    file: "relay/lane-failures.ts",
    find: 'else if (outcome.scope === "event") this.#eventFailed',
    replace: 'else if (outcome.scope !== "destination") this.#eventFailed',
    why: "a missing topic buries its events",
  },
  {
    name: "circuit never closes",
    file: "core/circuit.ts",
    find: "if (!this.isOpen || !options.probe) return false;",
    replace: "if (this.isOpen || !this.isOpen) return false;",
    why: "after an outage only probes get through",
  },
  {
    name: "one attempt too many",
    file: "core/retry-policy.ts",
    find: "if (failures >= policy.attemptsMax)",
    replace: "if (failures > policy.attemptsMax)",
    why: "the last failure allowed is not the last one",
  },
  {
    name: "Retry-After ignored",
    file: "relay/failure-rule.ts",
    find: 'return { kind: "retry", delayMs: Math.max(leastMs, delayMs) };',
    replace: 'return { kind: "retry", delayMs };',
    why: "the destination said when to come again",
  },
  {
    name: "park and skip mixed up",
    file: "relay/failure-rule.ts",
    find: 'parks: policy.onExhausted !== "skip"',
    replace: 'parks: policy.onExhausted === "skip"',
    why: "followers pass a dead event that should hold them back",
  },
  {
    name: "rejected event tried again",
    file: "relay/failure-rule.ts",
    find: 'if (failed.kind === "rejected") return dead;',
    replace: "",
    why: "no retry can cure it, and each one is an attempt",
  },
  {
    name: "crash poison never dead",
    file: "relay/crash-poison.ts",
    find: "const CRASHES_MAX = 3;",
    replace: "const CRASHES_MAX = 1_000_000;",
    why: "an event that ends the process does so for ever",
  },
  {
    name: "suspect not written down",
    file: "relay/lane.ts",
    find: "return this.#settler.suspect(id, key);",
    replace: "return null;",
    why: "nobody knows after the crash which event it was",
  },
  {
    name: "vanished row keeps its hold",
    file: "relay/hold-book.ts",
    find: "if (!known.has(id) && !isBusy(id)) this.remove(id);",
    replace: "void id;",
    why: "the key of a deleted dead letter is parked for ever",
  },
  {
    name: "skipped followers dropped",
    file: "relay/lane-failures.ts",
    find: 'if (outcome.kind === "skipped") this.#notJudged(entries, attempt);',
    replace: 'if (outcome.kind === "skipped") return;',
    why: "events that were kept back by the destination are never sent",
  },
  {
    name: "probe without a verdict never ends",
    file: "relay/lane-failures.ts",
    find: "    queue.putBack(entries);\n    if (attempt.probe) context.destination.cancelProbe();",
    replace: "    queue.putBack(entries);",
    why: "the circuit waits for ever for the outcome of its probe",
  },
  {
    name: "topic's probe leaks",
    file: "relay/lane.ts",
    find: "if (entry.topicProbe) this.#context.destination.cancelTopicProbe(entry.message!.topic);",
    replace: "",
    why: "a topic whose probe was given up is never probed again",
  },
  {
    name: "own lane left lying",
    file: "relay/session.ts",
    find: "const ours = free.filter(({ owner }) => owner === this.#tenure.id);",
    replace: "const ours: typeof free = [];",
    why: "a lane that failed still bears the name of a living owner, so nobody takes it",
  },
  {
    name: "settle without epoch check",
    file: "sources/memory/memory-store.ts",
    find: "      this.#fence(settlement.grant);\n",
    replace: "",
    why: "a zombie's write takes effect",
  },
  {
    name: "settle out of sequence",
    file: "sources/memory/memory-store.ts",
    find: "if (settled !== settlement.previousBatch)",
    replace: "if (settled < 0n)",
    why: "a settle that was taken for lost commits late, or a failover took the one before it back",
  },
  {
    name: "epoch handed out twice",
    file: "sources/memory/memory-store.ts",
    find: "const epoch = row.epoch + 1n > nowMs ? row.epoch + 1n : nowMs;",
    replace: "const epoch = row.epoch > 0n ? row.epoch : nowMs;",
    why: "a former owner's writes look like the present one's",
  },
  {
    name: "claims of the dead not freed",
    file: "sources/memory/memory-claims.ts",
    find: "      if (died) this.#reap(row);\n      else database.reopen(row);\n",
    replace: "",
    why: "what a crashed process had claimed durably waits for ever",
  },
];

/** Throws when the text to be replaced is not there exactly once: the code has changed, and the bug with it. */
export function applyMutant(mutant: Mutant, source: string): string {
  const patches = mutant.and === undefined ? [mutant] : [mutant, mutant.and];
  return patches.reduce((text, { find, replace }) => {
    const parts = text.split(find);
    if (parts.length === 2) return parts.join(replace);
    const times = parts.length - 1;
    throw new Error(`The mutant "${mutant.name}" matches ${times} times in src/${mutant.file}; it must be once.`);
  }, source);
}

export function mutantNamed(name: string): Mutant {
  const mutant = MUTANTS.find((candidate) => candidate.name === name);
  if (mutant === undefined) throw new Error(`There is no mutant "${name}".`);
  return mutant;
}
