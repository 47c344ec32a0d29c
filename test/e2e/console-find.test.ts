import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { openBrowser } from "../servers/chromium.ts";
import { until } from "../servers/until.ts";
import { signIn } from "./console-page.ts";
import { type ConsoleStage, TOKENS } from "./console-stage.ts";
import { longStage } from "./long-stage.ts";
import { serverOfFile } from "./service-stage.ts";

/** The first is found by its key, the second by its payload. */
const REFUSED = [204_711, 204_712] as const;

const server = serverOfFile();

describe("with 300,000 events, in a real browser", () => {
  let browser: Browser;
  let stage: ConsoleStage;

  before(async () => {
    browser = await openBrowser();
    stage = await longStage(server(), REFUSED);
  });
  after(async () => {
    await browser?.close();
    await stage?.[Symbol.asyncDispose]();
  });

  test("F3 H1: why one order did not arrive is found from its bare number in at most three steps", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/events");
    const { page } = it;
    const rows = page.getByRole("table", { name: "Events" }).locator("tbody tr");
    const search = async (text: string) => {
      await page.getByRole("combobox", { name: "Filter events" }).fill(text);
      await page.keyboard.press("Enter");
      await page.waitForURL(new RegExp(`q=${text}`));
      await it.settled();
    };
    // 1: its number; 2: the one row, which says it already.
    await search("204711");
    await until("it is found", async () => (await rows.count()) === 1);
    assert.match(await rows.innerText(), /dead[\s\S]*order-204711[\s\S]*422/);
    await rows.getByRole("link").first().click();
    await page.locator(".notice.bad .reason", { hasText: "422" }).waitFor();

    // 1: its number; 2: look in payloads; 3: the row.
    await it.goTo("#/events");
    await search("204712");
    await page.getByRole("link", { name: "Search payloads" }).click();
    await until("it is found", async () => (await rows.count()) === 1);
    await rows.getByRole("link").first().click();
    await page.locator(".notice.bad .reason", { hasText: "422" }).waitFor();

    // The others of its correlation were delivered before anybody recorded it: the timeline says so all the same.
    await it.goTo(`#/correlations/trace-${Math.floor(REFUSED[0] / 3)}`);
    const steps = page.getByRole("table", { name: "Timeline, oldest first" }).locator("tbody tr");
    await until("all three are written", async () => (await steps.filter({ hasText: "written" }).count()) === 3);
    assert.equal(await steps.filter({ hasText: "written" }).filter({ hasText: "delivered" }).count(), 1);

    for (const filter of ["error:422", "payload.order:204712", "header:tenant=tenant-11+state:dead", "key:*204711"]) {
      await it.goTo(`#/events?q=${filter}`);
      await until(`${filter} finds it`, async () => /422/.test((await rows.allInnerTexts()).join()));
    }
    assert.deepEqual(it.complaints, []);
  });

  test("F3 G4: a view is saved and opened, times follow the zone, chosen events become a plan, back leads back", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/events?q=state:dead");
    const { page } = it;
    const rows = page.getByRole("table", { name: "Events" }).locator("tbody tr");
    await page.locator("summary", { hasText: "Views" }).click();
    await page.getByLabel("Name of the view").fill("dead ones");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("link", { name: "dead ones" }).waitFor();

    await page.locator("summary", { hasText: "Any time" }).click();
    await page.getByLabel("Time zone").selectOption("Asia/Tokyo");
    await page.locator("summary", { hasText: "Any time" }).click();
    await page.getByLabel("From").fill("2020-01-01T09:00");
    await page.keyboard.press("Tab");
    await page.waitForURL((url) => decodeURIComponent(url.hash).includes('since:"2020-01-01T00:00:00.000Z"'));
    await page.getByRole("button", { name: "Last 15 minutes" }).click();
    await page.waitForURL(/since:15m/);
    await page.goBack();
    await page.goBack();
    await page.waitForURL(/q=state:dead$/);
    await it.go("#/keys");
    await page.locator("summary", { hasText: "Views" }).click();
    await page.getByRole("link", { name: "dead ones" }).click();
    await page.waitForURL(/#\/events\?q=state:dead$/);
    await until("both are listed", async () => (await rows.count()) === REFUSED.length);

    await page.getByLabel("Select all shown").check();
    await page.getByRole("button", { name: "Plan to replay 2 events" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Create the plan" }).click();
    await page.waitForURL(/#\/replays\//);
    assert.deepEqual(it.complaints, []);
  });

  test("F3 G4: an export has every row, is streamed, ends with its reader, and is for those who may see payloads", async () => {
    const ask = async (query: string, token: string, signal?: AbortSignal) =>
      await fetch(`${stage.address}/api/v1/${query}`, {
        headers: { authorization: `Bearer ${token}` },
        ...(signal === undefined ? {} : { signal }),
      });
    const dead = await ask("events/export?q=state:dead&format=ndjson", TOKENS.operator);
    assert.match(dead.headers.get("content-disposition") ?? "", /attachment; filename="events-.*\.ndjson"/);
    const lines = (await dead.text()).trim().split("\n");
    const named = lines.map((line) => (JSON.parse(line) as { id: string }).id).toSorted();
    assert.deepEqual(named, REFUSED.map((n) => `event-${n}`).toSorted());
    const some = await (await ask("events/export?q=key:customer-7&format=csv", TOKENS.operator)).text();
    assert.equal(some.trim().split("\r\n").length, 1, "nothing but the head");
    const letters = await (await ask("dead-letters/export?format=json", TOKENS.operator)).text();
    assert.equal((JSON.parse(letters) as unknown[]).length, REFUSED.length);
    assert.equal((await ask("events/export", TOKENS.viewer)).status, 403);
    assert.equal((await ask("events/export?q=colour:red", TOKENS.operator)).status, 400);

    // More than two at once would take the connections of everybody; who goes away makes room.
    const gone = new AbortController();
    const open = await Promise.all([1, 2].map(() => ask("events/export", TOKENS.operator, gone.signal)));
    assert.deepEqual(
      open.map(({ status }) => status),
      [200, 200],
    );
    assert.equal((await ask("events/export", TOKENS.operator)).status, 429);
    const reader = open[0]?.body?.getReader();
    let read = 0;
    while (read < 1_000_000) read += (await reader?.read())?.value?.length ?? 1_000_000;
    gone.abort();
    await until("there is room again", async () => {
      const again = await ask("events/export?q=state:dead", TOKENS.operator);
      await again.text();
      return again.status === 200;
    });
    const { json } = await stage.api("/audit?action=export");
    assert.match(JSON.stringify(json), /"actor":"olaf".*"action":"export","target":"events"/);
  });
});
