import { durationText } from "../../kit/format.ts";

/** Milliseconds with the microseconds that the database records: phases of an attempt can be that short. */
export function preciseMs(at: string): number {
  const ms = Date.parse(at);
  const [, digits = ""] = /\.\d{3}(\d{1,6})/.exec(at) ?? [];
  return digits === "" ? ms : ms + Number(`0.${digits}`);
}

/** Short durations keep their digits: `0.42 ms`, `12.3 ms`, `1.204 s`. */
export function fineText(ms: number): string {
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 100) return `${ms.toFixed(1)} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 10_000 ? `${(ms / 1_000).toFixed(2)} s` : durationText(ms);
}
