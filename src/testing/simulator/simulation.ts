import { checkReported } from "./check-health.ts";
import { StandstillWatch } from "./check-standstill.ts";
import { EventFates } from "./event-fates.ts";
import { type FaultKind, Faults, type TimedFault } from "./faults.ts";
import { History } from "./history.ts";
import type { World } from "./port-call.ts";
import { refuseMarks } from "./refused-marks.ts";
import type { EventPlan, OutagePlan, Scenario, TimedPlan } from "./scenario.ts";
import { SeededRandom } from "./seeded-random.ts";
import { SimBroker } from "./sim-broker.ts";
import { SimDatabase } from "./sim-database.ts";
import { SimSlot } from "./sim-slot.ts";
import { SimWriters } from "./sim-writers.ts";
import { slowSettlesOf } from "./slow-settles.ts";
import { VirtualTime } from "./virtual-clock.ts";

/** How long the idle processes are observed. */
const IDLE_MS = 12_000;
const LOOK_EVERY_MS = 250;
const STEPS_MAX = 2_000_000;

/** Runs the scenario of one seed until every deliverable event is delivered. */
export class Simulation {
  readonly scenario: Scenario;
  readonly world: World;
  readonly slots: readonly SimSlot[];
  readonly brokers: readonly SimBroker[];
  /** When everything was delivered; null if that never happened. */
  drainedAtMs: number | null = null;
  /** Port calls per second of virtual time while idle. */
  idleCallsPerSecond = 0;
  /** Requests per second to a destination that was down for an hour, without other faults. */
  outageRequestsPerSecond = 0;
  readonly #fates: EventFates;
  readonly #writers: SimWriters;
  readonly #random: SeededRandom;

  constructor(scenario: Scenario, verbose = false) {
    this.scenario = scenario;
    const { seed, durableClaims, claimLeaseMs, timing, rates, slowKeys } = scenario;
    const root = new SeededRandom(seed, 2);
    const time = new VirtualTime(root.fork());
    const history = new History(time, verbose);
    const faults = new Faults(rates, root.fork());
    const database = new SimDatabase(time, history, { durableClaims, claimLeaseMs });
    this.#random = root.fork();
    this.world = { time, history, faults, database, random: root.fork(), slowSettles: slowSettlesOf(seed), ...timing };
    this.brokers = scenario.brokers.map((options) => new SimBroker(options, this.world, scenario.onlyKey));
    this.#fates = new EventFates(faults, slowKeys);
    this.#writers = new SimWriters(this.world, this.#fates);
    this.slots = scenario.slots.map((_, index) => new SimSlot(index, this.world, scenario, this.brokers, this.#fates));
  }

  /** `isDrained` checks in the database whether every deliverable event is delivered. */
  async run(isDrained: () => boolean, drainWithinMs: () => number): Promise<void> {
    const { time, faults, history } = this.world;
    for (const [index, slot] of this.scenario.slots.entries()) {
      time.after(slot.startsAtMs, () => this.slots[index]!.start());
    }
    for (const plan of this.scenario.writes) time.after(plan.atMs, () => this.#writers.start(plan));
    for (const plan of this.scenario.timed) time.after(plan.atMs, () => this.#happen(plan));
    this.#planOutage();
    new StandstillWatch(this).start();
    const isHopeless = (): boolean => history.violations.length > 0 || time.steps > STEPS_MAX;
    await time.runUntil(this.scenario.calmFromMs, isHopeless);
    faults.isOn = false;
    this.#heal();
    if (this.scenario.outage !== null) await this.#sitOut(this.scenario.outage, isHopeless);
    const deadlineMs = time.nowMs + drainWithinMs();
    while (this.drainedAtMs === null && time.nowMs < deadlineMs && !isHopeless()) {
      await time.runUntil(time.nowMs + LOOK_EVERY_MS, isHopeless);
      if (this.#writers.isDone && isDrained()) this.drainedAtMs = time.nowMs;
    }
    if (time.steps > STEPS_MAX) history.violate("hot loop", `more than ${STEPS_MAX} steps`);
    if (this.drainedAtMs === null || isHopeless()) return;
    await this.#watchIdle(isHopeless);
  }

  #planOutage(): void {
    const { outage } = this.scenario;
    const { time, faults, history } = this.world;
    if (outage === null) return;
    const broker = this.brokers[outage.target % this.brokers.length]!;
    time.after(outage.atMs, () => {
      faults.count("hour-long outage");
      broker.beginOutage(outage.untilMs - time.nowMs);
    });
    for (const { atMs, kind, target } of outage.ends) {
      const slot = this.slots[target % this.slots.length]!;
      time.after(atMs, () => {
        history.note(slot.process?.name ?? "world", `! ${kind}`);
        if (kind === "crash") slot.process?.crash();
        else void slot.stop();
      });
    }
  }

  /** Ends all faults. Paused processes resume by themselves. */
  #heal(): void {
    this.world.history.note("faults", "are over");
    this.world.database.comeUp();
    const { model } = this.world.database;
    for (const name of [...model.tables.pauses.keys()]) model.pause(name, null);
    for (const broker of this.brokers) broker.comeUp();
  }

  async #sitOut({ untilMs, target }: OutagePlan, isHopeless: () => boolean): Promise<void> {
    const { time } = this.world;
    const broker = this.brokers[target % this.brokers.length]!;
    const [requests, fromMs] = [broker.requests, time.nowMs];
    await time.runUntil(untilMs, isHopeless);
    this.outageRequestsPerSecond = ((broker.requests - requests) / (time.nowMs - fromMs)) * 1_000;
  }

  /** Measures idle calls. The first seconds are excluded: events are still in flight and processes restart. */
  async #watchIdle(isHopeless: () => boolean): Promise<void> {
    const { time, history } = this.world;
    const isAway = ({ process }: SimSlot): boolean => process === null || process.isPaused;
    while (this.slots.some(isAway) && !isHopeless()) await time.runUntil(time.nowMs + IDLE_MS / 4, isHopeless);
    // A replayed dead letter may unblock its key only now: the idle time begins when no more events arrive.
    for (let arrived = -1; arrived !== history.arrivals.length && !isHopeless(); ) {
      arrived = history.arrivals.length;
      await time.runUntil(time.nowMs + IDLE_MS / 4, isHopeless);
      const before = history.calls;
      await time.runUntil(time.nowMs + IDLE_MS, isHopeless);
      this.idleCallsPerSecond = ((history.calls - before) / IDLE_MS) * 1_000;
    }
  }

  #happen(plan: TimedPlan): void {
    const { faults, history, database } = this.world;
    const { kind, forMs, amount, target } = plan;
    const slot = this.slots[target % this.slots.length]!;
    const broker = this.brokers[target % this.brokers.length]!;
    const { process } = slot;
    const needsProcess = PROCESS_FAULTS.includes(kind);
    if (needsProcess && process === null) return;
    if (!ROW_FAULTS.includes(kind)) faults.count(kind);
    history.note(process?.name ?? "world", `! ${kind}`);
    if (kind === "crash") process?.crash();
    else if (kind === "pause" || kind === "suspend") {
      history.disturb(process!.name, kind, forMs);
      process?.pause({ forMs, suspended: kind === "suspend" });
    } else if (kind === "graceful stop") void slot.stop();
    else if (kind === "process clock step") {
      history.disturb(process!.name, kind);
      process?.stepWallClock(target % 2 === 0 ? amount : -amount);
    } else if (kind === "instance taken for dead") database.takeForDead(process!.name);
    else if (kind === "database down") database.goDown(forMs);
    else if (kind === "failover") this.#failOver(amount, forMs);
    else if (kind === "column missing") this.#dropColumn(forMs);
    else if (kind === "maintenance lock") database.lock(forMs);
    else if (kind === "marks refused") refuseMarks(this, forMs, amount);
    else if (kind === "database clock forward") database.stepClock(amount);
    else if (kind === "database clock back") database.stepClock(-amount);
    else if (kind === "destination down") broker.goDown(forMs);
    else if (ROW_FAULTS.includes(kind)) this.#meddle(kind);
    else if (kind === "pipeline paused") this.#pausePipeline(plan);
    else broker.takeTopicDown(this.#random.pick(["a.placed", "a.paid", "b.sent"]), forMs);
  }

  /** Before the column is back, the owners of lanes must have reported that they cannot read. */
  #dropColumn(forMs: number): void {
    const { database, time } = this.world;
    const owners = new Map(this.slots.map((slot) => [slot, slot.process]));
    database.dropColumn(forMs);
    time.after(forMs - 1, () => {
      const alive = this.slots.filter((slot) => slot.process !== null && slot.process === owners.get(slot));
      for (const slot of alive) checkReported(this, slot, forMs);
    });
  }

