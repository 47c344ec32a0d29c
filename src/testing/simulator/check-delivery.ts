import type { Disturbance, Send, Written } from "./history.ts";
import type { BrokerOptions } from "./sim-broker.ts";
import type { Simulation } from "./simulation.ts";

/** L: every committed event that the database still has was delivered, is a dead letter, or waits. */
export function checkLoss(simulation: Simulation): void {
  const { history, database } = simulation.world;
  const contents = new Set(history.arrivals.map(({ content }) => content));
  const ids = new Set(history.arrivals.map(({ id }) => id));
  for (const event of history.written) {
    if (event.gone !== null) continue;
    const row = database.model.row(event.id);
    // A deduplicating destination cannot know that two events got the same id.
    const isDropped = brokerOf(simulation, event)?.deduplicates && ids.has(event.id);
    const arrived = contents.has(event.content) || isDropped;
    if (row === undefined) history.violate("L", `${event.id} vanished`);
    else if (row.state === "DELIVERED" && !arrived) {
      history.violate("L", `${event.id} is marked as delivered but never arrived`);
    } else if (row.state === "DEAD" && !database.model.tables.deadLetters.has(event.id)) {
      history.violate("L", `${event.id} is dead but has no dead letter`);
    }
  }
}

/** O: first deliveries of a key follow the order of writing; no event overtakes a dead event that parks its key. */
export function checkOrder(simulation: Simulation): void {
  const { history, database } = simulation.world;
  // Compare positions, not times: events committed together arrive at the same time, but in order.
  const places = new Map<string, number>();
  for (const [place, { content }] of history.arrivals.entries()) if (!places.has(content)) places.set(content, place);
  // A deduplicating destination drops an event whose id was used before.
  const ids = new Set(history.arrivals.map(({ id }) => id));
  for (const [line, events] of Map.groupBy(history.written, (event) => lineOf(simulation, event))) {
    const { key } = events[0]!;
    if (key === null || history.revivedKeys.has(key) || history.untimelyKeys.has(key)) continue;
    const kept = events.filter(({ gone, content, id }) => {
      const isDropped = !places.has(content) && ids.has(id);
      return gone === null && !isDropped && !history.replayed.has(content);
    });
    const inOrder = kept.sort((left, right) => left.sequence - right.sequence);
    let latest: { id: string; place: number } | null = null;
    for (const event of inOrder) {
      const letter = database.model.tables.deadLetters.get(event.id);
      if (letter !== undefined && !letter.parks) continue;
      const place: number = places.get(event.content) ?? NEVER;
      const overtaker = place === NEVER ? laterArrival(inOrder, event, places) : undefined;
      if (overtaker !== undefined)
        history.violate("O", `${overtaker.id} of ${line} overtook ${event.id}, which still waits`);
      if (latest !== null && place < latest.place) {
        history.violate("O", `${event.id} of ${line} arrived before ${latest.id}, which was written earlier`);
      }
      if (place !== NEVER) latest = { id: event.id, place };
      if (history.violations.length > 0) return;
    }
  }
}

/**
 * D: each duplicate has its own cause: an unknown outcome, or a fault before the event was marked as delivered. A marked
 * event arrives again only if a failover lost the mark.
 */
export function checkDuplicates(simulation: Simulation): void {
  const { history } = simulation.world;
  const sends = Map.groupBy(
    history.sends.filter(({ arrived }) => arrived),
    ({ content }) => content,
  );
  for (const [content, ofEvent] of sends) {
    const broker = brokerOf(simulation, ofEvent[0]!);
    if (ofEvent.length < 2 || broker === undefined || broker.deduplicates || broker.transactions !== null) continue;
    const used = new Set<Disturbance>();
    const inOrder = ofEvent.sort((left, right) => left.sentAtMs - right.sentAtMs);
    for (const [index, send] of inOrder.entries()) {
      const before = inOrder[index - 1];
      if (before === undefined || before.answer?.kind !== "delivered") continue;
      const cause = causeOf(simulation, before, send, used);
      if (cause !== undefined) used.add(cause);
      else history.violate("D", `${content} arrived again from ${send.process}, but there was no fault`);
    }
  }
}

function causeOf(
  { world, scenario }: Simulation,
  before: Send,
  send: Send,
  used: ReadonlySet<Disturbance>,
): Disturbance | undefined {
  const { history, leaseMs } = world;
  const marked = history.settled.get(before.id)?.find((atMs) => atMs >= before.sentAtMs && atMs <= send.sentAtMs);
  const mayForget = scenario.rates.failover !== undefined || history.replayed.has(before.content);
  const untilMs = marked === undefined || mayForget ? send.sentAtMs : marked;
  return history.disturbances.find(
    (it) => !used.has(it) && concerns(it, [before, send]) && isWithin(it, before.sentAtMs - 2 * leaseMs, untilMs),
  );
}

const NEVER = Number.POSITIVE_INFINITY;

function laterArrival(
  inOrder: readonly Written[],
  event: Written,
  places: ReadonlyMap<string, number>,
): Written | undefined {
  return inOrder.find(({ sequence, content }) => sequence > event.sequence && places.has(content));
}

/** The unit of order: a key at a destination. */
export function lineOf(simulation: Simulation, { key, type }: Pick<Written, "key" | "type">): string {
  return `${key} at ${destinationOf(simulation, type)}`;
}

export function destinationOf(simulation: Simulation, type: string): string {
  const { routes } = simulation.scenario;
  return routes.find(({ types }) => types[0] === "*" || types[0]![0] === type[0])!.destination;
}

function brokerOf(simulation: Simulation, event: Written | Send): BrokerOptions | undefined {
  const { scenario, world } = simulation;
  const written = world.history.written.find(({ content }) => content === event.content);
  return written && scenario.brokers.find(({ name }) => name === destinationOf(simulation, written.type));
}

function concerns({ process }: Disturbance, sends: readonly Send[]): boolean {
  return process === null || sends.some((send) => send.process === process);
}

function isWithin(disturbance: Disturbance, fromMs: number, untilMs: number): boolean {
  return disturbance.untilMs >= fromMs && disturbance.atMs <= untilMs;
}
