import { isRelayError } from "../../core/errors.ts";
import type { DeadLetterChoice } from "../../operations/dead-letters/dead-letter-choice.ts";
import type { EventFilter } from "../../operations/events/event-filter.ts";
import { EXIT, Exit } from "../../service/exit.ts";

/** Help text of the filter argument. */
export const FILTER_HELP =
  "such as type:order.* key:42* state:dead error:refused header:tenant=acme age:<1h text:refund; a bare word is an id, key, correlation id or a part of a key";

/** Combines the filter of the command line with the options; for events. */
export async function eventFilterOf(words: readonly string[], flags: EventFilter): Promise<EventFilter> {
  const { bothFilters, parseEventFilter } = await import("../../operations/filter/filter-language.ts");
  return asUsage(() => bothFilters(parseEventFilter(words.join(" "), new Date()), flags));
}

/** Combines the filter of the command line with the options; for dead letters. */
export async function choiceFilterOf(words: readonly string[], flags: DeadLetterChoice): Promise<DeadLetterChoice> {
  const { bothFilters, parseDeadLetterChoice } = await import("../../operations/filter/filter-language.ts");
  return asUsage(() => bothFilters(parseDeadLetterChoice(words.join(" "), new Date()), flags));
}

/** Reports an invalid filter as a usage error, not as an invalid setting. */
function asUsage<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!isRelayError(error, "CONFIG_INVALID")) throw error;
    throw new Exit(EXIT.usage, [error.message.split(` [${error.code}]`)[0] ?? error.message]);
  }
}
