import { setTimeout as pauseMs } from "node:timers/promises";
import type { SeededRandom } from "../../../src/testing/simulator/seeded-random.ts";
import type { RelayFleet, RelayProcess } from "../../e2e/relay-fleet.ts";
import type { PostgresServer } from "../../servers/postgres.ts";
import { until } from "../../servers/until.ts";
import type { KafkaStand } from "./kafka-stand.ts";
import { localPortsOf } from "./process-ports.ts";
import { endInGoodOrder } from "./scene.ts";

export type Blow = "kill" | "pause" | "terminate" | "brokerKill" | "brokerStop" | "cut" | "databaseKill";

/** How often each blow falls. Kills are what a proof counts, the others come between them. */
const WEIGHTS: Readonly<Record<Blow, number>> = {
  kill: 60,
  pause: 14,
  terminate: 5,
  brokerKill: 7,
  brokerStop: 5,
  cut: 9,
  databaseKill: 0,
};

/** Proofs of logs take the database away too. */
export const LOG_WEIGHTS: typeof WEIGHTS = { ...WEIGHTS, kill: 45, databaseKill: 40 };

/** So long a blow waits for a moment at which a transaction is open. */
const OPEN_WAIT_MS = 1_000;
/** Beyond the patience of a statement, and as long as a lease. */
const DATABASE_DOWN_MS_MAX = 2_500;
/** Long enough for a successor to be at work. */
const COMMIT_HOLD_MS_MAX = 6_000;

export interface StrikerOptions {
  readonly fleet: RelayFleet;
  readonly stand: KafkaStand;
  /** The server that is written to at present. */
  readonly server: () => PostgresServer;
  readonly random: SeededRandom;
  readonly weights?: typeof WEIGHTS;
  /** Told what happens, line by line. */
  readonly log: (line: string) => void;
}

/** Deals blows, one after the other, and counts them. */
export class Striker {
  readonly blows: Record<Blow, number> = {
    ...{ kill: 0, pause: 0, terminate: 0, brokerKill: 0, brokerStop: 0, cut: 0, databaseKill: 0 },
  };
  /** Transactions that were open at the broker when their process was killed or stopped. */
  cutOpen = 0;
  /** Of PostgreSQL: one blow may be several. */
  restarts = 0;
  /** Kills and pauses that met at least one of those. */
  hits = 0;
  readonly #fleet: RelayFleet;
  readonly #stand: KafkaStand;
  readonly #random: SeededRandom;
  readonly #server: () => PostgresServer;
  readonly #weights: typeof WEIGHTS;
  readonly #log: (line: string) => void;
  #nextName: number;

  constructor({ fleet, stand, server, random, weights = WEIGHTS, log }: StrikerOptions) {
    this.#fleet = fleet;
    this.#stand = stand;
    this.#server = server;
    this.#random = random;
    this.#weights = weights;
    this.#log = log;
    this.#nextName = fleet.processes.length + 1;
  }

  async strike(blow: Blow = this.#draw()): Promise<void> {
    if (blow === "cut") this.#cut();
    else if (blow === "databaseKill") await this.#strikeDatabase();
    else if (blow === "brokerKill" || blow === "brokerStop") await this.#strikeBroker(blow);
    else await this.#strikeRelay(blow);
    this.blows[blow] += 1;
  }

