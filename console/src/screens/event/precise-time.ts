import { durationText } from "../../kit/format.ts";

/** Milliseconds with all digits of the text: the database knows microseconds, and the path of an event is that short. */
export function preciseMs(at: string): number {
  const ms = Date.parse(at);
  const [, digits = ""] = /\.\d{3}(\d{1,6})/.exec(at) ?? [];
  return digits === "" ? ms : ms + Number(`0.${digits}`);
}

/** Short ones with their digits: `0.42 ms`, `12.3 ms`, `1.204 s`. */
export function fineText(ms: number): string {
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 100) return `${ms.toFixed(1)} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 10_000 ? `${(ms / 1_000).toFixed(2)} s` : durationText(ms);
}
