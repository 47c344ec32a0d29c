import { type TypeFilter, typeMatcher } from "./type-filter.ts";

/**
 * Whether two pipelines may take the same event, as far as types tell: tried with types that the patterns of both
 * describe. Rules that ask for more than the type are no proof, and count for nothing.
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

/** A rule with conditions may or may not match first: without them nothing that it says is certain. */
function plainRules(filter: TypeFilter): TypeFilter {
  if (filter === null) return null;
  const conditional = filter.findIndex(({ when = [] }) => when.length > 0);
  return conditional < 0 ? filter : filter.slice(0, conditional);
}

/** Stands for characters that no other pattern is likely to name. */
const FILLER = "\u{F0001}";

function samplesOf(pattern: string): string[] {
  return pattern.includes("*") ? [pattern.replaceAll("*", ""), pattern.replaceAll("*", FILLER)] : [pattern];
}
