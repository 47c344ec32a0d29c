// Small line charts as SVG, drawn anew with every sample.

const WIDTH = 600;
const HEIGHT = 120;
const SPAN_MS = 120_000;
const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {SVGElement} svg
 * @param {{ nowMs: number, samples: readonly Record<string, number>[], lines: readonly { field: string, area?: boolean }[], least: number }} chart
 * @returns {number} the value at the top
 */
export function drawChart(svg, { nowMs, samples, lines, least }) {
  const values = samples.flatMap((sample) => lines.map(({ field }) => sample[field]));
  const top = roundUp(Math.max(least, ...values));
  const parts = [0.5, 1].map((share) => gridLine(HEIGHT - share * (HEIGHT - 4)));
  for (const { field, className, area } of lines) {
    const points = samples.map((sample) => [
      WIDTH * (1 - (nowMs - sample.atMs) / SPAN_MS),
      HEIGHT - 1 - (sample[field] / top) * (HEIGHT - 4),
    ]);
    if (points.length === 0) continue;
    const path = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join(" L ");
    if (area) {
      const [first, last] = [points[0], points[points.length - 1]];
      parts.push(shape(`${className}-area`, `M ${first[0]} ${HEIGHT} L ${path} L ${last[0]} ${HEIGHT} Z`));
    }
    parts.push(shape(className, `M ${path}`));
  }
  svg.replaceChildren(...parts);
  return top;
}

/** The next of 1, 2, 5, 10, 20, 50 ... so that the scale does not twitch. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function gridLine(y) {
  const line = document.createElementNS(SVG, "line");
  for (const [name, value] of Object.entries({ x1: 0, x2: WIDTH, y1: y, y2: y, class: "grid" })) {
    line.setAttribute(name, value);
  }
  return line;
}

function shape(className, d) {
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("class", className);
  path.setAttribute("d", d);
  return path;
}
