import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { areaPath, linePath, roundTicks, timeTicks } from "./chart-scale.ts";
import { clockText } from "./format.ts";

interface ChartLine {
  readonly name: string;
  /** One of the six chart colours. */
  readonly tone: "accent" | "good" | "info" | "warn" | "bad" | "plain";
  readonly isArea?: boolean;
  readonly isDashed?: boolean;
  /** One value per time. */
  readonly values: readonly (number | null)[];
}

interface ChartMarker {
  readonly at: number;
  readonly text: string;
}

interface ChartProps {
  readonly label: string;
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly markers?: readonly ChartMarker[];
  format(value: number): string;
}

const HEIGHT = 176;
/** Keeps a time label at the right edge inside the chart. */
const LABEL_HALF = 30;
const EDGE = { top: 10, right: 8, bottom: 22, left: 48 } as const;
const TABLE_ROWS_MAX = 30;

/** A time series chart with a crosshair, or the same data as a table. */
export function TimeChart(props: ChartProps) {
  const [isTable, setTable] = useState(false);
  const { label, lines } = props;
  return (
    <figure class="chart" aria-label={label}>
      <figcaption>
        {lines.map(({ name, tone, isDashed = false, values }) => (
          <span key={name} class={`legend ${tone}${isDashed ? " dashed" : ""}`}>
            <i aria-hidden="true" />
            {name} <b class="num">{lastOf(values, props.format)}</b>
          </span>
        ))}
        <span class="spring" />
        <Button
          kind="quiet"
          icon={isTable ? "overview" : "events"}
          label={isTable ? `${label} as a chart` : `${label} as a table`}
          onClick={() => setTable(!isTable)}
        />
      </figcaption>
      {isTable ? <ChartTable {...props} /> : <ChartPicture {...props} />}
    </figure>
  );
}

function lastOf(values: readonly (number | null)[], format: (value: number) => string): string {
  const last = values.findLast((value) => value !== null);
  return last === undefined || last === null ? "–" : format(last);
}

/** Vertical lines with a label, such as pauses and replays. */
function Markers({
  markers,
  xOf,
  base,
}: {
  markers: readonly ChartMarker[];
  xOf: (at: number) => number;
  base: number;
}) {
  return markers.map(({ at, text }) => (
    <g key={`${at}${text}`} class="marker">
      <title>{text}</title>
      <line x1={xOf(at)} x2={xOf(at)} y1={EDGE.top} y2={base} />
      <path d={`M${xOf(at) - 4} ${EDGE.top - 6}h8l-4 6Z`} />
    </g>
  ));
}

function ChartPicture({ label, times, lines, markers = [], format }: ChartProps) {
  const [width, element] = useWidth();
  const [hover, setHover] = useState<number | null>(null);
  const from = times[0] ?? 0;
  const to = Math.max(times.at(-1) ?? 1, from + 1);
  const ticks = roundTicks(Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0))));
  const inner = { width: Math.max(1, width - EDGE.left - EDGE.right), height: HEIGHT - EDGE.top - EDGE.bottom };
  const xOf = (at: number) => EDGE.left + ((at - from) / (to - from)) * inner.width;
  const yOf = (value: number) => EDGE.top + inner.height * (1 - value / (ticks.at(-1) ?? 1));
  const pointsOf = ({ values }: ChartLine) =>
    times.map((at, index) => {
      const value = values[index] ?? null;
      return [xOf(at), value === null ? null : yOf(value)] as const;
    });
  const follow = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const at = from + ((event.clientX - box.left - EDGE.left) / inner.width) * (to - from);
    setHover(nearest(times, at));
  };
  const base = EDGE.top + inner.height;
  return (
    <div class="chart-picture" ref={element} onPointerMove={follow} onPointerLeave={() => setHover(null)}>
      <svg width={width} height={HEIGHT} role="img" aria-label={`${label}, as a chart. Also available as a table.`}>
        {ticks.map((tick) => (
          <g key={tick}>
            <line class="grid" x1={EDGE.left} x2={width - EDGE.right} y1={yOf(tick)} y2={yOf(tick)} />
            <text x={EDGE.left - 8} y={yOf(tick) + 4} text-anchor="end">
              {format(tick)}
            </text>
          </g>
        ))}
        {timeTicks(from, to, Math.max(2, inner.width / 110)).map((tick) => (
          <text key={tick} x={Math.min(xOf(tick), width - LABEL_HALF)} y={HEIGHT - 5} text-anchor="middle">
            {clockText(tick).slice(0, to - from > 600_000 ? 5 : 8)}
          </text>
        ))}
        {lines.map((line) => (
          <g key={line.name} class={`line ${line.tone}${line.isDashed ? " dashed" : ""}`}>
            {line.isArea && <path class="area" d={areaPath(pointsOf(line), base)} />}
            <path d={linePath(pointsOf(line))} />
          </g>
        ))}
        <Markers markers={markers.filter(({ at }) => at >= from && at <= to)} xOf={xOf} base={base} />
        {hover !== null && (
          <line class="crosshair" x1={xOf(times[hover] ?? 0)} x2={xOf(times[hover] ?? 0)} y1={EDGE.top} y2={base} />
        )}
      </svg>
      {hover !== null && (
        <Reading
          at={times[hover] ?? 0}
          index={hover}
          x={xOf(times[hover] ?? 0)}
          width={width}
          lines={lines}
          markers={markers}
          format={format}
        />
      )}
    </div>
  );
}

