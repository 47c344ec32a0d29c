import { type Command, Option } from "commander";
import { EVENT_STATES, type EventFilter, type EventState } from "../../operations/events/event-filter.ts";
import type { EventPage, ListedEvent } from "../../operations/events/event-list.ts";
import { EXPORT_FORMS, type ExportForm } from "../../operations/exports/export-text.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { printErrors } from "../terminal/error-output.ts";
import { type Form, printJson, textTable } from "../terminal/output.ts";
import { plainLine } from "../terminal/plain-text.ts";
import { eventText, waitText } from "./event-text.ts";
import { eventFilterOf, FILTER_HELP } from "./filter-argument.ts";

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
  readonly output: Form;
}

/** `outbox-relay events list|export|show|tail`: reads the outbox tables and what the relay knows of their events. */
export function addEventsCommands(program: Command, end: End): void {
  const events = program.command("events").description("inspect events in the outbox tables");
  withFilter(events.command("list").alias("search").description("list events, newest first"))
    .argument("[filter...]", FILTER_HELP)
    .option("--limit <number>", "page size, at most 500", "50")
    .option("--cursor <text>", "continue after a page, with the cursor that it printed")
    .action(async (words: string[], flags: ListFlags) => end(await list(words, flags)));
  withFilter(events.command("export").description("write all matching events to standard output"))
    .argument("[filter...]", FILTER_HELP)
    .addOption(new Option("--format <form>", "default: csv, or json with -o json").choices([...EXPORT_FORMS]))
    .action(async (words: string[], flags: ExportFlags) => end(await exported(words, flags)));
  events
    .command("show")
    .description("show one event: row, headers, payload, state, attempts with their times, and the events behind it")
    .argument("<id>")
    .option("--source <schema.table>", "required if several sources have this id")
    .option("--raw", "print only the payload's bytes")
    .action(async (id: string, flags: { source?: string; raw?: boolean; output: Form }) => end(await show(id, flags)));
  withFilter(events.command("tail").description("follow new events and their outcomes until Ctrl-C"))
    .argument("[filter...]", FILTER_HELP)
    .action(async (words: string[], flags: FilterFlags & { output: Form }) => end(await tail(words, flags)));
}

interface ExportFlags extends FilterFlags {
  readonly format?: ExportForm;
  readonly output: Form;
}

function withFilter(command: Command): Command {
  return command
    .option("--source <schema.table>", "only this table")
    .option("--type <pattern>", "only this type; * matches anything")
    .option("--key <key>", "only this key")
    .option("--correlation <id>", "only this correlation id")
    .option("--id <id>", "only this id")
    .addOption(new Option("--state <state>", "only this state").choices([...EVENT_STATES]))
    .option("--since <time>", "created at or after this time: 2026-01-31T12:00Z, or 15m, 2h, 1d ago")
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

/** The page size that an option asks for. */
export function limitOf(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= 500) return limit;
  throw new Exit(EXIT.usage, [`--limit is ${JSON.stringify(text)}: write a number from 1 to 500`]);
}

async function list(words: readonly string[], flags: ListFlags): Promise<number> {
  const filter = await eventFilterOf(words, filterOf(flags));
  const limit = limitOf(flags.limit);
  const { withTarget } = await import("../operation-target.ts");
  const { alsoInPayloads, listEvents } = await import("../../operations/events/event-list.ts");
  return await withTarget(async (target) => {
    const page = await listEvents(target, filter, { limit, cursor: flags.cursor });
    const also = alsoInPayloads(filter, page);
    const { broken, covered, cursor, events } = page;
    if (flags.output === "json") printJson({ events, cursor, covered, broken, also });
    else {
      printErrors(broken.map(({ reason, source }) => `${source} cannot be read: ${reason}`));
      for (const it of covered.filter(({ isComplete }) => !isComplete)) process.stderr.write(`${coverText(it)}\n`);
      process.stdout.write(page.events.length === 0 ? "" : textTable(HEAD, page.events.map(cells)));
      if (page.events.length === 0) process.stderr.write("no events match\n");
      if (page.cursor !== null) process.stderr.write(`next page: --cursor ${page.cursor}\n`);
      if (also !== null) process.stderr.write(`to search payloads too: outbox-relay events list '${quoted(also)}'\n`);
    }
    return page.broken.length > 0 ? EXIT.partly : EXIT.ok;
  });
}

