import { cpSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/core/clock.ts";
import type { SeededRandom } from "../../../src/testing/simulator/seeded-random.ts";
import { until } from "../../servers/until.ts";
import type { Crew } from "./crew.ts";
import { CHECKPOINT, LEASE_MS, LOCK_MS, type Scene } from "./scene.ts";

/** How often each blow falls. */
const WEIGHTS = {
  relayKill: 22,
  relayPause: 9,
  relayStop: 4,
  workerKill: 22,
  workerPause: 9,
  workerStop: 4,
  redisKill: 14,
  redisPause: 4,
  redisForget: 0,
  storeKill: 8,
  storeDrop: 5,
  cut: 7,
};

/** Redis loses acknowledged writes too: what it forgot is dispatched again, and counts once in what it remembers. */
export const FAILOVER_WEIGHTS: typeof WEIGHTS = { ...WEIGHTS, redisForget: 6 };

export type Blow = keyof typeof WEIGHTS;

/** So long a blow waits for a moment at which somebody is in mid-work. */
const MOMENT_MS = 400;
const DOWN_MS_MAX = 1_500;
const FORGOTTEN_MS_MAX = 2_500;
/** Beyond the patience of the relay's requests. */
const FROZEN_MS_MAX = 6_000;

const { sleep } = systemClock;

/** Deals blows one after the other; whoever was killed or frozen comes back while the next ones fall. */
export class Striker {
  readonly blows = Object.fromEntries(Object.keys(WEIGHTS).map((blow) => [blow, 0])) as Record<Blow, number>;
  readonly #scene: Scene;
  readonly #random: SeededRandom;
  readonly #log: (line: string) => void;
  readonly #weights: typeof WEIGHTS;
  readonly #returning = new Set<Promise<void>>();

  constructor(scene: Scene, random: SeededRandom, log: (line: string) => void, weights: typeof WEIGHTS = WEIGHTS) {
    this.#scene = scene;
    this.#weights = weights;
    this.#random = random;
    this.#log = log;
  }

  async strike(blow: Blow = this.#draw()): Promise<void> {
    const { redis, relays, store, wire, workers } = this.#scene;
    if (blow === "relayKill") await this.#kill(relays);
    else if (blow === "workerKill") await this.#kill(workers);
    else if (blow === "relayPause") await this.#pause(relays, LEASE_MS);
    else if (blow === "workerPause") await this.#pause(workers, LOCK_MS);
    else if (blow === "relayStop") await this.#stop(relays);
    else if (blow === "workerStop") await this.#stop(workers);
    else if (blow === "redisForget") await this.#forget();
    else if (blow === "redisKill") await this.#restart("Redis", redis);
    else if (blow === "storeKill") await this.#restart("the event store", store);
    else if (blow === "redisPause") await this.#freezeRedis();
    else if (blow === "storeDrop") await this.#drop();
    else {
      this.#log("cut the relays off Redis");
      wire.cut();
    }
    this.blows[blow] += 1;
  }

  /** Returns when everybody is back. */
  async settle(): Promise<void> {
    await Promise.all(this.#returning);
  }

  #draw(): Blow {
    const tickets = (Object.entries(this.#weights) as [Blow, number][]).flatMap(([blow, weight]) =>
      Array(weight).fill(blow),
    );
    return this.#random.pick(tickets);
  }

  async #kill(crew: Crew): Promise<void> {
    const member = crew.pick(this.#random);
    if (member === null) return;
    await this.#moment();
    this.#log(`kill ${crew.nameOf(member)}`);
    await crew.kill(member);
    const downMs = this.#random.between(0, DOWN_MS_MAX);
    this.#later(async () => {
      await sleep(downMs);
      await crew.add();
    });
  }

  /** In good order, while the others go on. */
  async #stop(crew: Crew): Promise<void> {
    const member = crew.pick(this.#random);
    if (member === null) return;
    this.#log(`stop ${crew.nameOf(member)} in good order`);
    this.#later(async () => {
      await crew.stop(member);
      await crew.add();
    });
  }

  /** Resumed when its lease or its locks are somebody else's, or nobody's. */
  async #pause(crew: Crew, beyondMs: number): Promise<void> {
    const member = crew.pick(this.#random);
    if (member === null) return;
    await this.#moment();
    const ms = beyondMs + this.#random.between(-500, 2_000);
    this.#log(`freeze ${crew.nameOf(member)} for ${ms.toFixed(0)} ms`);
    crew.pause(member);
    this.#later(async () => {
      await sleep(ms);
      crew.resume(member);
    });
  }

  async #restart(name: string, server: { kill(): Promise<void>; restart(): Promise<void> }): Promise<void> {
    const downMs = this.#random.pick([0, this.#random.between(0, DOWN_MS_MAX)]);
    this.#log(`kill ${name} for ${downMs.toFixed(0)} ms`);
    await server.kill();
    await sleep(downMs);
    await server.restart();
  }

  /** A failover to a replica that had not heard of the last writes. */
  async #forget(): Promise<void> {
    const { admin, redis } = this.#scene;
    // One that had heard of nothing at all is another story: relays halt there.
    await until("there is a checkpoint", () => admin.get(CHECKPOINT));
    const [folder, copy] = [join(redis.folder, "appendonlydir"), join(redis.folder, "replica")];
    cpSync(folder, copy, { recursive: true });
    const ms = this.#random.between(100, FORGOTTEN_MS_MAX);
    await sleep(ms);
    this.#log(`Redis forgets its last ${ms.toFixed(0)} ms`);
    await redis.kill();
    rmSync(folder, { recursive: true });
    renameSync(copy, folder);
    await redis.restart();
  }

  async #freezeRedis(): Promise<void> {
    const ms = this.#random.between(300, FROZEN_MS_MAX);
    this.#log(`freeze Redis for ${ms.toFixed(0)} ms`);
    await this.#scene.redis.pause();
    await sleep(ms);
    this.#scene.redis.resume();
  }

  async #drop(): Promise<void> {
    const how = this.#random.pick(["error", "end"] as const);
    this.#log(`drop all subscriptions, by ${how === "end" ? "their end" : "an error"}`);
    await this.#scene.store.dropSubscriptions(how);
  }

  /** Often one at which the bank is being asked. */
  async #moment(): Promise<void> {
    const { bank } = this.#scene;
    if (this.#random.chance(0.4)) return;
    await until("somebody is in mid-work", () => bank.open > 0, MOMENT_MS).catch(() => {});
  }

  #later(work: () => Promise<void>): void {
    const returning = work();
    this.#returning.add(returning);
    const done = () => this.#returning.delete(returning);
    returning.then(done, () => {});
  }
}