  #pausePipeline({ amount, forMs, target }: TimedPlan): void {
    const { database, history, time } = this.world;
    const names = [...database.model.tables.pipelines.keys()];
    const name = names[target % names.length];
    if (name === undefined || !database.isUp) return;
    history.note("person", `pauses ${name}`);
    database.model.pause(name, { by: "person", reason: null, handsOver: amount === 0 });
    time.after(forMs, () => database.model.pause(name, null));
  }

  /** Another program changes rows that the relay has failed to deliver so far. */
  #meddle(kind: TimedFault): void {
    const { database, history, faults } = this.world;
    const { tables } = database.model;
    const wantsDead = kind === "dead letter replayed";
    const holds = [...tables.pipelines.values()].flatMap((pipeline) => [...pipeline.holds.values()]);
    const fitting = holds.filter(({ id, state }) =>
      wantsDead ? state === "dead" : tables.open.has(id) || state === "dead",
    );
    if (!database.isUp || fitting.length === 0) return;
    const { id } = this.#random.pick(fitting);
    const content = database.model.row(id)?.payload.toString("latin1");
    const event = history.written.find((written) => written.content === content);
    if (event === undefined) return;
    faults.count(kind);
    history.note("person", `${kind}: ${id}`);
    if (wantsDead && database.model.replay(id)) history.replayed.add(event.content);
    else if (kind === "held row deleted" && database.model.delete(id)) history.takeAway(event, "deleted");
    else if (kind === "held row marked" && database.model.mark(id)) history.takeAway(event, "marked");
  }

  #failOver(commits: number, downMs: number): void {
    const { database, faults, time } = this.world;
    const { idsAgain } = this.scenario;
    const lost = database.failOver(commits, downMs);
    for (const id of lost) {
      if (!this.#random.chance(idsAgain.chance)) continue;
      faults.count("id given out again");
      const key = this.#random.pick(["k0", "k1", "again", null]);
      const event: EventPlan = { id, key, type: "a.placed", fate: { kind: "fine" } };
      const atMs = downMs + this.#random.between(1, idsAgain.withinMs);
      time.after(atMs, () => this.#writers.start({ atMs, commitsAfterMs: 1, events: [event] }));
    }
  }
}

const ROW_FAULTS: readonly FaultKind[] = ["held row deleted", "held row marked", "dead letter replayed"];
const PROCESS_FAULTS: readonly FaultKind[] = [
  "crash",
  "pause",
  "suspend",
  "graceful stop",
  "process clock step",
  "instance taken for dead",
];
