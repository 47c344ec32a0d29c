import { type TypeFilter, typeMatcher } from "./type-filter.ts";

/**
 * True when two pipelines can take the same event type. It tests sample types made from the patterns of both. Rules
 * with conditions beyond the type prove nothing and are ignored.
 */
export function filtersOverlap(left: TypeFilter, right: TypeFilter): boolean {
  const [plainLeft, plainRight] = [plainRules(left), plainRules(right)];
  const [takesLeft, takesRight] = [typeMatcher(plainLeft), typeMatcher(plainRight)];
  const samples = [...(plainLeft ?? ANY), ...(plainRight ?? ANY)].flatMap(({ pattern }) => samplesOf(pattern));
  return samples.some((type) => {
    const event = { type, key: null, correlationId: null, headers: null };
    return takesLeft(event) && takesRight(event);
  });
}

const ANY = [{ pattern: "*" }] as const;

/** The rules before the first one with conditions. Which rule matches after that one depends on more than the type. */
function plainRules(filter: TypeFilter): TypeFilter {
  if (filter === null) return null;
  const conditional = filter.findIndex(({ when = [] }) => when.length > 0);
  return conditional < 0 ? filter : filter.slice(0, conditional);
}

/** A character that no pattern is likely to contain. */
const FILLER = "\u{F0001}";

function samplesOf(pattern: string): string[] {
  return pattern.includes("*") ? [pattern.replaceAll("*", ""), pattern.replaceAll("*", FILLER)] : [pattern];
}
