import type { TopPipeline, TopSnapshot } from "../operations/overview/top-meter.ts";
import { ageText } from "./text-table.ts";

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

interface TopScreen {
  readonly snapshot: TopSnapshot;
  /** All pipelines together, the oldest first. */
  readonly paces: readonly number[];
  /** Why there is nothing newer; null when there is. */
  readonly trouble: string | null;
  readonly size: ScreenSize;
  readonly isColoured: boolean;
}

type Paint = keyof typeof PAINTS;

const PAINTS = { bold: "1", dim: "2", red: "31", green: "32", yellow: "33", cyan: "36" } as const;

interface Column {
  readonly title: string;
  readonly text: (pipeline: TopPipeline) => string;
  readonly paint?: (pipeline: TopPipeline) => Paint | null;
}

/** In the order in which they stand; those that a narrow terminal does without are named below. */
const COLUMNS: readonly Column[] = [
  { title: "STATE", text: ({ state }) => state, paint: ({ state }) => STATE_PAINTS[state] },
  { title: "OUT/S", text: ({ publishedPerSecond }) => rateText(publishedPerSecond) },
  { title: "PENDING", text: (it) => countText(it.pending, it.isEstimate) },
  { title: "OLDEST", text: ({ oldestAgeMs }) => (oldestAgeMs === null ? "-" : ageText(oldestAgeMs)) },
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
    title: "DEAD",
    text: ({ deadLetters }) => numberText(deadLetters),
    paint: (it) => (it.deadLetters > 0 ? "red" : null),
  },
  { title: "LANES", text: ({ lanes, ownedLanes }) => `${ownedLanes}/${lanes}` },
];

const STATE_PAINTS = { running: "green", paused: "yellow", broken: "red", "not served": "red" } as const;

/** Left out one after the other while the names have less than they need. */
const LEFT_OUT_FIRST = ["LANES", "RETRYING", "PARKED", "OLDEST", "STATE", "PENDING"];
const NAME_MIN = 16;
const NAME_MAX = 60;
const SPARKS = "▁▂▃▄▅▆▇█";
const INSTANCES_MAX = 8;

/** The whole screen as lines, none longer or more than fit. */
export function topScreen({ isColoured, paces, size, snapshot, trouble }: TopScreen): readonly string[] {
  const paint = painter(isColoured);
  const head = [
    paint(
      "bold",
      fit(`outbox-relay top  ${plain(snapshot.relaySchema)}  ${snapshot.at.slice(11, 19)} UTC`, size.columns),
    ),
    fit(summary(snapshot), size.columns),
    paint("cyan", sparkline(paces, size.columns)),
    "",
  ];
  const foot = [
    ...(trouble === null ? [] : [paint("red", fit(`! ${plain(trouble)}`, size.columns))]),
    ...snapshot.problems.map((problem) => paint("yellow", fit(`! ${plain(problem)}`, size.columns))),
  ];
  const instances = instanceLines(snapshot, size.columns);
  const free = Math.max(2, size.rows - head.length - 2);
  const table = tableLines(snapshot.pipelines, size.columns, paint);
  const [title = "", ...rows] = table;
  const below = ["", ...instances, ...(foot.length === 0 ? [] : ["", ...foot])];
  const shown = Math.max(1, free - Math.min(below.length, Math.ceil(free / 2)));
  const body = [title, ...cut(rows, shown - 1, "pipelines", size.columns), ...below];
  const quit = paint("dim", fit("q quits", size.columns));
  return [...[...head, ...body].slice(0, Math.max(0, size.rows - 1)), quit].slice(-size.rows);
}

function tableLines(pipelines: readonly TopPipeline[], columns: number, paint: ReturnType<typeof painter>): string[] {
  if (pipelines.length === 0) return [fit("No pipeline yet: no relay has run here.", columns)];
  const wanted = Math.min(NAME_MAX, Math.max(8, ...pipelines.map(({ pipeline }) => plain(pipeline).length)));
  const { chosen, nameWidth } = fitting(pipelines, columns, wanted);
  const widths = chosen.map((column) => widthOf(column, pipelines));
  const title = [
    fit("PIPELINE", nameWidth).padEnd(nameWidth),
    ...chosen.map((it, at) => it.title.padStart(widths[at]!)),
  ];
  const rows = pipelines.map((pipeline) => {
    const cells = chosen.map((column, at) => {
      const text = column.text(pipeline).padStart(widths[at]!);
      const colour = column.paint?.(pipeline) ?? null;
      return colour === null ? text : paint(colour, text);
    });
    return [fit(plain(pipeline.pipeline), nameWidth).padEnd(nameWidth), ...cells].join("  ");
  });
  return [paint("dim", title.join("  ")), ...rows];
}

function fitting(pipelines: readonly TopPipeline[], columns: number, wanted: number) {
  let chosen = COLUMNS;
  const room = () => columns - chosen.reduce((sum, column) => sum + 2 + widthOf(column, pipelines), 0);
  for (const title of LEFT_OUT_FIRST) {
    if (room() >= Math.min(wanted, NAME_MIN)) break;
    chosen = chosen.filter((column) => column.title !== title);
  }
  return { chosen, nameWidth: Math.max(1, Math.min(wanted, room())) };
}

function widthOf({ text, title }: Column, pipelines: readonly TopPipeline[]): number {
  return Math.max(title.length, ...pipelines.map((pipeline) => text(pipeline).length));
}

function summary(snapshot: TopSnapshot): string {
  const { deadLetters, instances, isEstimate, oldestAgeMs, parkedKeys, pending, publishedPerSecond } = snapshot;
  return [
    `${rateText(publishedPerSecond)}/s out`,
    `${countText(pending, isEstimate)} pending`,
    ...(oldestAgeMs === null ? [] : [`oldest ${ageText(oldestAgeMs)}`]),
    `${numberText(parkedKeys)} parked`,
    `${numberText(deadLetters)} dead`,
    instances.length === 1 ? "1 instance" : `${instances.length} instances`,
  ].join("  ");
}

function instanceLines({ instances }: TopSnapshot, columns: number): string[] {
  if (instances.length === 0) return [fit("No living instance.", columns)];
  const lines = instances.map(({ lanes, leaseRemainingMs, name }) =>
    fit(`${plain(name)}  ${lanes} lanes  lease ${ageText(leaseRemainingMs)}`, columns),
  );
  return cut(lines, INSTANCES_MAX, "instances", columns);
}

function cut(lines: readonly string[], max: number, what: string, columns: number): string[] {
  if (lines.length <= max) return [...lines];
  const shown = Math.max(0, max - 1);
  return [...lines.slice(0, shown), fit(`… and ${lines.length - shown} more ${what}`, columns)];
}

/** The last ones that fit, the highest of them as high as the line. */
export function sparkline(paces: readonly number[], width: number): string {
  const shown = paces.slice(-width);
  const most = Math.max(...shown, 0);
  return shown.map((pace) => SPARKS[most === 0 ? 0 : Math.round((pace / most) * (SPARKS.length - 1))]).join("");
}

function painter(isColoured: boolean): (paint: Paint, text: string) => string {
  return (paint, text) => (isColoured ? `\u001b[${PAINTS[paint]}m${text}\u001b[0m` : text);
}

function fit(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

/** Names and reasons are what others wrote: nothing of them may steer the terminal. */
function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]/gu, "?");
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
