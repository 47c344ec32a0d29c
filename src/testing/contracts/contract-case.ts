/** One rule of a port with its test. Runs under any test runner: it throws if the rule is violated. */
export interface ContractCase<Harness extends { readonly capabilities: unknown }> {
  /** The rule as a sentence, with the requirement's id if there is one. */
  readonly rule: string;
  /** Absent: the rule applies to every adapter. */
  readonly needs?: (capabilities: Harness["capabilities"]) => boolean;
  run(harness: Harness): Promise<void>;
}

/** The cases that apply to an adapter with these capabilities. */
export function applicableCases<Harness extends { readonly capabilities: unknown }>(
  cases: readonly ContractCase<Harness>[],
  harness: Harness,
): readonly ContractCase<Harness>[] {
  return cases.filter((it) => it.needs === undefined || it.needs(harness.capabilities));
}

const TIMEOUT_MS = 60_000;

/** Polls until a condition holds that a server may fulfil with a delay. */
export async function until(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
  const deadlineMs = performance.now() + TIMEOUT_MS;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`timed out after ${TIMEOUT_MS} ms while waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
