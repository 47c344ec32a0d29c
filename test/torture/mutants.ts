import type { Database } from "../../src/postgres/pool.ts";
import { glance } from "../../src/postgres/transaction.ts";
import type { LogPosition, LogRow } from "../../src/sources/postgres/log/log-kind.ts";
import type { Difference } from "../../src/sources/postgres/tail/difference.ts";
import type { ReadableLog } from "./readers.ts";
import { differenceLog } from "./scene.ts";

/** Ways to read a table that look right and are not, with what the torture must find wrong with each. */
export const MUTANTS: Readonly<
  Record<
    string,
    { readonly finds: RegExp; readonly logOf: (database: Database, laneCount: number) => ReadableLog<unknown> }
  >
> = {
  "reads what has a higher id than the last": {
    finds: /was lost/,
    logOf: (database, laneCount) => keysetLog(database, laneCount, "id", "true"),
  },
  "reads below the oldest running transaction, in the order of transactions": {
    finds: /came after/,
    logOf: (database, laneCount) =>
      keysetLog(
        database,
        laneCount,
        "xid::text::bigint * 1000 + row_number() over (partition by xid order by id)",
        "xid < pg_snapshot_xmin(pg_current_snapshot())",
      ),
  },
  "forgets the transactions that its snapshot saw running": { finds: /was lost/, logOf: forgetful },
  "does not write down what was settled ahead": {
    finds: /delivered twice/,
    logOf: (database, laneCount) => {
      const log = differenceLog(database, laneCount);
      return { ...bound(log), encode: (place) => log.encode(withoutDebts(place), []) };
    },
  },
};

function forgetful(database: Database, laneCount: number): ReadableLog<unknown> {
  const log = differenceLog(database, laneCount);
  return {
    ...bound(log),
    open: (request) => {
      const heads = [...(request.heads as ReadonlyMap<number, LogPosition<Difference>>)].map(
        ([lane, { segment, mark }]) => {
          const end = segment.from.split(":")[1];
          return [lane, { mark, segment: { ...segment, from: `${end}:${end}:` } }] as const;
        },
      );
      return log.open({ ...request, heads: new Map(heads) });
    },
  };
}

function bound(log: ReadableLog<unknown>): ReadableLog<unknown> {
  return {
    start: () => log.start(),
    orderOf: (row) => log.orderOf(row),
    encode: (place, ahead) => log.encode(place, ahead),
    decode: (text) => log.decode(text),
    open: (request) => log.open(request),
  };
}

function withoutDebts(place: LogPosition<unknown>): LogPosition<unknown> {
  const { from, to } = place.segment as Difference;
  return { segment: { from, to }, mark: place.mark };
}

/** Rows by a number that is taken for their order, from the last one on. */
function keysetLog(database: Database, laneCount: number, mark: string, condition: string): ReadableLog<unknown> {
  const lane = `mod(hashtextextended(event_key collate "C", 0) & 9223372036854775807, ${laneCount})`;
  const page = async (after: number, rows: number): Promise<LogRow<unknown>[]> => {
    const found = await glance(
      database.pool,
      database.errorContext("reading"),
      5_000,
      `select * from (select ${mark} as mark, event_key, payload, ${lane} as lane from torture_events where ${condition}) e
       where mark > ${after} order by mark limit ${rows}`,
    );
    return found.map((row) => {
      const content = { type: "t", headers: {}, correlationId: null, createdAt: null, failures: 0, fault: null };
      const event = { id: "", lane: Number(row[3]), key: row[1] ?? "", payload: Buffer.from(row[2] ?? ""), ...content };
      return { segment: null, mark: Number(row[0]), event };
    });
  };
  return {
    start: async () => "0 ",
    orderOf: ({ mark: position }) => BigInt(position),
    encode: ({ mark: after }, ahead) => `${after} ${ahead.map((row) => row.mark).join()}`,
    decode: async (text) => {
      const [after, list = ""] = text.split(" ");
      const ahead = list === "" ? [] : list.split(",").map((it) => ({ segment: null, mark: Number(it) }));
      return { place: { segment: null, mark: Number(after) }, ahead };
    },
    open: async ({ heads }) => {
      const places = new Map(heads);
      return {
        next: async (rows) => {
          const after = Math.min(...[...places.values()].map((place) => place.mark));
          const read = await page(after, rows);
          const shown = read.filter((row) => row.mark > (places.get(row.event.lane)?.mark ?? Number.POSITIVE_INFINITY));
          const end = read.at(-1)?.mark ?? after;
          for (const [number, place] of places) places.set(number, { segment: null, mark: Math.max(place.mark, end) });
          return { rows: shown, heads: new Map(places), isEnd: read.length < rows };
        },
        leave: (number) => void places.delete(number),
        end: async () => {},
      };
    },
  };
}
