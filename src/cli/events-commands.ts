import { type Command, Option } from "commander";
import { EVENT_STATES, type EventFilter, type EventState } from "../operations/event-filter.ts";
import type { ListedEvent } from "../operations/event-list.ts";
import { eventText } from "./event-text.ts";
import { type End, EXIT, Exit } from "./exit.ts";
import { eventFilterOf, FILTER_HELP } from "./filter-argument.ts";
import { plainLine } from "./plain-text.ts";
import { textTable } from "./text-table.ts";

interface FilterFlags {
  readonly source?: string;
  readonly type?: string;
  readonly key?: string;
  readonly correlation?: string;
  readonly id?: string;
  readonly state?: EventState;
  readonly since?: string;
  readonly until?: string;
}

interface ListFlags extends FilterFlags {
  readonly limit: string;
  readonly cursor?: string;
  readonly output: "text" | "json";
}

export const outputOption = () => new Option("-o, --output <form>").choices(["text", "json"]).default("text");

/** `outbox-relay events list|show|tail`: what is in the outbox tables, and what the relay knows of it. Reads only. */
export function addEventsCommands(program: Command, end: End): void {
  const events = program.command("events").description("look at events in the outbox tables");
  withFilter(events.command("list").description("the newest first"))
    .argument("[filter...]", FILTER_HELP)
    .option("--limit <number>", "events on a page, at most 500", "50")
    .option("--cursor <text>", "go on behind a page, as that page said")
    .addOption(outputOption())
    .action(async (words: string[], flags: ListFlags) => end(await list(words, flags)));
  events
    .command("show")
    .description("one event: its row, headers, payload, state, its attempts with their times, and what waits behind it")
    .argument("<id>")
    .option("--source <schema.table>", "where several sources have this id")
    .option("--raw", "the payload's bytes and nothing else")
    .addOption(outputOption())
    .action(async (id: string, flags: { source?: string; raw?: boolean; output: "text" | "json" }) =>
      end(await show(id, flags)),
    );
  withFilter(events.command("tail").description("follow new events and what becomes of them, until Ctrl-C"))
    .argument("[filter...]", FILTER_HELP)
    .addOption(outputOption())
    .action(async (words: string[], flags: FilterFlags & { output: "text" | "json" }) => end(await tail(words, flags)));
}

function withFilter(command: Command): Command {
  return command
    .option("--source <schema.table>", "of this table alone")
    .option("--type <pattern>", "of this type; * stands for anything")
    .option("--key <key>", "of this key")
    .option("--correlation <id>", "with this correlation id")
    .option("--id <id>", "with this id")
    .addOption(new Option("--state <state>", "in this state").choices([...EVENT_STATES]))
    .option("--since <time>", "created at this time or later: 2026-01-31T12:00Z, or 15m, 2h, 1d ago")
    .option("--until <time>", "created before this time");
}

function filterOf({ source, type, key, correlation, id, state, since, until }: FilterFlags): EventFilter {
  const times = { since: timeOf("--since", since), until: timeOf("--until", until) };
  return { source, type, key, correlationId: correlation, ids: id === undefined ? undefined : [id], state, ...times };
}

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

function timeOf(flag: string, text: string | undefined, nowMs = Date.now()): Date | undefined {
  if (text === undefined) return undefined;
  const ago = /^(\d{1,9})([smhd])$/.exec(text);
  const time = new Date(ago === null ? text : nowMs - Number(ago[1]) * UNITS_MS[ago[2] as keyof typeof UNITS_MS]);
  if (!Number.isNaN(time.getTime())) return time;
  throw new Exit(EXIT.usage, [`${flag} is ${JSON.stringify(text)}: write 2026-01-31T12:00Z, or 15m, 2h, 1d for ago`]);
}

export function limitOf(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= 500) return limit;
  throw new Exit(EXIT.usage, [`--limit is ${JSON.stringify(text)}: write a number from 1 to 500`]);
}