interface ReadingProps extends Pick<ChartProps, "lines" | "format"> {
  readonly at: number;
  readonly index: number;
  readonly x: number;
  readonly width: number;
  readonly markers: readonly ChartMarker[];
}

/** The values at the crosshair, on the side with room. */
function Reading({ at, index, x, width, lines, markers, format }: ReadingProps) {
  const place = x > width / 2 ? { right: `${width - x + 10}px` } : { left: `${x + 10}px` };
  const near = markers.filter((marker) => Math.abs(marker.at - at) < 15_000);
  return (
    <div class="reading" style={place}>
      <div class="faint">{clockText(at)}</div>
      {lines.map(({ name, tone, values }) => {
        const value = values[index] ?? null;
        return (
          <div key={name} class={`legend ${tone}`}>
            <i aria-hidden="true" />
            {name} <b class="num">{value === null ? "–" : format(value)}</b>
          </div>
        );
      })}
      {near.map(({ text }) => (
        <div key={text}>▾ {text}</div>
      ))}
    </div>
  );
}

function ChartTable({ label, times, lines, format }: ChartProps) {
  const step = Math.max(1, Math.ceil(times.length / TABLE_ROWS_MAX));
  const shown = times.flatMap((at, index) => ((times.length - 1 - index) % step === 0 ? [{ at, index }] : []));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the element scrolls and must be reachable by keyboard
    <section class="chart-table" tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {lines.map(({ name }) => (
              <th key={name} scope="col" class="figure">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.toReversed().map(({ at, index }) => (
            <tr key={at}>
              <td>{clockText(at)}</td>
              {lines.map(({ name, values }) => {
                const value = values[index] ?? null;
                return (
                  <td key={name} class="figure">
                    {value === null ? "–" : format(value)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function nearest(times: readonly number[], at: number): number | null {
  if (times.length === 0) return null;
  let best = 0;
  for (const [index, time] of times.entries()) {
    if (Math.abs(time - at) < Math.abs((times[best] ?? 0) - at)) best = index;
  }
  return best;
}

function useWidth() {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const box = element.current;
    if (box === null) return;
    const watch = new ResizeObserver(() => setWidth(box.clientWidth));
    watch.observe(box);
    setWidth(box.clientWidth);
    return () => watch.disconnect();
  }, []);
  return [width, element] as const;
}

/** A small chart beside a figure. */
export function Sparkline({
  values,
  label,
  isBars = false,
}: {
  readonly values: readonly number[];
  readonly label: string;
  readonly isBars?: boolean;
}) {
  const width = 96;
  const height = 22;
  const most = Math.max(1e-9, ...values);
  const step = width / Math.max(1, isBars ? values.length : values.length - 1);
  const points = values.map((value, at) => [at * step, height - 1 - (value / most) * (height - 3)] as const);
  return (
    <svg class="sparkline" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <title>{label}</title>
      {isBars ? (
        points.map(([x, y], at) =>
          values[at] === 0 ? null : (
            <rect key={x} x={x} y={y} width={Math.max(1, step - 1)} height={height - y} rx={0.8} />
          ),
        )
      ) : (
        <>
          <path class="area" d={areaPath(points, height)} />
          <path d={linePath(points)} />
        </>
      )}
    </svg>
  );
}
