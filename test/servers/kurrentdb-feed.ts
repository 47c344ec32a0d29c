import type { ReadReq } from "@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/streams_pb.js";
import type { KurrentDbLog } from "./kurrentdb-log.ts";
import { countUpTo, linkFrame, type Recorded } from "./kurrentdb-record.ts";
import { streamName } from "./kurrentdb-wire.ts";

export type ReadOptions = ReadReq.Options;

/** What one request reads: everything, a stream, or the links of a category. Indexes count from 0. */
export interface Feed {
  readonly name: string;
  state(): "there" | "missing" | "deleted";
  length(): number;
  /** Null when this reader is not shown it. */
  frame(index: number): Buffer | null;
  /** A read begins at the place that was asked for, a subscription behind it. */
  readFrom(backwards: boolean): number;
  subscribeFrom(): number;
}

export function feedOf(log: KurrentDbLog, options: ReadOptions): Feed {
  if (options.hasAll()) return allFeed(log, options);
  const name = streamName(options.getStream()?.getStreamIdentifier());
  return name.startsWith("$ce-") ? categoryFeed(log, name, options) : streamFeed(log, name, options);
}

function allFeed(log: KurrentDbLog, options: ReadOptions): Feed {
  const all = options.getAll();
  const isWanted = filterOf(options);
  const length = () => log.events.length;
  const end = all?.hasEnd() ? length() : null;
  const count = all?.hasPosition() ? countUpTo(BigInt(all.getPosition()?.getCommitPosition() ?? "0")) : 0;
  return {
    name: "$all",
    state: () => "there",
    length,
    frame: (index) => {
      const record = log.events[index];
      return record !== undefined && isWanted(record) ? record.frame() : null;
    },
    readFrom: (backwards) => (end === null ? Math.max(count - 1, 0) : backwards ? end - 1 : end),
    subscribeFrom: () => end ?? count,
  };
}

function streamFeed(log: KurrentDbLog, name: string, options: ReadOptions): Feed {
  const length = () => log.stream(name)?.events.length ?? 0;
  return {
    name,
    state: () => {
      if (log.stream(name)?.tombstoned) return "deleted";
      return log.firstVisible(name) >= length() ? "missing" : "there";
    },
    length,
    frame: (index) => {
      const record = log.stream(name)?.events[index];
      return record !== undefined && log.isVisible(record) ? record.frame() : null;
    },
    ...placesOf(options, length),
  };
}

function categoryFeed(log: KurrentDbLog, name: string, options: ReadOptions): Feed {
  const category = name.slice("$ce-".length);
  const links = () => log.categories.get(category) ?? [];
  const length = () => links().length;
  return {
    name,
    state: () => (length() === 0 ? "missing" : "there"),
    length,
    frame: (index) => {
      const target = links()[index];
      if (target === undefined) return null;
      if (!options.getResolveLinks()) return linkFrame(category, index, target, "link");
      return linkFrame(category, index, target, log.isVisible(target) ? "target" : "gone");
    },
    ...placesOf(options, length),
  };
}

function placesOf(options: ReadOptions, length: () => number): Pick<Feed, "readFrom" | "subscribeFrom"> {
  const stream = options.getStream();
  const end = stream?.hasEnd() ? length() : null;
  const revision = stream?.hasRevision() ? Number(stream.getRevision()) : null;
  return {
    readFrom: (backwards) => {
      if (end !== null) return backwards ? end - 1 : end;
      const from = revision ?? 0;
      return backwards ? Math.min(from, length() - 1) : from;
    },
    subscribeFrom: () => end ?? (revision === null ? 0 : revision + 1),
  };
}

function filterOf(options: ReadOptions): (record: Recorded) => boolean {
  const filter = options.getFilter();
  if (filter === undefined) return () => true;
  const [byStream, byType] = [filter.getStreamIdentifier(), filter.getEventType()];
  const expression = byStream ?? byType;
  const prefixes = expression?.getPrefixList() ?? [];
  const pattern = expression?.getRegex() ? new RegExp(expression.getRegex()) : null;
  return (record) => {
    const text = byStream === undefined ? record.type : record.stream;
    return pattern === null ? prefixes.some((prefix) => text.startsWith(prefix)) : pattern.test(text);
  };
}