  #draw(): Blow {
    // Several brokers are there to be taken away: leaders and coordinators shall move.
    const brokerFactor = this.#stand.nodes.length > 1 ? 3 : 1;
    const blows = (Object.entries(this.#weights) as [Blow, number][]).map(
      ([blow, weight]) => [blow, blow.startsWith("broker") ? weight * brokerFactor : weight] as const,
    );
    let left = this.#random.between(
      0,
      blows.reduce((sum, [, weight]) => sum + weight, 0),
    );
    for (const [blow, weight] of blows) {
      left -= weight;
      if (left < 0) return blow;
    }
    return "kill";
  }

  #cut(): void {
    this.#log("cut all connections to Kafka");
    this.#stand.cut();
  }

  async #strikeBroker(blow: "brokerKill" | "brokerStop"): Promise<void> {
    const node = this.#random.pick(this.#stand.nodes);
    this.#log(`${blow === "brokerKill" ? "kill" : "stop"} broker ${this.#stand.nodes.indexOf(node) + 1}`);
    await (blow === "brokerKill" ? node.kill() : node.stop());
    // Several brokers: often long enough for the others to take leaders and coordinators over.
    await pauseMs(this.#random.between(0, this.#stand.nodes.length > 1 ? 7_000 : 2_000));
    await node.restart();
    await this.#stand.healthy();
  }

  /** Sometimes it falls again before a relay has found its feet. */
  async #strikeDatabase(): Promise<void> {
    const random = this.#random;
    const times = random.pick([1, 1, 2, 3]);
    for (let time = 1; time <= times; time += 1) {
      if (time > 1) await pauseMs(random.between(0, 600));
      await this.#endDatabase(random.chance(0.3), random.between(0, random.pick([300, 300, DATABASE_DOWN_MS_MAX])));
    }
  }

  /** Without a checkpoint: by the server's own hand or by kill -9. Sometimes a relay dies meanwhile. */
  async #endDatabase(isKilled: boolean, downMs: number): Promise<void> {
    const server = this.#server();
    this.#log(`${isKilled ? "kill" : "stop"} PostgreSQL at once, for ${downMs.toFixed(0)} ms`);
    await (isKilled ? server.kill() : server.stop("immediate"));
    this.restarts += 1;
    await pauseMs(downMs);
    const relay = this.#random.chance(0.3) ? this.#pickRelay() : null;
    if (relay !== null) {
      await this.#kill(relay);
      this.blows.kill += 1;
    }
    await server.restart();
    if (relay !== null) await this.#startAnother();
  }

  #pickRelay(): RelayProcess {
    return this.#random.pick(this.#fleet.processes.filter(({ isRunning }) => isRunning));
  }

  async #startAnother(): Promise<void> {
    await this.#fleet.start(`relay-${this.#nextName++}`);
  }

  async #strikeRelay(blow: "kill" | "pause" | "terminate"): Promise<void> {
    const relay = this.#pickRelay();
    if (blow === "pause") {
      await this.#pausePastTheLease(relay);
      return;
    }
    if (blow === "kill") await this.#kill(relay);
    else {
      this.#log(`terminate ${relay.name}`);
      await endInGoodOrder(relay);
    }
    await this.#startAnother();
  }

  async #kill(relay: RelayProcess): Promise<void> {
    const ports = await this.#pickMoment(relay);
    await relay.kill();
    this.#countOpen(`kill ${relay.name}`, ports);
  }

  /** Resumed when the others have taken it for dead, so that a zombie with a transaction in its hands comes back. */
  async #pausePastTheLease(relay: RelayProcess): Promise<void> {
    await relay.waitFor("InstanceJoined");
    const ports = await this.#pickMoment(relay);
    await relay.pause();
    this.#countOpen(`pause ${relay.name}`, ports);
    const joined = relay.told.findLast(({ name }) => name === "InstanceJoined")?.instance;
    const isReaped = () => this.#fleet.told("InstanceReaped").some(({ instance }) => instance === joined);
    await until(`${relay.name} is taken for dead`, isReaped);
    await pauseMs(this.#random.between(0, 1_500));
    relay.resume();
    await relay.waitFor("InstanceLost", ({ instance }) => instance === joined);
  }

  /**
   * Any moment; or one at which this process has a transaction open; or one at which its commit is on the way and will
   * arrive when the process is gone. Returns the ports of its connections. Waits for a while, not at any price.
   */
  async #pickMoment(relay: RelayProcess): Promise<Set<number>> {
    const stand = this.#stand;
    const random = this.#random;
    let ports = localPortsOf(relay.pid);
    const moment = random.pick(["any", "open", "committing", "committing"]);
    if (moment === "committing") await stand.holdCommit(ports, random.between(100, COMMIT_HOLD_MS_MAX));
    if (moment !== "open") return ports;
    const isOpen = () => {
      ports = localPortsOf(relay.pid);
      return stand.watch.openOver(ports).length > 0;
    };
    await until("a transaction is open", isOpen, OPEN_WAIT_MS).catch(() => {});
    return ports;
  }

  #countOpen(what: string, ports: ReadonlySet<number>): void {
    const open = this.#stand.watch.openOver(ports);
    this.cutOpen += open.length;
    if (open.length > 0) this.hits += 1;
    this.#log(`${what}${open.length > 0 ? `, ${open.length} transactions open` : ""}`);
  }
}
