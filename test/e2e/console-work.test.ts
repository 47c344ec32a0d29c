import assert from "node:assert/strict";
import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { openBrowser } from "../servers/chromium.ts";
import { createScratch, type Scratch } from "../servers/scratch.ts";
import { until } from "../servers/until.ts";
import { signIn } from "./console-page.ts";
import { API_TOKENS, type ConsoleStage, consoleStage, TOKENS } from "./console-stage.ts";
import { COMMAND, startService } from "./service-process.ts";
import { serverOfFile } from "./service-stage.ts";

const KEYS = 1_000;

/** Nobody sees the notifications of a browser without a window: they are noted instead. */
const NOTED = `globalThis.noted = [];
globalThis.Notification = class {
  static permission = "default";
  static async requestPermission() { return (this.permission = "granted"); }
  constructor(title, { body }) { noted.push([title, body]); }
};`;

const server = serverOfFile();

describe("work done in the console, in a real browser", () => {
  let browser: Browser;
  let stage: ConsoleStage;
  let scratch: Scratch;
  let tokens: string;

  before(async () => {
    browser = await openBrowser();
    scratch = createScratch("console-work", "disk");
    await symlink(COMMAND, join(scratch.path, "outbox-relay"));
    tokens = join(scratch.path, "tokens");
    await writeFile(tokens, API_TOKENS);
    // What has no tenant has no address, and is dead until somebody gives it one.
    const more = { API_TOKENS_FILE: tokens, TOPIC_TEMPLATE: "{header:tenant}.{type}" };
    stage = await consoleStage(server(), more);
    await stage.service.becomes("healthy");
  });
  after(async () => {
    await browser?.close();
    await stage?.[Symbol.asyncDispose]();
    await scratch?.remove();
  });

  test("F3 F2 G4: a replay of 1,000 parked events from the console keeps every key's order and doubles nothing", async () => {
    await stage.sql(
      `insert into shop.outbox (id, aggregate_id, event_type, payload, headers)
       select 'event ' || n, 'key ' || n % $1, 'order.placed', json_build_object('number', n)::text,
         case when n <= $1 then '{}' else '{"tenant": "acme"}' end::jsonb
       from generate_series(1, 2 * $1::int) n`,
      [KEYS],
    );
    await until("the head of every key is dead", async () => (await stage.dead()) === KEYS);
    assert.deepEqual(stage.judge.taken, [], "what is behind a dead one waits");
    await stage.sql(`update shop.outbox set headers = '{"tenant": "acme"}'`);

    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/dead-letters");
    const { page } = it;
    await page.getByRole("button", { name: "Plan to replay all" }).click();
    await page.getByRole("dialog").getByLabel("Reason").fill("they have their tenant now");
    await page.getByRole("button", { name: "Create the plan" }).click();
    await page.getByRole("button", { name: "Run the plan" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
    await page.locator("h1 .badge", { hasText: "done" }).waitFor();
    await until("what waited behind them has arrived", () => stage.judge.taken.length >= 2 * KEYS);

    const byKey = Map.groupBy(stage.judge.taken, ({ key }) => key);
    const wrong = [...byKey].filter(([, taken]) => {
      const [first = 0, second, ...more] = taken.map(({ number }) => number);
      return second !== first + KEYS || more.length > 0;
    });
    assert.deepEqual([byKey.size, wrong], [KEYS, []], "each key has its two events, once and in order");
    assert.equal(await stage.dead(), 0);
    const { json } = await stage.api("/audit?action=plan-run");
    assert.match(JSON.stringify(json), /"actor":"olaf","via":"console"/);
    assert.deepEqual(it.complaints, []);
  });

  test("G4 G6: what a screen gives to be copied is a command that works", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.operator);
    await it.context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const lines = new Set<string>();
    for (const hash of ["#/", "#/events", "#/dead-letters", "#/keys", "#/replays", "#/audit"]) {
      await it.goTo(hash);
      const button = it.page.getByRole("button", { name: "Copy as CLI" }).first();
      await button.click();
      await it.page.getByRole("button", { name: "Copied" }).first().waitFor();
      lines.add(String(await it.page.evaluate("navigator.clipboard.readText()")));
    }
    assert.equal(lines.size, 6, [...lines].join("\n"));
    const results = await Promise.all(
      [...lines].map(async (line) => {
        await using command = startService(["-c", `PATH=${scratch.path}:$PATH; ${line}`], stage.env, "/bin/sh");
        const { code, stderr } = await command.ended;
        return `${line}: ${code}${code === 0 ? "" : ` ${stderr}`}`;
      }),
    );
    assert.deepEqual(
      results,
      [...lines].map((line) => `${line}: 0`),
    );
  });

  test("F3: a browser that asks for it is notified of new dead letters, without a word of an event", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.viewer);
    const { page } = it;
    await it.context.addInitScript(NOTED);
    await page.reload();
    await it.settled();
    await page.getByRole("button", { name: "Notify me of worse health and new dead letters in this browser" }).click();
    await page.getByText("While a tab of the console is open").waitFor();
    await stage.sql(`insert into shop.outbox (id, aggregate_id, event_type, payload)
      values ('untold', 'untold', 'order.placed', '{}')`);
    // That health is worse can be told before, by itself.
    const noted = await until("the dead letter is told", async () => {
      const all = (await page.evaluate("noted")) as readonly (readonly [title: string, body: string])[];
      return all.some(([, body]) => /1 new dead letter$/.test(body)) && all;
    });
    assert.doesNotMatch(JSON.stringify(noted), /untold|tenant/);
    await page.getByRole("button", { name: "Turn off notifications in this browser" }).click();
    await page.getByText("Notifications are off in this browser.").waitFor();
    assert.deepEqual(it.complaints, []);
  });

  test("G4: a token that is taken away ends the session: the console asks for another one", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.viewer, "#/events");
    await writeFile(tokens, API_TOKENS.split(",").slice(1).join());
    stage.service.kill("SIGHUP");
    await stage.service.logged("the reload", ({ message }) => /settings applied/.test(String(message)));
    await it.page.getByRole("link", { name: "Keys" }).click();
    await it.page.getByLabel("Token").waitFor();
    assert.equal(await it.page.locator("main#main").count(), 0, "nothing of before is left");
    await it.page.getByLabel("Token").fill(TOKENS.viewer);
    await it.page.getByRole("button", { name: "Sign in" }).click();
    await it.page.getByText("wrong").waitFor();
  });
});
