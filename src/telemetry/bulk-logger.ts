import { symbols } from "pino";
import type { Logger } from "./logger.ts";

type Parts = Readonly<Record<symbol, string & Readonly<Record<number, string>>>>;

/**
 * For lines of which there are very many, with plain values: the logger puts a line together from some hundred pieces,
 * which is most of the garbage of a process that does little else. The level has to be carried over from the parent.
 */
export function bulkLogger(logger: Logger, bindings: object): Logger {
  const bulk = logger.child(bindings);
  const { asJsonSym, chindingsSym, endSym, lsCacheSym, timeSym } = symbols;
  const lineOf = function (this: Parts, fields: object, message: string, level: number, time: string): string {
    const own = JSON.stringify({ ...fields, message });
    return `${this[lsCacheSym]?.[level]}${time}${this[chindingsSym]},${own.slice(1, -1)}${this[endSym]}`;
  };
  return Object.defineProperties(bulk, { [asJsonSym]: { value: lineOf }, [timeSym]: { value: isoTimes() } });
}

/** As the logger writes them, each made once for all lines of its millisecond. */
function isoTimes(): () => string {
  let lastMs = Number.NaN;
  let text = "";
  return () => {
    const nowMs = Date.now();
    if (nowMs !== lastMs) text = `,"time":"${new Date(nowMs).toISOString()}"`;
    lastMs = nowMs;
    return text;
  };
}
