import { setTimeout as dawdle } from "node:timers/promises";
import { isRelayError } from "../../src/core/errors.ts";
import type { Database } from "../../src/postgres/pool.ts";
import { glance, transaction } from "../../src/postgres/transaction.ts";
import type { LogKind, LogPosition, LogRow } from "../../src/sources/postgres/log/log-kind.ts";
import { SettledAhead } from "../../src/sources/postgres/log/log-lane.ts";
import { Chance } from "./chance.ts";

/** As much of a kind of log as a reader needs. */
export type ReadableLog<Segment> = Pick<LogKind<Segment>, "start" | "encode" | "decode" | "open" | "orderOf">;

export interface Delivered {
  readonly position: number;
  readonly key: string;
  /** The key's own count. */
  readonly n: number;
}

interface WindowRow<Segment> {
  readonly row: LogRow<Segment>;
  isSettled: boolean;
}

interface LaneOf<Segment> {
  head: LogPosition<Segment>;
  /** Settled before, as the checkpoint says, and not met since. */
  settledAhead: SettledAhead<Segment>;
  /** Read and not behind the checkpoint yet. */
  window: WindowRow<Segment>[];
  version: number;
}

/** Ends in a row, some time apart, that make sure of it. */
const LOOKS = 4;

/**
 * One subscriber: reads, settles what it likes in the order of each key, and writes its checkpoints into the database.
 * Delivered is what a written checkpoint says, nothing else: when it is started anew, or the server lost its last
 * commits, that is all it knows.
 */
export class TortureReader<Segment> {
  readonly name: string;
  readonly laneCount: number;
  readonly #log: ReadableLog<Segment>;
  readonly #database: Database;
  readonly #chance: Chance;
  readonly #lanes = new Map<number, LaneOf<Segment>>();
  /** By lane, then by the version of the checkpoint that says so. */
  readonly #delivered = new Map<number, Delivered[][]>();
  restarts = 0;

  constructor(options: {
    readonly name: string;
    readonly laneCount: number;
    readonly log: ReadableLog<Segment>;
    readonly database: Database;
    readonly seed: number;
  }) {
    this.name = options.name;
    this.laneCount = options.laneCount;
    this.#log = options.log;
    this.#database = options.database;
    this.#chance = new Chance(options.seed);
  }

