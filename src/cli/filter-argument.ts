import { isRelayError } from "../core/errors.ts";
import type { DeadLetterChoice } from "../operations/dead-letter-choice.ts";
import type { EventFilter } from "../operations/event-filter.ts";
import { EXIT, Exit } from "./exit.ts";

/** For the help of every command that takes one. */
export const FILTER_HELP =
  "as type:order.* key:42 state:dead age:<1h text:refund; a bare word is an id, key or correlation id";

export async function eventFilterOf(words: readonly string[], flags: EventFilter): Promise<EventFilter> {
  const { bothFilters, parseEventFilter } = await import("../operations/filter-language.ts");
  return asUsage(() => bothFilters(parseEventFilter(words.join(" "), new Date()), flags));
}

export async function choiceFilterOf(words: readonly string[], flags: DeadLetterChoice): Promise<DeadLetterChoice> {
  const { bothFilters, parseDeadLetterChoice } = await import("../operations/filter-language.ts");
  return asUsage(() => bothFilters(parseDeadLetterChoice(words.join(" "), new Date()), flags));
}

/** A filter that cannot be read is a slip on the command line, not one in the settings. */
function asUsage<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!isRelayError(error, "CONFIG_INVALID")) throw error;
    throw new Exit(EXIT.usage, [error.message.split(` [${error.code}]`)[0] ?? error.message]);
  }
}
