import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import type { z } from "zod";
import type { overviewSchema } from "../../src/http/schemas/overview.ts";
import type { TopSnapshot } from "../../src/operations/overview/top-meter.ts";
import type { Status } from "../../src/operations/pipelines/status.ts";
import { openBrowser } from "../servers/chromium.ts";
import { freePort } from "../servers/free-port.ts";
import { type Receiver, startReceiver } from "../servers/receiver.ts";
import { until, untilEqual } from "../servers/until.ts";
import { openConsole } from "./console-page.ts";
import { runCommand, type ServiceProcess, startService } from "./service-process.ts";
import { serverOfFile } from "./service-stage.ts";
import { openStage, type Stage } from "./stage.ts";

const server = serverOfFile();

type Overview = z.output<typeof overviewSchema>;

const SOURCE = "crm.outbox";

/** What a surface says of one pipeline: events pending, behind a dead letter, and dead. */
type Counts = readonly [pending: number | null, behindDead: number | null, dead: number];
type Told = Readonly<Record<string, Counts>>;

/** One table, three routes: one whose events may be refused, one to a receiver that wants them later, one that takes everything. */
async function openCrm(receiver: Receiver, database: string): Promise<{ stage: Stage; env: Record<string, string> }> {
  const stage = await openStage(server(), { database, tables: [] });
  await stage.sql(`create schema crm;
    create table ${SOURCE} (id uuid primary key default gen_random_uuid(), position bigint generated always as identity,
      event_name text not null, aggregate_id text, payload text not null default '{}', headers jsonb not null default '{}',
      status text not null default 'Pending', attempts int not null default 0, next_attempt_at timestamptz,
      occurred_at timestamptz not null default clock_timestamp());
    create index on ${SOURCE} (position) where status = 'Pending';
    grant usage on schema crm to ${stage.role};
    grant select, update on ${SOURCE} to ${stage.role}`);
  const destinations = { out: { url: "stdout:" }, web: { url: receiver.url }, audits: { url: "discard:" } };
  const routes = [
    { types: "order.*", destination: "out", topic: "{header:tenant}.{type}" },
    { types: "mail.*", destination: "web", retry: { initialDelay: "1h", maxDelay: "1h" } },
    { types: "audit.*", destination: "audits" },
  ];
  const env = {
    DATABASE_URL: stage.relayUrl,
    OUTBOX_SCHEMAS: "crm",
    OUTBOX_DESTINATIONS: JSON.stringify(destinations),
    OUTBOX_ROUTES: JSON.stringify(routes),
    POLL_INTERVAL_MS: "100",
    NO_COLOR: "1",
    PORT: String(await freePort()),
  };
  return { stage, env };
}

/**
 * Dead: a1 and b1, which have no tenant. Behind them: a2, a3, b2. Retried in an hour: mails, also one of the dead letter's
 * key; one more is parked behind them. Pending: an audit that is scheduled for tomorrow. Unrouted, for half an hour: two of
 * a type that no route knows, one of them of the dead letter's key.
 */
async function write({ sql }: Stage): Promise<void> {
  await sql(`insert into ${SOURCE} (event_name, aggregate_id, headers, next_attempt_at, occurred_at)
    select name, key, headers::jsonb, next_at, clock_timestamp() - age from (values
      ('order.placed', 'a', '{}', null::timestamptz, interval '0'), ('order.paid', 'a', '{"tenant": "t"}', null, '0'),
      ('order.sent', 'a', '{"tenant": "t"}', null, '0'), ('order.placed', 'b', '{}', null, '0'),
      ('order.paid', 'b', '{"tenant": "t"}', null, '0'), ('order.placed', 'c', '{"tenant": "t"}', null, '0'),
      ('mail.welcome', 'x', '{}', null, '0'), ('mail.welcome', 'y', '{}', null, '0'), ('mail.bye', 'a', '{}', null, '0'),
      ('mail.bye', 'x', '{}', null, '0'),
      ('audit.login', 'u', '{}', null, '1 hour'), ('audit.purge', 'v', '{}', now() + interval '1 day', '1 hour'),
      ('strange.thing', 'a', '{}', null, '30 minutes'), ('strange.thing', 'z', '{}', null, '30 minutes')
    ) events (name, key, headers, next_at, age)`);
}

/** The truth, in plain SQL. */
async function bySql({ sql }: Stage): Promise<Told> {
  const rows = await sql<{ name: string; counts: [number, number, number] }>(`
    with dead as (select event_key as key from outbox_relay.failed_events where resolved_at is null),
    waiting as (select split_part(event_name, '.', 1) as kind, aggregate_id as key from ${SOURCE} where status = 'Pending')
    select p.name, array[
      (select count(*) from waiting w where w.kind = p.kind and not (p.kind = 'order' and w.key in (select key from dead))),
      (select count(*) from waiting w where w.kind = p.kind and p.kind = 'order' and w.key in (select key from dead)),
      (select count(*) from outbox_relay.failed_events f where f.pipeline = p.name and f.resolved_at is null)]::int[] as counts
    from (values ('${SOURCE}->out', 'order'), ('${SOURCE}->web', 'mail'), ('${SOURCE}->audits', 'audit'),
      ('unrouted', 'strange')) p (name, kind)`);
  return Object.fromEntries(rows.map(({ counts, name }) => [name, counts]));
}

