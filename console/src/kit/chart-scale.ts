/** Three to five round values from zero to at least `most`. */
export function roundTicks(most: number): number[] {
  const top = most > 0 && Number.isFinite(most) ? most : 1;
  const power = 10 ** Math.floor(Math.log10(top / 3));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((it) => top / it <= 4) ?? 10 * power;
  const count = Math.max(1, Math.ceil(top / step - 1e-9));
  // Sums of fractions would end in ...0000004.
  return Array.from({ length: count + 1 }, (_, at) => Number((at * step).toPrecision(6)));
}

const TIME_STEPS_MS = [10, 30, 60, 120, 300, 600, 900, 1_800, 3_600].map((seconds) => seconds * 1_000);

/** Round times for the axis, at most `max` of them. */
export function timeTicks(from: number, to: number, max: number): number[] {
  const step = TIME_STEPS_MS.find((it) => (to - from) / it <= max) ?? 2 * 3_600_000;
  const ticks: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push(at);
  return ticks;
}

/** The SVG path of a line, with gaps where values are missing. */
export function linePath(points: readonly (readonly [x: number, y: number | null])[]): string {
  let path = "";
  let isOpen = false;
  for (const [x, y] of points) {
    if (y === null) isOpen = false;
    else {
      path += `${isOpen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
      isOpen = true;
    }
  }
  return path;
}

/** The SVG path of the area under the line, closed at the base for each segment. */
export function areaPath(points: readonly (readonly [x: number, y: number | null])[], base: number): string {
  const pieces: [number, number][][] = [[]];
  for (const [x, y] of points) {
    if (y === null) pieces.push([]);
    else pieces.at(-1)?.push([x, y]);
  }
  return pieces
    .filter((piece) => piece.length > 1)
    .map((piece) => `${linePath(piece)}L${piece.at(-1)?.[0].toFixed(1)} ${base}L${piece[0]?.[0].toFixed(1)} ${base}Z`)
    .join("");
}
