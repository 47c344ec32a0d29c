/** One rule of a port and how to prove it. Runs under any test runner: it throws when the rule is broken. */
export interface ContractCase<Harness extends { readonly capabilities: unknown }> {
  /** The rule in plain words, with the requirement's id where there is one. */
  readonly rule: string;
  /** Absent: the rule binds every adapter. */
  readonly needs?: (capabilities: Harness["capabilities"]) => boolean;
  run(harness: Harness): Promise<void>;
}

/** The cases that bind an adapter with these capabilities. */
export function applicable<Harness extends { readonly capabilities: unknown }>(
  cases: readonly ContractCase<Harness>[],
  harness: Harness,
): readonly ContractCase<Harness>[] {
  return cases.filter((it) => it.needs === undefined || it.needs(harness.capabilities));
}

const PATIENCE_MS = 10_000;

/** Waits for a condition that a server may take a moment to fulfil. */
export async function until(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`waited ${PATIENCE_MS} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
