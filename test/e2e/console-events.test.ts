import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { openBrowser } from "../servers/chromium.ts";
import { until } from "../servers/until.ts";
import { signIn } from "./console-page.ts";
import { type ConsoleStage, consoleStage, TOKENS } from "./console-stage.ts";
import { serverOfFile } from "./service-stage.ts";

const KEYS = 6;

const server = serverOfFile();

describe("events, keys and plans in a real browser", () => {
  let browser: Browser;
  let stage: ConsoleStage;

  before(async () => {
    browser = await openBrowser();
    stage = await consoleStage(server());
    stage.judge.refusal = "no amount";
    await stage.service.becomes("healthy");
    // A head and one that waits behind it, for each key.
    await stage.sql(
      `insert into shop.outbox (id, aggregate_id, event_type, payload)
       select 'event-' || n, 'key-' || n % $1, 'order.paid', '{"number": ' || n || ', "amount": 12345678901234567890.10}'
       from generate_series(1, 2 * $1::int) n`,
      [KEYS],
    );
    await until("the head of every key is dead", async () => (await stage.dead()) === KEYS);
  });
  after(async () => {
    await browser?.close();
    await stage?.[Symbol.asyncDispose]();
  });

  test("F3 G4: a filter is suggested word by word, told what is wrong at its place, and rows are walked by keyboard", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/events");
    const { page } = it;
    await page.keyboard.press("/");
    await page.keyboard.type("sta");
    await page.getByRole("option", { name: "state:" }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.keyboard.type("dea");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/events\?q=state:dead$/);
    const rows = page.getByRole("table", { name: "Events" }).locator("tbody tr");
    await until("only dead ones are listed", async () => (await rows.count()) === KEYS);

    await page.getByRole("link", { name: "parked" }).click();
    await page.waitForURL(/state:parked/);
    await until("the others are listed", async () => /waits behind/.test((await rows.allInnerTexts()).join()));
    await page.locator("h1").click();
    await page.keyboard.press("j");
    await page.locator("tr.at a:focus").waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Show the blocking event" }).click();
    await page.getByText("1 event of its key waits behind it").waitFor();

    await it.goTo("#/events?q=state:dead+colour:red");
    assert.equal(await page.locator(".filter-problem mark").innerText(), "colour:red");
    assert.equal(await rows.count(), 0);

    await it.goTo("#/events?q=state:dead");
    await until("they are listed again", async () => (await rows.count()) === KEYS);
    await it.goTo("#/events?q=source:shop.nowhere");
    await page.locator(".error-box").waitFor();
    assert.equal(await rows.count(), 0, "nothing that answers another question stands beside an error");
  });

  test("F3: a tail shows events as they come, holds them back while it is paused, and its state is in the address", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/events?q=type:tail.*&live=1");
    const { page } = it;
    let written = 0;
    const write = async () => {
      written += 1;
      await stage.sql("insert into shop.outbox (id, event_type, payload) values ($1, 'tail.event', '{}')", [
        `t${written}`,
      ]);
    };
    const rows = page.getByRole("table", { name: "Events" }).locator("tbody tr");
    // What is written before the tail has begun is no news to it.
    await until("one is shown", async () => {
      await write();
      const isShown = rows.first().waitFor({ timeout: 2_000 });
      return await isShown.then(
        () => true,
        () => false,
      );
    });
    await page.getByRole("button", { name: "Pause" }).click();
    await page.waitForURL(/live=paused/);
    const shown = await rows.count();
    await write();
    await page.getByRole("button", { name: /^Show \d+ new events?$/ }).waitFor();
    assert.equal(await rows.count(), shown);
    await page.getByRole("button", { name: /^Show \d+ new events?$/ }).click();
    await until("it is shown", async () => (await rows.count()) > shown);
    assert.deepEqual(it.complaints, []);
  });

  test("F3 F2: an event is edited without harm to its numbers and replayed, another is replayed by one click; a key goes on when its head is skipped", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/events/event-1?source=shop.outbox");
    const { page } = it;
    stage.judge.refusal = null;
    await page.getByRole("button", { name: "Edit and replay" }).click();
    const field = page.getByRole("textbox", { name: /^Payload/ });
    assert.match(await field.inputValue(), /12345678901234567890\.10\n/);
    await field.fill((await field.inputValue()).replace('"number": 1,', '"number": 1, "note": "mended",'));
    await inDialog(page, "amounts were wrong", "Save and replay");
    await page.locator("h1 .badge", { hasText: "delivered" }).waitFor();
    const [row] = await stage.sql("select payload from shop.outbox where id = 'event-1'");
    assert.match(String(row?.payload), /"note": "mended",\s+"amount": 12345678901234567890\.10/);

    await it.goTo("#/events/event-3?source=shop.outbox");
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    await page.locator("h1 .badge", { hasText: "delivered" }).waitFor();

    await it.goTo("#/keys");
    await page.getByRole("row", { name: /key-2/ }).getByRole("button", { name: "Skip" }).click();
    await inDialog(page, "it comes by hand", "Skip it");
    await until("what waited has gone out", () => stage.judge.taken.some(({ number }) => number === 2 + KEYS));
    const { json } = await stage.api("/audit?eventId=event-2");
    assert.match(JSON.stringify(json), /"actor":"olaf","via":"console","action":"key-skip".*it comes by hand/);
  });

  test("F3 G4: a plan stops when its error returns, runs once it is mended, and a second operator is told who was faster", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/dead-letters");
    const { page } = it;
    stage.judge.refusal = "no amount";
    const badge = (state: string) => page.locator("h1 .badge", { hasText: state }).waitFor();
    await page.getByRole("button", { name: /^Plan to replay all/ }).click();
    await inDialog(page, "try one", "Create the plan");
    await page.getByText("This plan has not run yet.").waitFor();
    await page.getByRole("button", { name: "Run the plan" }).click();
    await inDialog(page, "", "Run it");
    await badge("stopped");
    assert.match(await page.locator("main").innerText(), /The same error came back|one of the first, failed again/);

    stage.judge.refusal = null;
    await page.getByRole("button", { name: "Continue", exact: true }).click();
    const id = page.url().split("/").at(-1);
    assert.equal((await stage.api(`/replays/${id}/run`, {})).status, 200);
    await inDialog(page, "", "Run it");
    await page
      .getByRole("dialog")
      .getByRole("alert")
      .getByText(/started by ada/)
      .waitFor();
    await page.keyboard.press("Escape");
    await badge("done");
    await until("all but the one that failed have arrived", async () => (await stage.dead()) === 1);
  });
});

/** Gives the reason, where one is asked for, and presses the button. */
async function inDialog(page: Page, reason: string, button: string): Promise<void> {
  const dialog = page.getByRole("dialog");
  if (reason !== "") await dialog.getByLabel("Reason").fill(reason);
  await dialog.getByRole("button", { name: button }).click();
}
