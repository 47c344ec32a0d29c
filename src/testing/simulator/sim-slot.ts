import { systemClock } from "../../core/clock.ts";
import { createRelay, type Relay } from "../../relay/relay.ts";
import { Condition } from "../../telemetry/condition.ts";
import type { EventFates } from "./event-fates.ts";
import { FaultyPublisher } from "./faulty-publisher.ts";
import { faultySource, type OpenRun } from "./faulty-store.ts";
import type { World } from "./port-call.ts";
import type { Scenario } from "./scenario.ts";
import type { SimBroker } from "./sim-broker.ts";
import { SimProcess } from "./sim-process.ts";

/** Runs one process at a time, and starts another one whenever the process ends. */
export class SimSlot {
  readonly #index: number;
  readonly #world: World;
  readonly #scenario: Scenario;
  readonly #brokers: readonly SimBroker[];
  readonly #fates: EventFates;
  #process: SimProcess | null = null;
  #relay: Relay | null = null;
  #openRuns = new Set<OpenRun>();
  #pauses = new Map<string, number>();
  #condition: Condition;
  #starts = 0;
  #isStopping = false;

  constructor(index: number, world: World, scenario: Scenario, brokers: readonly SimBroker[], fates: EventFates) {
    this.#index = index;
    this.#world = world;
    this.#scenario = scenario;
    this.#brokers = brokers;
    this.#fates = fates;
    this.#condition = new Condition(systemClock);
  }

  /** The health that the process reports. */
  get condition(): Condition {
    return this.#condition;
  }

  get process(): SimProcess | null {
    return this.#process?.isAlive ? this.#process : null;
  }

  start(): void {
    const { time, random, history } = this.#world;
    this.#starts += 1;
    const name = `p${this.#index}.${this.#starts}`;
    const process = new SimProcess(name, time, random.fork(), () => this.#crashed(name));
    this.#process = process;
    this.#isStopping = false;
    this.#openRuns = new Set();
    this.#pauses = new Map();
    this.#relay = this.#relayOf(process);
    this.#watchPauses(this.#relay, this.#pauses);
    this.#condition = new Condition(process.clock);
    this.#condition.listen(this.#relay);
    history.note(name, "starts");
    this.#relay.onAny((event) => {
      if (process.isAlive && history.lines !== null) history.note(name, `~ ${JSON.stringify(event, bigintAsText)}`);
    });
    void this.#relay.start();
  }

  /** Stops like an orchestrator: gracefully, then kills the process after a timeout. */
  async stop(): Promise<void> {
    const { process } = this;
    const relay = this.#relay;
    if (process === null || relay === null || this.#isStopping) return;
    const { time, history } = this.#world;
    this.#isStopping = true;
    history.note(process.name, "is asked to stop");
    const killer = time.after(this.#scenario.timing.shutdownMs + STOP_SLACK_MS, () => {
      if (!process.isAlive) return;
      history.note(process.name, "did not stop in time");
      this.stuckStops += 1;
      process.crash();
    });
    await relay.stop();
    killer.cancelled = true;
    if (!process.isAlive) return;
    process.exit();
    history.note(process.name, "stopped");
    const idle = [...this.#openRuns].filter(({ isBusy }) => !isBusy);
    if (idle.length > 0) history.violate("leak", `${process.name} stopped with a run open`);
    this.#startAgain();
  }

  /** Number of stops that took much longer than their grace period. */
  stuckStops = 0;

  #watchPauses(relay: Relay, pauses: Map<string, number>): void {
    relay.on("PipelinePaused", ({ pipeline }) => pauses.set(pipeline, this.#world.time.nowMs));
    relay.on("PipelineResumed", ({ pipeline }) => pauses.delete(pipeline));
    relay.on("InstanceJoined", () => pauses.clear());
  }

  #crashed(name: string): void {
    this.#world.history.note(name, "crashed");
    this.#world.history.disturb(name, "crash");
    this.#startAgain();
  }

  #startAgain(): void {
    this.#world.time.after(this.#scenario.slots[this.#index]!.restartsAfterMs, () => this.start());
  }

  #relayOf(process: SimProcess): Relay {
    const { scenario, world } = { scenario: this.#scenario, world: this.#world };
    const publishers = this.#brokers.map(
      (broker) => new FaultyPublisher({ world, broker, fates: this.#fates, process }),
    );
    return createRelay({
      sources: [faultySource(world, process, this.#openRuns, this.#pauses)],
      destinations: Object.fromEntries(publishers.map((publisher) => [publisher.name, publisher])),
      routes: scenario.routes.map((route) => ({ ...route, topic: (event) => event.type })),
      limits: scenario.limits,
      timing: scenario.timing,
      lanes: scenario.lanes,
      instanceName: process.name,
      clock: process.clock,
      random: process.random,
    });
  }
}

const STOP_SLACK_MS = 30_000;

function bigintAsText(_name: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}
