import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { openBrowser } from "../servers/chromium.ts";
import { until } from "../servers/until.ts";
import { signIn } from "./console-page.ts";
import { type ConsoleStage, consoleStage, startJudge, TOKENS } from "./console-stage.ts";
import { runCommand } from "./service-process.ts";
import { serverOfFile } from "./service-stage.ts";

const TABLES = ["shop.outbox", "crm.outbox", "billing.outbox"];

/** As a change of the routes leaves it: with one event that failed for good. */
const ORPHAN = "shop.outbox->old";
const ORPHANED = `
insert into outbox_relay.pipelines (name, source_schema, source_table, lanes, delivery, service)
  select '${ORPHAN}', source_schema, source_table, lanes, delivery, service from outbox_relay.pipelines
  where name = 'shop.outbox->erp';
insert into shop.outbox (id, aggregate_id, event_type, payload, published)
  values ('left', 'left', 'order.placed', '{}', true);
insert into outbox_relay.failed_events (pipeline, original_event_id, source_schema, source_table, event_type, event_key,
    payload, failure_reason)
  values ('${ORPHAN}', 'left', 'shop', 'outbox', 'order.placed', 'left', '{}', 'no such customer')`;

const server = serverOfFile();

describe("every list, in a real browser", () => {
  let browser: Browser;
  let stage: ConsoleStage;
  let judges: Awaited<ReturnType<typeof startJudge>>[];

  before(async () => {
    browser = await openBrowser();
    judges = await Promise.all([startJudge(), startJudge()]);
    const [mail, erp] = judges;
    stage = await consoleStage(
      server(),
      {
        OUTBOX_DESTINATIONS: JSON.stringify({ mail: { url: mail?.origin }, erp: { url: erp?.origin } }),
        OUTBOX_ROUTES: JSON.stringify([{ types: ["mail.*"], destination: "mail" }, { destination: "erp" }]),
      },
      TABLES,
    );
    await stage.service.becomes("healthy");
  });
  after(async () => {
    await browser?.close();
    await stage?.[Symbol.asyncDispose]();
    for (const judge of judges ?? []) await judge[Symbol.asyncDispose]();
  });

  const pausedNow = async () =>
    (await stage.sql<{ name: string }>("select name from outbox_relay.pipelines where paused_at is not null")).map(
      ({ name }) => name,
    );

  test("H1 F3: pipelines are filtered by the address, chosen together, and paused, limited and resumed in one step", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/pipelines?q=erp");
    const { page } = it;
    const rows = page.getByRole("list", { name: "Pipelines" }).locator("> li");
    await until("those to erp are shown", async () => (await rows.count()) === TABLES.length);
    await page.getByRole("link", { name: "shop.outbox->erp" }).click();
    await page.waitForURL((url) => /q=erp/.test(url.hash) && /open=shop/.test(url.hash));
    await page.getByLabel("Select all shown").check();
    await page.getByLabel("Select crm.outbox->erp").uncheck();
    await page.getByRole("button", { name: "Pause 2 pipelines" }).click();
    await page.getByRole("dialog").getByLabel("Reason").fill("a deploy");
    await page.getByRole("dialog").getByRole("button", { name: "Pause", exact: true }).click();
    await until("both are paused", async () => (await pausedNow()).length === 2);
    assert.deepEqual((await pausedNow()).toSorted(), ["billing.outbox->erp", "shop.outbox->erp"]);

    await page.getByLabel("State").selectOption("paused");
    await page.waitForURL(/state=paused/);
    await until("the paused ones are shown", async () => (await rows.count()) === 2);
    await page.locator("summary", { hasText: "Views" }).click();
    await page.getByLabel("Name of the view").fill("stopped");
    await page.getByRole("button", { name: "Save" }).click();
    await it.go("#/instances");
    await page.locator("summary", { hasText: "Views" }).click();
    await page.getByRole("link", { name: "stopped" }).click();
    await until("the view shows them again", async () => (await rows.count()) === 2);
    await page.getByLabel("Select all shown").check();
    await page.getByRole("button", { name: "Limit 2 pipelines" }).click();
    await page.getByRole("dialog").getByLabel("Events per second").fill("50");
    await page.getByRole("dialog").getByRole("button", { name: "Set the limit" }).click();
    await until("both have a limit", async () => {
      return (await stage.sql("select from outbox_relay.pipelines where limit_per_second = 50")).length === 2;
    });
    await page.getByLabel("Select all shown").check();
    await page.getByRole("button", { name: "Resume 2 pipelines" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
    await until("none is paused", async () => (await pausedNow()).length === 0);
    const { json } = await stage.api("/audit?action=pause");
    assert.match(JSON.stringify(json), /"actor":"olaf","via":"console".*a deploy/);
    assert.deepEqual(it.complaints, []);
  });

  test("H1 F3: a pipeline that is no longer configured is forgotten, once it was shown what that gives up", async () => {
    await stage.sql(ORPHANED);
    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/pipelines?q=old");
    const { page } = it;
    await page.getByRole("list", { name: "Pipelines" }).getByText("no longer configured").waitFor();
    await page.getByRole("button", { name: `Forget ${ORPHAN}` }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Given up: 1 dead letter is discarded").waitFor();
    await dialog.getByLabel("Reason").fill("renamed");
    await dialog.getByRole("button", { name: "Forget it and give up its events" }).click();
    await page.getByText(`Removed ${ORPHAN}`).waitFor();
    assert.deepEqual(await stage.sql(`select from outbox_relay.pipelines where name = '${ORPHAN}'`), []);
    const { json } = await stage.api("/audit?action=pipeline-forget");
    assert.match(JSON.stringify(json), /"actor":"olaf","via":"console".*"reason":"renamed"/);
    assert.equal(await stage.dead(), 0);
    assert.deepEqual(it.complaints, []);
  });

  test("H1 G4: the bulk route changes all the pipelines it names, or none", async () => {
    const [known] = TABLES.map((table) => `${table}->mail`);
    const wrong = await stage.api("/pipelines/bulk", { action: "pause", pipelines: [known, "no->where"] });
    assert.deepEqual([wrong.status, await pausedNow()], [404, []]);
    assert.equal((await stage.api("/pipelines/bulk", { action: "limit", pipelines: [known] })).status, 400);
    const cleared = await stage.api("/pipelines/bulk", { action: "limit", pipelines: [known], perSecond: null });
    assert.equal(cleared.status, 200);
  });

  test("H1 F3: destinations are filtered by the address, and several are paused together", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/destinations?q=er");
    const { page } = it;
    const tiles = page.getByRole("article");
    await until("erp alone is shown", async () => (await tiles.count()) === 1);
    await page.getByLabel("Destinations whose name contains").fill("");
    await page.keyboard.press("Enter");
    await until("both are shown", async () => (await tiles.count()) === 2);
    await page.getByLabel("Select all shown").check();
    await page.getByRole("button", { name: "Pause 2 destinations" }).click();
    await until("all are paused", async () => (await pausedNow()).length === 2 * TABLES.length);
    await page.getByLabel("Select all shown").check();
    await page.getByRole("button", { name: "Resume 2 destinations" }).click();
    await until("none is paused", async () => (await pausedNow()).length === 0);
    assert.deepEqual(it.complaints, []);
  });

  test("F3: one limit on the page of a destination holds for all its pipelines, and ends there", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/destinations/erp");
    const { page } = it;
    const limited = async () =>
      (await stage.sql("select from outbox_relay.pipelines where limit_per_second = 40 and name like '%->erp'")).length;
    const setLimit = async (perSecond: string) => {
      await page.getByRole("button", { name: "Limit", exact: true }).click();
      await page.getByRole("dialog").getByLabel("Events per second, for each pipeline and relay").fill(perSecond);
      await page.getByRole("dialog").getByRole("button", { name: "Set the limit" }).click();
    };
    await setLimit("40");
    await page.getByText("Limited by olaf to 40 events per second for each of 3 pipelines").waitFor();
    assert.equal(await limited(), TABLES.length);
    await setLimit("");
    await until("none is limited", async () => (await limited()) === 0);
    assert.deepEqual(it.complaints, []);
  });

  test("H1 F3: instances are filtered by the address", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.viewer, "#/instances");
    const { page } = it;
    const rows = page.getByRole("table", { name: "Relays" }).locator("tbody tr");
    await until("the relay is shown", async () => (await rows.count()) === 1);
    const name = (await rows.first().locator("td").first().innerText()).trim();
    await page.getByLabel("Instances whose name or id contains").fill("no such relay");
    await page.keyboard.press("Enter");
    await page.getByText("No instances match").waitFor();
    await it.goTo(`#/instances?q=${encodeURIComponent(name.toUpperCase())}&pipeline=crm.outbox-%3Eerp`);
    await until("it is found by its name", async () => (await rows.count()) === 1);
    assert.deepEqual(it.complaints, []);
  });

  test("H1 F3: the audit is read by a range of time, in the console, the API and the command", async () => {
    const found = async (query: string) => {
      const { json, status } = await stage.api(`/audit?${query}`);
      return status === 200 ? (json as { entries: unknown[] }).entries.length : status;
    };
    assert.ok((await found("since=1h")) > 0);
    assert.deepEqual([await found("until=1h"), await found("since=yesterday")], [0, 400]);
    const audit = (...args: string[]) => runCommand(["audit", ...args, "-o", "json"], stage.env);
    const before = await audit("--until", "1h");
    assert.deepEqual([before.code, (JSON.parse(before.stdout) as { entries: unknown[] }).entries], [0, []]);
    assert.match((await audit("--since", "yesterday")).stderr, /not a time/);

    await using it = await signIn(browser, stage.address, TOKENS.viewer, "#/audit?until=1h");
    const { page } = it;
    await page.getByText("No audit entries match").waitFor();
    await page.locator("summary", { hasText: "Until 1h ago" }).click();
    await page.getByRole("button", { name: "Last hour" }).click();
    await page.waitForURL(/#\/audit\?since=1h$/);
    await page.getByRole("table", { name: "Audit" }).locator("tbody tr").first().waitFor();
    assert.deepEqual(it.complaints, []);
  });

  test("H1 F3: plans are filtered by the address, chosen together and cancelled", async () => {
    for (const judge of judges) judge.refusal = "no such customer 4711";
    for (const [n, table] of TABLES.entries()) {
      await stage.sql(
        `insert into ${table} (id, aggregate_id, event_type, payload) values ($1, $1, 'order.placed', '{"number": 1}')`,
        [`refused ${n}`],
      );
    }
    await until("they are dead", async () => (await stage.dead()) === TABLES.length);
    for (const [n, reason] of ["first", "second", "third"].entries()) {
      const made = await stage.api("/replays", { ids: [`refused ${n}`], reason: `the ${reason} plan` });
      assert.equal(made.status, 201, JSON.stringify(made.json));
    }
    const discard = { action: "discard", all: true, reason: "test data" };
    assert.equal((await stage.api("/replays", discard)).status, 201);

    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/replays?action=replay");
    const { page } = it;
    const rows = page.getByRole("table", { name: "Replay plans" }).locator("tbody tr");
    await until("the replays are shown", async () => (await rows.count()) === 3);
    await page.getByLabel("Plans whose id, filter, reason or author contains").fill("THIRD plan");
    await page.keyboard.press("Enter");
    await page.waitForURL(/q=THIRD/);
    await until("one is found", async () => (await rows.count()) === 1);
    await page.goBack();
    await until("all replays again", async () => (await rows.count()) === 3);
    await page.getByLabel("Select all shown").check();
    await page.getByRole("button", { name: "Cancel 3 plans" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel 3 plans" }).click();
    const states = async () =>
      (await stage.sql<{ state: string }>("select state from outbox_relay.replay_plans order by created_at"))
        .map(({ state }) => state)
        .join();
    await until("three are cancelled", async () => (await states()) === "cancelled,cancelled,cancelled,planned");
    await page.getByLabel("State").selectOption("planned");
    await page.getByText("No plans match").waitFor();
    await it.goTo("#/replays?state=planned");
    await until("the other one is left", async () => (await rows.count()) === 1);
    assert.deepEqual(it.complaints, []);
  });

  test("H1 F3: errors are chosen together and become one plan, and a filter names several of them", async () => {
    const refusals = ["the box is full", "closed on Sundays"] as const;
    for (const [n, judge] of judges.entries()) judge.refusal = refusals[n] ?? null;
    await stage.sql(`insert into shop.outbox (id, aggregate_id, event_type, payload)
      values ('to mail', 'to mail', 'mail.sent', '{}'), ('to erp', 'to erp', 'order.placed', '{}')`);
    await until("they are dead", async () => (await stage.dead()) === TABLES.length + 2);

    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/dead-letters");
    const { page } = it;
    const rows = page.getByRole("table", { name: "Errors, most frequent first" }).locator("tbody tr");
    await until("each error is one row", async () => (await rows.count()) === 3);
    for (const refusal of refusals) await rows.filter({ hasText: refusal }).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Plan to replay all 2" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Create the plan" }).click();
    await page.waitForURL(/#\/replays\//);
    await page.getByRole("heading", { name: "Replay of 2 events" }).waitFor();

    const { groups } = (await stage.api("/dead-letters/groups")).json as { groups: { group: string; count: number }[] };
    const named = groups.flatMap(({ count, group }) => (count === 1 ? [group] : []));
    for (const [filter, path] of [
      [`group:${named.join()}`, "/events"],
      [`group:${named.map((group) => group.slice(0, 8)).join()}`, "/dead-letters"],
    ] as const) {
      const { json } = await stage.api(`${path}?q=${filter}`);
      const ids = JSON.stringify(json)
        .match(/"id":"[^"]+"/g)
        ?.toSorted();
      assert.deepEqual(ids, ['"id":"to erp"', '"id":"to mail"'], `${path}?q=${filter}`);
    }
    assert.equal((await stage.api(`/dead-letters?q=group:${named[0]},`)).status, 404);
    assert.deepEqual(it.complaints, []);
  });
});
