import { duration } from "./settings/value-types.ts";

const PAUSE = duration({ minMs: 0, maxMs: 365 * 24 * 3_600_000 });

/** Parses a delay between two attempts; undefined when `problems` say what is wrong. */
export function pauseMs(written: string, name: string, problems: string[]): number | undefined {
  const { data, error } = PAUSE.safeParse(written);
  for (const { message } of error?.issues ?? []) problems.push(`${name} has ${JSON.stringify(written)}: ${message}`);
  return data;
}