/** Escapes a text for single quotes of a shell. */
function quoted(text: string): string {
  return text.replaceAll("'", "'\\''");
}

/** `shop.outbox: searched the newest 50000 of about 300000 events, back to 2026-01-31T12:00:00.000Z`. */
function coverText({ looked, source, total, upTo }: EventPage["covered"][number]): string {
  const back = upTo === null ? "" : `back to ${upTo}`;
  if (looked === null) return `${source}: searched ${back || "but not to the end"}`;
  const share = total === null ? "" : ` of about ${total}`;
  return `${source}: searched the newest ${looked}${share} events${back && `, ${back}`}`;
}

/** Streams, so that the reader of the output sets the pace. */
async function exported(words: readonly string[], flags: ExportFlags): Promise<number> {
  const filter = await eventFilterOf(words, filterOf(flags));
  const format = flags.format ?? (flags.output === "json" ? "json" : "csv");
  if (format === "csv" && flags.output === "json")
    throw new Exit(EXIT.usage, ["--format csv contradicts -o json: use one of them"]);
  const { withTarget } = await import("../operation-target.ts");
  const { exportedEvents } = await import("../../operations/exports/export-rows.ts");
  const { EVENT_COLUMNS, exportText } = await import("../../operations/exports/export-text.ts");
  const { pipeline } = await import("node:stream/promises");
  return await withTarget(async (target) => {
    await pipeline(exportText(exportedEvents(target, filter), EVENT_COLUMNS, format), process.stdout, {
      end: false,
    });
    return EXIT.ok;
  });
}

const HEAD = ["CREATED", "STATE", "TYPE", "KEY", "ID", "SOURCE", "REASON"];
const REASON_MAX = 160;

function cells(event: ListedEvent): string[] {
  const { createdAt, id, key, parkedBehind, reason, source, state, type } = event;
  const why = reason ?? (parkedBehind === null ? waitText(event) : `behind ${parkedBehind}`);
  return [createdAt ?? "-", state, type, key ?? "-", id, source, oneLine(why)];
}

/** One bounded line for a table cell. */
export function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= REASON_MAX ? line : `${line.slice(0, REASON_MAX - 1)}…`;
}

async function show(id: string, flags: { source?: string; raw?: boolean; output: Form }): Promise<number> {
  const { withTarget } = await import("../operation-target.ts");
  const { eventPayload, showEvent } = await import("../../operations/events/event-show.ts");
  return await withTarget(async (target) => {
    const found = await showEvent(target, id, { source: flags.source });
    const event = requireOne(id, found);
    if (flags.raw && flags.output === "json")
      throw new Exit(EXIT.usage, ["--raw prints bytes, not JSON: use either --raw or -o json"]);
    if (flags.raw) for await (const piece of eventPayload(target, id, event.source)) process.stdout.write(piece);
    else if (flags.output === "json") printJson(event);
    else process.stdout.write(eventText(event));
    return EXIT.ok;
  });
}

/** Requires `--source` when several sources have the id. */
function requireOne<Item extends { readonly source: string }>(id: string, found: readonly Item[]): Item {
  const [first] = found;
  if (first === undefined) throw new Exit(EXIT.notFound, [`no event with id ${id} in the tables that the relay reads`]);
  const sources = [...new Set(found.map(({ source }) => source))];
  if (sources.length === 1) return first;
  throw new Exit(EXIT.usage, [`${id} is in ${sources.join(" and in ")}: add --source`]);
}

async function tail(words: readonly string[], flags: FilterFlags & { output: Form }): Promise<number> {
  const filter = await eventFilterOf(words, filterOf(flags));
  const { withTarget } = await import("../operation-target.ts");
  const { tailEvents } = await import("../../operations/events/event-tail.ts");
  const { systemClock } = await import("../../core/clock.ts");
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  return await withTarget(async (target) => {
    const missed = () => {
      if (flags.output === "json") process.stdout.write(`${JSON.stringify({ what: "left out" })}\n`);
      else process.stderr.write("too many events to show; some were skipped\n");
    };
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
