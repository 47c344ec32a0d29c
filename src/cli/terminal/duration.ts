import { EXIT, Exit } from "../../service/exit.ts";

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Parses `30s`, `500ms`, `2m`; a bare number means milliseconds, as in the settings. */
export function durationMs(option: string, text: string): number {
  const [, number, unit = "ms"] = /^(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?$/.exec(text) ?? [];
  const ms = Number(number) * (UNITS_MS[unit] ?? Number.NaN);
  if (Number.isFinite(ms)) return ms;
  throw new Exit(EXIT.usage, [`${option} is ${JSON.stringify(text)}: write a time like 30s, 500ms or 2m`]);
}