async function list(words: readonly string[], flags: ListFlags): Promise<number> {
  const filter = await eventFilterOf(words, filterOf(flags));
  const limit = limitOf(flags.limit);
  const { withTarget } = await import("./operation-target.ts");
  const { listEvents } = await import("../operations/event-list.ts");
  return await withTarget(async (target) => {
    const page = await listEvents(target, filter, { limit, cursor: flags.cursor });
    for (const { source, reason } of page.broken) process.stderr.write(`${source} cannot be read: ${reason}\n`);
    for (const { source, upTo } of page.covered.filter(({ isComplete }) => !isComplete)) {
      process.stderr.write(`${source} was searched back to ${upTo ?? "?"}\n`);
    }
    if (flags.output === "json") printJson({ events: page.events, cursor: page.cursor, covered: page.covered });
    else {
      process.stdout.write(page.events.length === 0 ? "" : textTable(HEAD, page.events.map(cells)));
      if (page.events.length === 0) process.stderr.write("no such event\n");
      if (page.cursor !== null) process.stderr.write(`more: add --cursor ${page.cursor}\n`);
    }
    return page.broken.length > 0 ? EXIT.partly : EXIT.ok;
  });
}

const HEAD = ["CREATED", "STATE", "TYPE", "KEY", "ID", "SOURCE", "REASON"];
const REASON_MAX = 80;

function cells(event: ListedEvent): string[] {
  const { createdAt, id, key, parkedBehind, reason, source, state, type } = event;
  const why = reason ?? (parkedBehind === null ? "" : `behind ${parkedBehind}`);
  return [createdAt ?? "-", state, type, key ?? "-", id, source, oneLine(why)];
}

export function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= REASON_MAX ? line : `${line.slice(0, REASON_MAX - 1)}…`;
}

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}

async function show(id: string, flags: { source?: string; raw?: boolean; output: "text" | "json" }): Promise<number> {
  const { withTarget } = await import("./operation-target.ts");
  const { eventPayload, showEvent } = await import("../operations/event-show.ts");
  return await withTarget(async (target) => {
    const found = await showEvent(target, id, { source: flags.source });
    const event = requireOne(id, found);
    if (flags.raw) for await (const piece of eventPayload(target, id, event.source)) process.stdout.write(piece);
    else if (flags.output === "json") printJson(event);
    else process.stdout.write(eventText(event));
    return EXIT.ok;
  });
}

/** An id of several sources is a question, not an answer. */
function requireOne<Item extends { readonly source: string }>(id: string, found: readonly Item[]): Item {
  const [first] = found;
  if (first === undefined)
    throw new Exit(EXIT.notFound, [`There is no event ${id} in the tables that the relay reads.`]);
  const sources = [...new Set(found.map(({ source }) => source))];
  if (sources.length === 1) return first;
  throw new Exit(EXIT.usage, [`${id} is in ${sources.join(" and in ")}: add --source`]);
}

async function tail(words: readonly string[], flags: FilterFlags & { output: "text" | "json" }): Promise<number> {
  const filter = await eventFilterOf(words, filterOf(flags));
  const { withTarget } = await import("./operation-target.ts");
  const { tailEvents } = await import("../operations/event-tail.ts");
  const { systemClock } = await import("../core/clock.ts");
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  return await withTarget(async (target) => {
    const missed = () => void process.stderr.write("more events than can be shown; some were left out\n");
    for await (const { event, what } of tailEvents(target, filter, {
      clock: systemClock,
      signal: stop.signal,
      missed,
    })) {
      const { createdAt, id, key, source, state, type } = event;
      const text = plainLine(
        `${createdAt ?? "-"}  ${state.padEnd(9)}  ${type}  ${key ?? "-"}  ${id}  ${source}  ${oneLine(event.reason ?? "")}`,
      );
      process.stdout.write(`${flags.output === "json" ? JSON.stringify({ what, ...event }) : text.trimEnd()}\n`);
    }
    return EXIT.ok;
  });
}