/** How many events have each state, by what the table and the relay's holds say. */
async function statesBySql({ sql }: Stage): Promise<Readonly<Record<string, number>>> {
  const rows = await sql<{ state: string; count: number }>(`
    with holds as (select h.*, split_part(o.event_name, '.', 1) as kind from outbox_relay.holds h
      join ${SOURCE} o on o.id::text = h.event_id)
    select case when o.status = 'Dispatched' then 'delivered' when o.status = 'Failed' then 'dead'
        when exists (select from holds h where h.event_id = o.id::text) then 'retrying'
        when split_part(event_name, '.', 1) not in ('order', 'mail', 'audit') then 'unrouted'
        when exists (select from holds h where h.event_key = o.aggregate_id
          and h.kind = split_part(o.event_name, '.', 1)) then 'parked'
        else 'pending' end as state, count(*)::int as count
    from ${SOURCE} o group by 1 order by 1`);
  return Object.fromEntries(rows.map(({ count, state }) => [state, count]));
}

const PIPELINES = ["out", "web", "audits"].map((destination) => `${SOURCE}->${destination}`);

const ofStatus = ({ pipelines, unrouted }: Pick<Status, "pipelines" | "unrouted">): Told => ({
  ...Object.fromEntries(pipelines.map((it) => [it.pipeline, [it.pending, it.behindDeadLetters, it.deadLetters]])),
  unrouted: [unrouted.reduce((sum, { events }) => sum + events, 0), 0, 0],
});

const ofOverview = ({ destinations, unrouted }: Overview): Told => ({
  ...Object.fromEntries(
    destinations.map((it) => [it.pipelines[0], [it.pending, it.behindDeadLetters, it.deadLetters]]),
  ),
  unrouted: [unrouted, 0, 0],
});

function ofMetrics(text: string): Told {
  const value = (name: string, labels: string) => {
    const found = text.split("\n").filter((line) => line.startsWith(`outbox_relay_${name}{${labels}} `));
    assert.equal(found.length, 1, `${name}{${labels}} in\n${text}`);
    return Number(found[0]!.split(" ").at(-1));
  };
  const of = (destination: string, state: string) =>
    value("pending_events", `source="${SOURCE}",destination="${destination}",state="${state}"`);
  return {
    ...Object.fromEntries(
      PIPELINES.map((name) => {
        const destination = name.split("->")[1]!;
        return [name, [of(destination, "pending"), of(destination, "behind_dead"), of(destination, "dead")]];
      }),
    ),
    unrouted: [value("unrouted_events", `source="${SOURCE}"`), 0, 0],
  };
}

const published = (text: string) =>
  text
    .split("\n")
    .filter((line) => line.startsWith("outbox_relay_events_published_total{"))
    .sort();

const json = async <T>(running: ServiceProcess, path: string) => JSON.parse((await running.get(path)).body) as T;

