import { styleText } from "node:util";
import { plural } from "../../core/plural.ts";
import type { TopPipeline, TopSnapshot } from "../../operations/overview/top-meter.ts";
import { ageText } from "../terminal/output.ts";
import type { Paint } from "../terminal/plain-text.ts";
import type { AnswerTimes, SeenDestination } from "./answer-times.ts";

/** The size of the terminal. */
export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

interface TopScreen {
  readonly snapshot: TopSnapshot;
  readonly answers: AnswerTimes;
  /** Delivery rates of all pipelines together, oldest first. */
  readonly rates: readonly number[];
  /** Why the figures are old; null when they are current. */
  readonly problem: string | null;
  readonly size: ScreenSize;
  readonly isColoured: boolean;
}

type Unrouted = TopSnapshot["unrouted"][number];

interface Column {
  readonly title: string;
  readonly text: (pipeline: TopPipeline) => string;
  readonly paint?: (pipeline: TopPipeline) => Paint | null;
  /** For events that no route matches; absent: nothing to show. */
  readonly unrouted?: (unrouted: Unrouted) => string;
}

/** A row of the table: a pipeline, or the unrouted events of a source. */
interface TopRow {
  readonly name: string;
  readonly text: (column: Column) => string;
  readonly paint: (column: Column) => Paint | null;
}

/** In display order. A narrow terminal omits columns in DROP_ORDER. */
const COLUMNS: readonly Column[] = [
  {
    title: "STATE",
    text: ({ state }) => state,
    paint: ({ state }) => STATE_PAINTS[state],
    unrouted: () => "unrouted",
  },
  { title: "OUT/S", text: ({ publishedPerSecond }) => rateText(publishedPerSecond) },
  {
    title: "PENDING",
    text: (it) => countText(it.pending, it.isEstimate),
    unrouted: (it) => countText(it.events, it.isEstimate),
  },
  {
    title: "OLDEST",
    text: ({ oldestAgeMs }) => oldestText(oldestAgeMs),
    unrouted: ({ oldestAgeMs }) => oldestText(oldestAgeMs),
  },
  {
    title: "RETRYING",
    text: ({ retrying }) => numberText(retrying),
    paint: (it) => (it.retrying > 0 ? "yellow" : null),
  },
  {
    title: "PARKED",
    text: ({ parkedKeys }) => numberText(parkedKeys),
    paint: (it) => (it.parkedKeys > 0 ? "yellow" : null),
  },
  {
    title: "BEHIND",
    text: (it) => countText(it.behindDeadLetters, it.isEstimate),
    paint: (it) => ((it.behindDeadLetters ?? 0) > 0 ? "yellow" : null),
  },
  {
    title: "DEAD",
    text: ({ deadLetters }) => numberText(deadLetters),
    paint: (it) => (it.deadLetters > 0 ? "red" : null),
  },
  { title: "LANES", text: ({ lanes, ownedLanes }) => `${ownedLanes}/${lanes}` },
];

const STATE_PAINTS = {
  running: "green",
  paused: "yellow",
  broken: "red",
  "not served": "red",
  "no longer configured": "dim",
} as const;

/** Columns to omit, in this order, while the names need more width. */
const DROP_ORDER = ["LANES", "RETRYING", "PARKED", "BEHIND", "OLDEST", "STATE", "PENDING"];
const NAME_MIN = 16;
const NAME_MAX = 60;
const SPARKS = "▁▂▃▄▅▆▇█";
const INSTANCES_MAX = 8;

