import { setTimeout as pauseMs } from "node:timers/promises";

export interface Question {
  readonly name: string;
  /** Another one each time. */
  path(): string;
}

interface Pace {
  readonly forMs: number;
  readonly perSecond: number;
}

/** Asks one question after the other at an even pace, late answers or not; the milliseconds of each by its name. */
export async function askInTurn(
  address: string,
  questions: readonly Question[],
  { forMs, perSecond }: Pace,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const times = new Map<string, number[]>(questions.map(({ name }) => [name, []]));
  const startedMs = performance.now();
  const open: Promise<void>[] = [];
  for (let asked = 0; performance.now() - startedMs < forMs; asked += 1) {
    const { name, path } = questions[asked % questions.length]!;
    open.push(ask(address + path()).then((ms) => void times.get(name)?.push(ms)));
    await pauseMs(Math.max(0, startedMs + ((asked + 1) * 1_000) / perSecond - performance.now()));
  }
  await Promise.all(open);
  return times;
}

async function ask(url: string): Promise<number> {
  const startedMs = performance.now();
  const response = await fetch(url);
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${text.slice(0, 300)}`);
  return performance.now() - startedMs;
}