describe("what waits, as every surface tells it", () => {
  let browser: Browser;
  before(async () => {
    browser = await openBrowser();
  });
  after(() => browser?.close());

  test("H1 A11 A13 G4: status, top, API, overview, metrics, health and console say the same as SQL, route by route", async () => {
    await using receiver = await startReceiver();
    receiver.manner = 409;
    const { env, stage } = await openCrm(receiver, "counts");
    await using it = stage;
    await using running = startService(["run"], env);
    await running.becomes("healthy");
    await write(it);
    await until("the rest is delivered or dead", async () => {
      const [left] = await it.sql<{
        done: number;
        dead: number;
        retrying: number;
      }>(`select count(*) filter (where status = 'Dispatched')::int as done,
        count(*) filter (where status = 'Failed')::int as dead,
        (select count(*)::int from outbox_relay.holds where state = 'retrying') as retrying from ${SOURCE}`);
      return left?.done === 2 && left.dead === 2 && left.retrying === 3;
    });
    const truth = await bySql(it);
    assert.deepEqual(truth, {
      [`${SOURCE}->out`]: [0, 3, 2],
      [`${SOURCE}->web`]: [4, 0, 0],
      [`${SOURCE}->audits`]: [1, 0, 0],
      unrouted: [2, 0, 0],
    });

    const [status, top] = await Promise.all([
      runCommand(["status", "-o", "json"], env),
      runCommand(["top", "-o", "json"], env),
    ]);
    const told = JSON.parse(status.stdout) as Status;
    assert.deepEqual(ofStatus(told), truth, "status");
    const shown = JSON.parse(top.stdout) as TopSnapshot;
    assert.deepEqual(ofStatus(shown as never), truth, "top");
    assert.deepEqual([shown.pending, shown.behindDeadLetters, shown.deadLetters], [5, 3, 2], "top, all together");
    // The running service remembers its counts for some seconds.
    await untilEqual("API", async () => ofStatus(await json<Status>(running, "/api/v1/status")), truth);
    const overview = () => json<Overview>(running, "/api/v1/overview");
    await untilEqual("overview", async () => ofOverview(await overview()), truth);
    const { behindDeadLetters, isEstimate } = await overview();
    assert.deepEqual([behindDeadLetters, isEstimate], [3, false]);
    await untilEqual("metrics", async () => ofMetrics((await running.get("/metrics")).body), truth);
    const healthCounts = async () => {
      const health = (await running.get("/health")).json();
      const { unpublishedEventCount, behindDeadLetterCount, deadLetterCount, unroutedEventCount } = health;
      return [unpublishedEventCount, behindDeadLetterCount, deadLetterCount, unroutedEventCount];
    };
    await untilEqual("health", healthCounts, [5, 3, 2, 2]);
    assert.deepEqual(
      [status.code, told.problems],
      [
        3,
        [
          `${SOURCE}->out has 2 dead letters, and 3 events wait behind them`,
          `${SOURCE} has 2 events that no route matches`,
        ],
      ],
      "nobody is late: the old events are unrouted or scheduled",
    );
    await listsAgree(it, env, running);
    await consoleAgrees(browser, env.PORT!, truth);
    await keepsCounting(running);

    running.kill("SIGTERM");
    assert.equal((await running.ended).code, 0);
    const left = JSON.parse((await runCommand(["status", "-o", "json"], env)).stdout) as Status;
    assert.deepEqual(ofStatus(left), truth, "status while no relay runs");
  });

  test("H1 A11: a number of unrouted events that is an estimate is marked as one, wherever it is shown", async () => {
    await using receiver = await startReceiver();
    const { env, stage } = await openCrm(receiver, "estimates");
    await using it = stage;
    await it.sql(`insert into ${SOURCE} (event_name) select 'strange.thing' from generate_series(1, 12000);
      analyze ${SOURCE}`);
    await using running = startService(["run"], env);
    await running.becomes("healthy");
    const overview = () => json<Overview>(running, "/api/v1/overview");
    await until("it is counted", async () => ((await overview()).unrouted ?? 0) > 10_000);
    const [status, top, health, metrics] = await Promise.all([
      runCommand(["status"], env),
      runCommand(["top", "--once"], env),
      running.get("/health"),
      running.get("/metrics"),
    ]);
    assert.match(status.stdout, /^crm\.outbox +unrouted .*about 1\d{4}\b/m);
    assert.match(status.stdout, /crm\.outbox has about 1\d{4} events that no route matches/);
    assert.match(top.stdout, /~1\d,\d{3} unrouted/);
    assert.match(top.stdout, /^crm\.outbox +unrouted +- +~1\d,\d{3} /m);
    assert.deepEqual([health.json().isUnroutedEstimate, (await overview()).isUnroutedEstimate], [true, true]);
    assert.match(metrics.body, /^outbox_relay_unrouted_estimated\{source="crm\.outbox"\} 1$/m);
    await using shown = await openConsole(browser, `http://127.0.0.1:${env.PORT}`);
    await shown.go("#/");
    assert.match(await shown.page.innerText(".tiles"), /Unrouted\s+≈ 1\d(?:\.\d)?k/i);
  });
});

interface Listed {
  readonly state: string;
  readonly pipeline: string | null;
}

