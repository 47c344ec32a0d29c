import type { BaseOptions, KurrentDBClient } from "@kurrent/kurrentdb-client";
import { RelayError } from "../../core/errors.ts";
import type { LogItem, LogStart, Subscription } from "../../ports/event-log.ts";
import type { KurrentDbModule } from "./kurrentdb-client.ts";
import { isMissingStream } from "./kurrentdb-errors.ts";
import { allPosition, itemOfAll, itemOfLink } from "./kurrentdb-events.ts";
import { mark, type Pages } from "./kurrentdb-subscription.ts";

/** `all`: the whole log, filtered by the server; `category`: the links that its projection `$by_category` makes. */
export type KurrentDbWay = "all" | "category";

/** How to find a position in the log and resume from it. */
interface StreamReader {
  /** Throws LOG_LOST when the position does not exist. The server itself would silently continue behind the gap. */
  checkPosition(client: KurrentDBClient, subscription: Subscription, read: BaseOptions): Promise<void>;
  /** The log's current last position. */
  endOf(client: KurrentDBClient, subscription: Subscription, read: BaseOptions): Promise<string>;
  open(client: KurrentDBClient, subscription: Subscription): Pick<Pages, "source" | "itemOf">;
}

/** The position before the first event. */
const BEGINNING = "beginning";

/** In units of 32 events scanned by the server: how often a filter without matches reports progress. */
const CHECKPOINT_INTERVAL = 16;
const NAME_MAX = 200;
/** Reads `$all`, filtered by stream name. */

export function readsAll({ streamNameFilter, BACKWARDS, END, START }: KurrentDbModule): StreamReader {
  return {
    checkPosition: async (client, { from }, read) => {
      const place = afterOf(from, parseAllPosition);
      if (place === null) return;
      const last = client.readAll({ ...read, direction: BACKWARDS, fromPosition: END, maxCount: 1 });
      for await (const { event } of last) {
        if (event !== undefined && event.position.commit >= place.commit) return;
      }
      throw lost(from, "the log ends before it: was an older copy restored?");
    },
    endOf: async (client, _subscription, read) => {
      const last = client.readAll({ ...read, direction: BACKWARDS, fromPosition: END, maxCount: 1 });
      for await (const { event } of last) if (event !== undefined) return allPosition(event.position);
      return BEGINNING;
    },
    open: (client, { from, pageMax, streamPrefix }) => {
      const fromPosition = from === "now" ? END : (afterOf(from, parseAllPosition) ?? START);
      const filter = streamNameFilter({
        prefixes: [streamPrefix],
        checkpointInterval: CHECKPOINT_INTERVAL,
        checkpointReached: (source, position) => mark(source, { kind: "passed", position: allPosition(position) }),
      });
      const source = client.subscribeToAll({ fromPosition, filter }, { highWaterMark: pageMax });
      source.on("caughtUp", ({ position }) => {
        mark(source, ...passed(position === undefined ? null : allPosition(position)), { kind: "caught up" });
      });
      source.on("fellBehind", () => mark(source, "fell behind"));
      return { source, itemOf: (resolved) => itemOfAll(resolved) };
    },
  };
}

/** Reads the links of a category's projection. */
export function readsCategory({ BACKWARDS, END, START }: KurrentDbModule): StreamReader {
  return {
    checkPosition: async (client, { from, streamPrefix }, read) => {
      const place = afterOf(from, parseLinkPosition);
      if (place === null) return;
      const options = { ...read, fromRevision: place, maxCount: 1 };
      for await (const { event } of client.readStream(categoryStream(streamPrefix), options)) {
        if (event !== undefined && event.revision <= place + 1n) return;
      }
      throw lost(from, "the category has no such link any more");
    },
    endOf: async (client, { streamPrefix }, read) => {
      const options = { ...read, direction: BACKWARDS, fromRevision: END, maxCount: 1 } as const;
      try {
        const last = client.readStream(categoryStream(streamPrefix), options);
        for await (const { event } of last) if (event !== undefined) return String(event.revision);
      } catch (error) {
        if (!isMissingStream(error)) throw error;
      }
      return BEGINNING;
    },
    open: (client, { from, pageMax, streamPrefix }) => {
      const fromRevision = from === "now" ? END : (afterOf(from, parseLinkPosition) ?? START);
      const options = { fromRevision, resolveLinkTos: true } as const;
      const source = client.subscribeToStream(categoryStream(streamPrefix), options, { highWaterMark: pageMax });
      source.on("caughtUp", ({ revision }) => {
        mark(source, ...passed(revision === undefined ? null : String(revision)), { kind: "caught up" });
      });
      source.on("fellBehind", () => mark(source, "fell behind"));
      return { source, itemOf: (resolved) => itemOfLink(resolved, streamPrefix) };
    },
  };
}

/** The server's rule: a category is the part of the stream's name before the first dash. */
function categoryStream(streamPrefix: string): string {
  const dash = streamPrefix.indexOf("-");
  if (dash <= 0) {
    throw new RelayError(
      "CONFIG_INVALID",
      `${JSON.stringify(streamPrefix)} has no dash, so it has no category. Use a stream prefix with a dash, or way: all.`,
    );
  }
  return `$ce-${streamPrefix.slice(0, dash)}`;
}

function passed(position: string | null): LogItem[] {
  return position === null ? [] : [{ kind: "passed", position }];
}

/** Null when the subscription begins at an end of the log. */
function afterOf<Place>(from: LogStart, parse: (text: string) => Place | null): Place | null {
  if (typeof from === "string" || from.after === BEGINNING) return null;
  const place = parse(from.after);
  if (place === null) throw lost(from, "it is not a position for this way of reading");
  return place;
}

function parseAllPosition(text: string): { commit: bigint; prepare: bigint } | null {
  const [, commit, prepare] = /^(\d{1,19})\/(\d{1,19})$/.exec(text) ?? [];
  return commit === undefined || prepare === undefined ? null : { commit: BigInt(commit), prepare: BigInt(prepare) };
}

function parseLinkPosition(text: string): bigint | null {
  return /^\d{1,19}$/.test(text) ? BigInt(text) : null;
}

function lost(from: LogStart, why: string): RelayError {
  const place = typeof from === "string" ? from : from.after.slice(0, NAME_MAX);
  return new RelayError("LOG_LOST", `Cannot resume from position ${JSON.stringify(place)}: ${why}.`);
}