/** The whole screen as lines that fit the terminal in number and width. */
export function topScreen({ answers, isColoured, rates, size, snapshot, problem }: TopScreen): readonly string[] {
  const paint = painter(isColoured);
  const head = [
    paint(
      "bold",
      fit(`outbox-relay top  ${plain(snapshot.relaySchema)}  ${snapshot.at.slice(11, 19)} UTC`, size.columns),
    ),
    fit(summary(snapshot), size.columns),
    paint("cyan", sparkline(rates, size.columns)),
    "",
  ];
  const foot = [
    ...(problem === null ? [] : [paint("red", fit(`! ${plain(problem)}`, size.columns))]),
    ...allProblems(snapshot, answers).map((it) => paint("yellow", fit(`! ${plain(it)}`, size.columns))),
  ];
  const instances = instanceLines(snapshot, size.columns);
  const free = Math.max(2, size.rows - head.length - 2);
  const table = tableLines(snapshot, size.columns, paint);
  const destinations = destinationLines(answers.destinations, size.columns, paint);
  const below = ["", ...destinations, ...instances, ...(foot.length === 0 ? [] : ["", ...foot])];
  const shown = Math.max(1, free - Math.min(below.length, Math.ceil(free / 2)));
  const unrouted = cut(table.unrouted, Math.floor((shown - 1) / 2), "sources with unrouted events", size.columns);
  const pipelines = cut(table.pipelines, shown - 1 - unrouted.length, "pipelines", size.columns);
  const body = [table.title, ...pipelines, ...unrouted, ...below];
  const quit = paint("dim", fit("q quits", size.columns));
  return [...[...head, ...body].slice(0, Math.max(0, size.rows - 1)), quit].slice(-size.rows);
}

interface TableLines {
  readonly title: string;
  readonly pipelines: readonly string[];
  readonly unrouted: readonly string[];
}

function tableLines(
  { pipelines, unrouted }: TopSnapshot,
  columns: number,
  paint: ReturnType<typeof painter>,
): TableLines {
  if (pipelines.length === 0) {
    return { title: fit("No pipelines yet: no relay has run here.", columns), pipelines: [], unrouted: [] };
  }
  const rows = [...pipelines.map(pipelineRow), ...unrouted.map(unroutedRow)];
  const wanted = Math.min(NAME_MAX, Math.max(8, ...rows.map(({ name }) => name.length)));
  const { chosen, nameWidth } = fitting(rows, columns, wanted);
  const widths = chosen.map((column) => widthOf(column, rows));
  const title = [
    fit("PIPELINE", nameWidth).padEnd(nameWidth),
    ...chosen.map((it, at) => it.title.padStart(widths[at]!)),
  ];
  const lines = rows.map(({ name, ...row }) => {
    const cells = chosen.map((column, at) => {
      const text = row.text(column).padStart(widths[at]!);
      const colour = row.paint(column);
      return colour === null ? text : paint(colour, text);
    });
    return [fit(name, nameWidth).padEnd(nameWidth), ...cells].join("  ");
  });
  return {
    title: paint("dim", title.join("  ")),
    pipelines: lines.slice(0, pipelines.length),
    unrouted: lines.slice(pipelines.length),
  };
}

function pipelineRow(it: TopPipeline): TopRow {
  return { name: plain(it.pipeline), text: ({ text }) => text(it), paint: ({ paint }) => paint?.(it) ?? null };
}

function unroutedRow(it: Unrouted): TopRow {
  return {
    name: plain(it.source),
    text: ({ unrouted }) => unrouted?.(it) ?? "-",
    paint: ({ title }) => (title === "STATE" ? "yellow" : null),
  };
}

/** Times from send to answer over one and five minutes, in milliseconds so that they compare. */
function destinationLines(
  destinations: readonly SeenDestination[],
  columns: number,
  paint: ReturnType<typeof painter>,
): string[] {
  if (destinations.length === 0) return [];
  const head = ["ANSWERS OF", "P50 1M", "P99 1M", "P50 5M", "P99 5M", "RELAY"];
  const rows = destinations.map(({ answers: { lastFiveMinutes, lastMinute, slow }, destination, relay }) => {
    const times = [lastMinute.p50Ms, lastMinute.p99Ms, lastFiveMinutes.p50Ms, lastFiveMinutes.p99Ms].map(msText);
    const mark = slow === null ? "" : `  slow: ${msText(slow.presentMs)}, usually ${msText(slow.usualMs)}`;
    return { cells: [plain(destination), ...times, plain(relay)], mark };
  });
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map(({ cells }) => cells[at]!.length)));
  const line = (cells: readonly string[]) =>
    cells.map((cell, at) => (at % 5 === 0 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!))).join("  ");
  const shown = rows.map(({ cells, mark }) => {
    const text = fit(`${line(cells)}${mark}`.trimEnd(), columns);
    return mark === "" ? text : paint("red", text);
  });
  return [paint("dim", fit(line(head).trimEnd(), columns)), ...cut(shown, INSTANCES_MAX, "destinations", columns), ""];
}