/** The lists of events and keys: a key that is parked in one pipeline goes on in the others. */
async function listsAgree(stage: Stage, env: Record<string, string>, running: ServiceProcess): Promise<void> {
  const states = await statesBySql(stage);
  assert.deepEqual(states, { dead: 2, delivered: 2, parked: 4, pending: 1, retrying: 3, unrouted: 2 });
  const listed = async (state: string) => {
    const [{ events }, { stdout }] = await Promise.all([
      json<{ events: readonly Listed[] }>(running, `/api/v1/events?q=state:${state}`),
      runCommand(["events", "list", `state:${state}`, "-o", "json"], env),
    ]);
    return { events, told: (JSON.parse(stdout) as { events: readonly Listed[] }).events };
  };
  const lists = Object.entries(states).map(async ([state, count]) => ({ state, count, ...(await listed(state)) }));
  for (const { count, events, state, told } of await Promise.all(lists)) {
    assert.deepEqual([events.length, told.length], [count, count], `events that are ${state}`);
    assert.ok(
      [...events, ...told].every((it) => it.state === state && (it.pipeline === null) === (state === "unrouted")),
    );
  }
  const all = (await json<{ events: readonly Listed[] }>(running, "/api/v1/events")).events;
  const counted = Object.entries(Object.groupBy(all, ({ state }) => state)).map(([state, of]) => [state, of?.length]);
  assert.deepEqual(Object.fromEntries(counted), states, "the list without a filter");
  const [scheduled] = all.filter(({ state }) => state === "pending") as readonly { readonly waitsFor?: string }[];
  assert.equal(scheduled?.waitsFor, "scheduled");
  const byDestination = await Promise.all(
    ["out", "web", "audits"].map(async (destination) => {
      const q = `q=destination:${destination}`;
      const { events } = await json<{ events: readonly Listed[] }>(running, `/api/v1/events?${q}`);
      const letters = await json<{ deadLetters: readonly unknown[] }>(running, `/api/v1/dead-letters?${q}`);
      return [events.length, letters.deadLetters.length];
    }),
  );
  assert.deepEqual(
    byDestination,
    [
      [6, 2],
      [4, 0],
      [2, 0],
    ],
    "events and dead letters by destination",
  );
  const misspelt = await runCommand(["events", "list", "destination:wob"], env);
  assert.match(misspelt.stderr, /No pipeline leads to the destination "wob"\. Destinations: audits, out, web\./);
  const { stdout } = await runCommand(["keys", "list", "-o", "json"], env);
  const { keys } = JSON.parse(stdout) as {
    keys: readonly { pipeline: string; key: string; waiting: { count: number } }[];
  };
  const waiting = keys.map(({ key, pipeline, waiting: { count } }) => `${key} of ${pipeline.split("->")[1]}: ${count}`);
  assert.deepEqual(waiting, ["a of out: 2", "b of out: 1", "a of web: 0", "x of web: 1", "y of web: 0"]);
  const nowhere = await runCommand(["keys", "list", "--pipeline", "nowhere"], env);
  assert.equal(nowhere.code, 4);
  assert.match(nowhere.stderr, /no pipeline, source or schema named nowhere; pipelines: crm\.outbox->audits, /);
}

async function consoleAgrees(browser: Browser, port: string, truth: Told): Promise<void> {
  await using shown = await openConsole(browser, `http://127.0.0.1:${port}`);
  await shown.go("#/pipelines");
  const rows = (await shown.page.evaluate(`[...document.querySelectorAll(".pipelines > li")].map((row) => [
    row.querySelector("h2").textContent.trim(),
    Object.fromEntries([...row.querySelectorAll(".figures > div")].map((it) =>
      [it.querySelector("dt").textContent, it.querySelector("dd").textContent]))])`)) as [
    string,
    Record<string, string>,
  ][];
  const figures = Object.fromEntries(rows);
  for (const pipeline of PIPELINES) {
    const of = figures[pipeline] ?? {};
    const counts = [of.pending, of["behind dead letters"], of.dead].map(Number);
    assert.deepEqual(counts, truth[pipeline], `the console's ${pipeline}`);
  }
  assert.equal(figures[SOURCE]?.unrouted, "2");
  assert.deepEqual(
    await shown.page.evaluate(`[...document.querySelectorAll(".pipelines .figures > div")]
    .filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.innerText)`),
    [],
    "figures that overlap the next",
  );
  // What the doctor finds about events without a route is said once, in their own row.
  await shown.page.getByRole("region", { name: `Findings about unrouted events of ${SOURCE}` }).waitFor();
  assert.equal(await shown.page.getByText("that no running relay handles").count(), 1);
  await shown.go("#/");
  const tiles = await shown.page.innerText(".tiles");
  assert.match(tiles, /3 events wait behind them/);
  assert.doesNotMatch(tiles, /nothing waits/);
  for (const pipeline of PIPELINES) {
    const [pending, behind, dead] = truth[pipeline]!;
    await shown.go(`#/destinations/${pipeline.split("->")[1]}`);
    const of = await shown.page.innerText(".tiles");
    assert.match(
      of,
      new RegExp(`Pending\\s+${pending}\\s+${behind === 0 ? "none" : `${behind} more`} behind dead letters`),
    );
    assert.match(of, new RegExp(`Dead letters\\s+${dead}\\s`));
  }
}

/** A counter that begins again would look like a restart that there was none. */
async function keepsCounting(running: ServiceProcess): Promise<void> {
  const before = published((await running.get("/metrics")).body);
  assert.ok(
    before.some((line) => / [1-9]/.test(line)),
    before.join("\n"),
  );
  running.kill("SIGHUP");
  await until("the tables are read anew", () => running.logs(({ message }) => message === "reading").length === 2);
  assert.deepEqual(published((await running.get("/metrics")).body), before);
}
