import { TABLE_FAULTS } from "./faults.ts";
import type { EventPlan, Fate, OnlyKeyPlan, RoutePlan, TimedPlan, WritePlan } from "./scenario.ts";
import type { SeededRandom } from "./seeded-random.ts";

const MISJUDGED_SHARE = 0.2;
const ONLY_KEY_SHARE = 0.03;
const TABLE_SHARE = 0.15;
const WIDE_SHARE = 0.15;

/** A few events, often the very first one: then only later events can show that the destination works. */
export function misjudged(random: SeededRandom | null, writes: WritePlan[]): WritePlan[] {
  if (random === null || !random.chance(MISJUDGED_SHARE)) return writes;
  const scope = random.pick(["topic", "destination"] as const);
  const afterMs = random.chance(0.3) ? random.int(0, 2_000) : null;
  const events = writes.flatMap((plan) => plan.events);
  const bad = new Set(random.chance(0.5) ? [events[0]!.id] : []);
  const wanted = bad.size + random.pick([0, 1, 3]);
  while (bad.size < Math.max(1, wanted)) bad.add(random.pick(events).id);
  const fate: Fate = { kind: "misjudged", scope, afterMs };
  return writes.map((plan) => ({
    ...plan,
    events: plan.events.map((event) => (bad.has(event.id) ? { ...event, fate } : event)),
  }));
}

export function onlyKeyOf(random: SeededRandom | null, routes: readonly RoutePlan[]): OnlyKeyPlan | null {
  if (random === null || !random.chance(ONLY_KEY_SHARE)) return null;
  const { destination } = random.pick(routes);
  return { destination, key: `k${random.int(0, 2)}`, scope: random.pick(["topic", "destination"]) };
}

/** Duration of a migration or of building an index. */
export function tableFaultsOf(random: SeededRandom | null, calmFromMs: number): TimedPlan[] {
  if (random === null || !random.chance(TABLE_SHARE)) return [];
  return Array.from({ length: random.int(1, 2) }, () => ({
    kind: random.pick(TABLE_FAULTS),
    atMs: random.between(0, calmFromMs * 0.6),
    target: 0,
    forMs: random.int(500, 15_000),
    amount: 0,
  }));
}

/** Some rows are much larger than their payload. */
export function widened(random: SeededRandom | null, writes: WritePlan[]): WritePlan[] {
  if (random === null || !random.chance(WIDE_SHARE)) return writes;
  const share = random.pick([0.05, 0.5]);
  const wide = (event: EventPlan): EventPlan => {
    const column = random.pick(["headers", "correlationId"] as const);
    const bytes = random.pick([100, 1_000, 20_000]);
    return random.chance(share) ? { ...event, wide: { column, bytes } } : event;
  };
  return writes.map((plan) => ({ ...plan, events: plan.events.map(wide) }));
}