  /** In the order of delivery, lane by lane. */
  delivered(): readonly Delivered[] {
    return [...this.#delivered.values()].flatMap((versions) => versions.flat());
  }

  /** Reads until it is told to stop and, if `toTheEnd`, until nothing is left. */
  async run(isStopped: () => boolean, toTheEnd: () => boolean): Promise<void> {
    let ends = 0;
    for (let isDone = false; !isDone; ) {
      const isLast = isStopped();
      try {
        if (this.#lanes.size === 0) await this.#restart();
        const isAtEnd = await this.#read(isLast);
        ends = isLast && isAtEnd ? ends + 1 : 0;
        // A log that looks for what is final only now and then says meanwhile that nothing more is there.
        isDone = isLast && (ends > LOOKS || !toTheEnd());
        if (ends > 0) await dawdle(50);
        if (!isLast && this.#chance.is(0.1)) this.#lanes.clear();
        if (isAtEnd && !isLast) await dawdle(this.#chance.from(1, 8));
      } catch (error) {
        if (!isRelayError(error) || error.code === "LOG_LOST") throw error;
        this.#lanes.clear();
        isDone = isLast && !toTheEnd();
        await dawdle(20);
      }
    }
  }

  async #restart(): Promise<void> {
    this.restarts += 1;
    const found = await this.#checkpoints();
    for (let lane = 0; lane < this.laneCount; lane++) {
      let written = found.get(lane);
      if (written === undefined) {
        written = { text: await this.#log.start(), version: 0 };
        await this.#write([{ lane, ...written }]);
      }
      const versions = this.#delivered.get(lane) ?? [];
      // What was never written down, or was forgotten by the server, was never delivered.
      this.#delivered.set(lane, versions.slice(0, written.version));
      const checkpoint = await this.#log.decode(written.text);
      const settledAhead = new SettledAhead(this.#log, checkpoint.ahead);
      this.#lanes.set(lane, { head: checkpoint.place, settledAhead, window: [], version: written.version });
    }
  }

  /** One pass, or a part of one. Returns whether it came to the end and everything is settled. */
  async #read(isLast: boolean): Promise<boolean> {
    const heads = new Map([...this.#lanes].map(([lane, { head }]) => [lane, head]));
    const pass = await this.#log.open({ heads, laneCount: this.laneCount });
    let isEnd = false;
    try {
      for (let pages = isLast ? 1_000_000 : this.#chance.from(1, 8); pages > 0 && !isEnd; pages--) {
        if (!isLast && this.#chance.is(0.05)) pass.leave(this.#chance.from(0, this.laneCount - 1));
        const page = await pass.next(this.#chance.one([1, 3, 20, 100, 500]), 1_000_000);
        for (const row of page.rows) this.#keep(row);
        for (const [lane, head] of page.heads) this.#lanes.get(lane)!.head = head;
        isEnd = page.isEnd;
        await this.#settle(isLast || this.#chance.is(0.6));
      }
    } finally {
      await pass.end();
    }
    return isEnd;
  }

  #keep(row: LogRow<Segment>): void {
    const lane = this.#lanes.get(row.event.lane);
    if (lane === undefined) throw new Error(`a row of lane ${row.event.lane} was shown to ${this.name}`);
    lane.window.push({ row, isSettled: lane.settledAhead.meet(row) });
  }

  async #settle(all: boolean): Promise<void> {
    const written: { lane: number; text: string; version: number }[] = [];
    const settled = new Map<number, Delivered[]>();
    for (const [number, lane] of this.#lanes) {
      settled.set(number, this.#choose(lane, all));
      const first = lane.window.findIndex(({ isSettled }) => !isSettled);
      const left = first === -1 ? [] : lane.window.slice(first);
      const low = left[0] === undefined ? lane.head : { segment: left[0].row.segment, mark: left[0].row.mark - 1 };
      const ahead = left.filter(({ isSettled }) => isSettled).map(({ row }) => row);
      lane.window = left;
      lane.version += 1;
      written.push({
        lane: number,
        text: this.#log.encode(low, [...lane.settledAhead.rest(), ...ahead]),
        version: lane.version,
      });
    }
    // Known before it is written: a commit whose answer is lost counts if the database has it.
    for (const [lane, rows] of settled) this.#delivered.get(lane)!.push(rows);
    await this.#write(written);
  }

  #choose(lane: LaneOf<Segment>, all: boolean): Delivered[] {
    const chosen: Delivered[] = [];
    const closed = new Set<string>();
    for (const it of lane.window) {
      const { event, mark } = it.row;
      const key = event.key ?? "";
      if (it.isSettled) continue;
      if (closed.has(key) || (!all && this.#chance.is(0.3))) {
        closed.add(key);
        continue;
      }
      it.isSettled = true;
      chosen.push({ position: mark, key, n: Number(event.payload.toString()) });
    }
    return chosen;
  }

  async #checkpoints(): Promise<ReadonlyMap<number, { readonly text: string; readonly version: number }>> {
    const rows = await glance(
      this.#database.pool,
      this.#database.errorContext("reading checkpoints"),
      5_000,
      `select lane, position, version from torture_checkpoints where reader = '${this.name}'`,
    );
    return new Map(rows.map((row) => [Number(row[0]), { text: row[1] ?? "", version: Number(row[2]) }]));
  }

  async #write(lanes: readonly { lane: number; text: string; version: number }[]): Promise<void> {
    const settings = { context: this.#database.errorContext("writing checkpoints"), statementTimeoutMs: 5_000 };
    await transaction(this.#database.pool, settings, async (session) => {
      for (const { lane, text, version } of lanes) {
        await session.rows(
          `insert into torture_checkpoints values ($1, $2, $3, $4)
           on conflict (reader, lane) do update set position = $3, version = $4`,
          [this.name, lane, text, version],
        );
      }
    });
  }
}