/** The problems of the database and of the relays that were asked. */
export function allProblems({ problems }: TopSnapshot, answers: AnswerTimes): readonly string[] {
  return [...problems, ...answers.problems];
}

function fitting(rows: readonly TopRow[], columns: number, wanted: number) {
  let chosen = COLUMNS;
  const room = () => columns - chosen.reduce((sum, column) => sum + 2 + widthOf(column, rows), 0);
  for (const title of DROP_ORDER) {
    if (room() >= Math.min(wanted, NAME_MIN)) break;
    chosen = chosen.filter((column) => column.title !== title);
  }
  return { chosen, nameWidth: Math.max(1, Math.min(wanted, room())) };
}

function widthOf(column: Column, rows: readonly TopRow[]): number {
  return Math.max(column.title.length, ...rows.map(({ text }) => text(column).length));
}

function summary(snapshot: TopSnapshot): string {
  const { deadLetters, instances, isEstimate, oldestAgeMs, parkedKeys, pending, publishedPerSecond } = snapshot;
  const { behindDeadLetters, unrouted } = snapshot;
  const unroutedCount = unrouted.reduce((sum, { events }) => sum + events, 0);
  const isUnroutedEstimate = unrouted.some((it) => it.isEstimate);
  return [
    `${rateText(publishedPerSecond)}/s out`,
    `${countText(pending, isEstimate)} pending`,
    ...(oldestAgeMs === null ? [] : [`oldest ${ageText(oldestAgeMs)}`]),
    `${numberText(parkedKeys)} parked`,
    `${numberText(deadLetters)} dead`,
    ...(behindDeadLetters === 0 ? [] : [`${countText(behindDeadLetters, isEstimate)} behind them`]),
    ...(unroutedCount === 0 ? [] : [`${countText(unroutedCount, isUnroutedEstimate)} unrouted`]),
    plural(instances.length, "instance"),
    `health ${snapshot.grade}`,
  ].join("  ");
}

function instanceLines({ instances }: TopSnapshot, columns: number): string[] {
  if (instances.length === 0) return [fit("No live instances.", columns)];
  const lines = instances.map(({ lanes, leaseRemainingMs, name }) =>
    fit(`${plain(name)}  ${plural(lanes, "lane")}  lease ${ageText(leaseRemainingMs)}`, columns),
  );
  return cut(lines, INSTANCES_MAX, "instances", columns);
}

function cut(lines: readonly string[], max: number, what: string, columns: number): string[] {
  if (lines.length <= max) return [...lines];
  const shown = Math.max(0, max - 1);
  return [...lines.slice(0, shown), fit(`… and ${lines.length - shown} more ${what}`, columns)];
}

/** The latest values that fit, scaled to the highest of them. */
export function sparkline(rates: readonly number[], width: number): string {
  const shown = rates.slice(-width);
  const most = Math.max(...shown, 0);
  return shown.map((pace) => SPARKS[most === 0 ? 0 : Math.round((pace / most) * (SPARKS.length - 1))]).join("");
}

function painter(isColoured: boolean): (style: Paint, text: string) => string {
  return (style, text) => (isColoured ? styleText(style, text, { validateStream: false }) : text);
}

function fit(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

/** Names and reasons come from others and must not control the terminal. */
function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]/gu, "?");
}

function msText(ms: number | null): string {
  return ms === null ? "-" : `${numberText(Math.round(ms))} ms`;
}

function oldestText(ageMs: number | null): string {
  return ageMs === null ? "-" : ageText(ageMs);
}

function rateText(perSecond: number | null): string {
  if (perSecond === null) return "-";
  return perSecond > 0 && perSecond < 10 ? perSecond.toFixed(1) : numberText(Math.round(perSecond));
}

function countText(count: number | null, isEstimate: boolean): string {
  return count === null ? "?" : `${isEstimate ? "~" : ""}${numberText(count)}`;
}

function numberText(value: number): string {
  return value.toLocaleString("en-US");
}
