import type { Entry } from "./declarations.ts";

/** Words that an application, the platform or a broker's client has of its own. */
const BARE: ReadonlySet<string> = new Set(
  "Answer Error Event Headers Item Job Listener Log Logger Queue Reader Request Response Result Scope Settled".split(
    " ",
  ),
);

/**
 * Names that would collide in a file that imports them. Nobody can tell from a bare verb, such as `retry` or `delivered`,
 * what it is about.
 */
export function collidingNames(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry) =>
    entry.exports
      .filter(({ name }) => BARE.has(name) || /^[a-z]+$/.test(name))
      .map(({ name }) => `${entry.name}: ${name}`),
  );
}
