import type { DevProcess } from "../e2e/dev-process.ts";
import { until } from "../servers/until.ts";

/** Enough of the past for the charts. */
const HISTORY_EVENTS = 3_000;
const POISONS = 24;

/** Lets the demo live through some trouble; the screens by name, with their addresses. */
export async function prepareDemo(dev: DevProcess): Promise<ReadonlyMap<string, string>> {
  const address = await dev.address();
  await until("it is ready", () => /ready in \d/.test(dev.output()), 60_000);
  const post = async <T>(path: string, body: object): Promise<T> => {
    const answer = await fetch(`${address}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-outbox-relay-console": "1" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  };
  const get = async <T>(path: string): Promise<T> => (await (await fetch(`${address}/api/v1${path}`)).json()) as T;
  const arrived = (count: number) =>
    until(`${count} events have arrived`, async () => (await dev.state()).destination.arrived > count, 120_000);

  await arrived(HISTORY_EVENTS / 3);
  for (let number = 0; number < POISONS; number += 1) await post("/dev/faults", { fault: "poison" });
  await post("/dev/faults", { fault: "down", on: true });
  await until("a backlog has grown", async () => ((await dev.state()).flow?.waiting ?? 0) > 150, 60_000);
  await post("/dev/faults", { fault: "down", on: false });
  await post("/dev/faults", { fault: "flaky", on: true });
  await arrived((2 * HISTORY_EVENTS) / 3);
  await post("/dev/faults", { fault: "flaky", on: false });
  const pipeline = encodeURIComponent("shipping.outbox@warehouse->warehouse");
  await post(`/api/v1/pipelines/${pipeline}/limit`, { perSecond: 50, reason: "the warehouse moves its database" });
  await post("/dev/faults", { fault: "fix" });
  const done = await post<{ id: string }>("/api/v1/replays", {
    action: "replay",
    subject: "dead",
    q: "type:invoice.issued",
    reason: "the receiver takes invoices without an amount again",
  });
  await post(`/api/v1/replays/${done.id}/run`, {});
  await until("the replay has ended", async () => {
    const plan = await get<{ state: string }>(`/replays/${done.id}`);
    return plan.state === "done";
  });
  for (let number = 0; number < 4; number += 1) await post("/dev/faults", { fault: "poison" });
  await until("they are dead", async () => (await dev.state()).tour.deadLetters >= 5);
  const planned = { action: "replay", subject: "dead", all: true, reason: "all that is left" };
  await post("/api/v1/replays", planned);
  await arrived(HISTORY_EVENTS);
  interface Listed {
    readonly id: string;
    readonly source: string;
    readonly correlationId: string | null;
  }
  const { events } = await get<{ events: Listed[] }>("/events?q=state:dead");
  const dead = events.find(({ source }) => source === "billing.outbox_events") ?? events[0]!;
  return new Map([
    ["overview", "#/"],
    ["pipelines", "#/pipelines"],
    ["destination", "#/destinations/broker"],
    ["subscribers", "#/subscribers"],
    ["instances", "#/instances"],
    ["events", "#/events"],
    ["event", `#/events/${encodeURIComponent(dead.id)}?source=${encodeURIComponent(dead.source)}`],
    ["correlation", `#/correlations/${encodeURIComponent(dead.correlationId ?? "")}`],
    ["dead-letters", "#/dead-letters"],
    ["keys", "#/keys"],
    ["replays", "#/replays"],
    ["replay", `#/replays/${done.id}`],
    ["audit", "#/audit"],
    ["settings", "#/settings"],
  ]);
}
