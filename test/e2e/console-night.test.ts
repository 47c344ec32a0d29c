import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { openBrowser } from "../servers/chromium.ts";
import { assertWithin } from "../servers/pace.ts";
import { type Receiver, startReceiver } from "../servers/receiver.ts";
import { until } from "../servers/until.ts";
import { signIn } from "./console-page.ts";
import { type ConsoleStage, consoleStage, type Judge, startJudge, TOKENS } from "./console-stage.ts";
import { serverOfFile } from "./service-stage.ts";

const DELIVERED = 100_000;
const TABLES = ["shop.outbox", "crm.outbox", "billing.outbox"];
const SLOW_MS = 3_000;
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

const server = serverOfFile();

describe("the work of a night, in a real browser, beside 300,000 events", () => {
  let browser: Browser;
  let stage: ConsoleStage;
  let mail: Judge;
  let erp: Judge;
  let hook: Receiver;

  before(async () => {
    browser = await openBrowser();
    [mail, erp, hook] = await Promise.all([startJudge(), startJudge(), startReceiver()]);
    const destinations = { mail: { url: mail.origin }, erp: { url: erp.origin } };
    const routes = [{ types: ["mail.*"], destination: "mail" }, { destination: "erp" }];
    const settings = {
      OUTBOX_DESTINATIONS: JSON.stringify(destinations),
      OUTBOX_ROUTES: JSON.stringify(routes),
      NOTIFY_WEBHOOK_URL: hook.url,
      NOTIFY_INTERVAL: "10s",
      RECORD_DELIVERED: "100",
      TRACE_URL: "https://tempo.example/trace/{traceId}",
    };
    stage = await consoleStage(server(), settings, TABLES);
    for (const table of TABLES) {
      await stage.sql(
        `insert into ${table} (id, aggregate_id, event_type, payload, published)
         select 'old ' || n, 'key ' || n % 5000, 'order.placed', '{}', true from generate_series(1, $1::int) n`,
        [DELIVERED],
      );
    }
    await stage.service.becomes("healthy");
  });
  after(async () => {
    await browser?.close();
    await stage?.[Symbol.asyncDispose]();
    await Promise.all([mail?.[Symbol.asyncDispose](), erp?.[Symbol.asyncDispose](), hook?.[Symbol.asyncDispose]()]);
  });

  const insert = async (count: number, type: string, prefix: string) => {
    for (const table of TABLES) {
      await stage.sql(
        `insert into ${table} (id, aggregate_id, event_type, payload, headers, correlation_id)
         select $2 || n, $2 || 'key ' || n, $3, json_build_object('number', n)::text, $4::jsonb, $2 || 'corr'
         from generate_series(1, $1::int) n`,
        [count, prefix, type, JSON.stringify({ traceparent: `00-${TRACE}-00f067aa0ba902b7-01` })],
      );
    }
  };

  /**
   * Sends until it is known that the receiver is usually quick: the first requests of a busy machine take long. Returns how
   * many events it took.
   */
  const usualPace = async () => {
    let rounds = 0;
    await until("it is known what is usual", async () => {
      rounds += 1;
      await insert(20, "order.placed", `usual ${rounds} `);
      await until("they have arrived", () => erp.taken.length >= TABLES.length * 20 * rounds);
      const { json } = await stage.api("/overview");
      const { destinations } = json as {
        destinations: { destination: string; answers: { lastFiveMinutes: { p50Ms: number | null } } | null }[];
      };
      const answers = destinations.find(({ destination }) => destination === "erp")?.answers;
      return (answers?.lastFiveMinutes.p50Ms ?? SLOW_MS) < SLOW_MS / 10;
    });
    return erp.taken.length;
  };

  test("F3 the slow destination is found from the overview, and one click stops all that leads there", async () => {
    await insert(20, "mail.sent", "quick ");
    const usual = await usualPace();
    erp.delayMs = SLOW_MS;
    await insert(200, "order.placed", "slow ");
    await using it = await signIn(browser, stage.address, TOKENS.operator);
    const { page } = it;
    const beganMs = performance.now();
    await page.getByRole("article").filter({ hasText: "erp" }).getByText("slow", { exact: true }).waitFor();
    await page.getByRole("link", { name: "erp", exact: true }).click();
    await page.getByRole("button", { name: "Pause 3 pipelines" }).click();
    await page.getByText("erp: 3 pipelines paused.").waitFor();
    const tookMs = performance.now() - beganMs;
    await assertWithin(tookMs, 60_000, "the way from the first look to the pause");
    await page.getByText("Paused by olaf").waitFor();
    await until("nothing more is sent there", async () => {
      const { json } = await stage.api("/overview");
      const seen = (json as { destinations: { destination: string; state: string }[] }).destinations;
      return seen.find(({ destination }) => destination === "erp")?.state === "paused";
    });
    await insert(5, "mail.sent", "later ");
    await until("the other destination goes on", () => mail.taken.length === TABLES.length * 25);
    assert.deepEqual(await it.barriers(), []);
    await insert(5, "order.placed", "held ");
    await it.goTo("#/events?q=destination:erp+state:pending");
    await page.getByRole("table", { name: "Events" }).getByText("crm.outbox->erp is paused").first().waitFor();
    await it.goTo(`#/events/${encodeURIComponent("held 1")}?source=crm.outbox`);
    await page.getByText("Waiting: crm.outbox->erp is paused.").waitFor();
    await page.getByRole("link", { name: "Show the destination" }).click();
    erp.delayMs = 0;
    await page.getByRole("button", { name: "Resume 3 pipelines" }).click();
    await until("all has arrived", () => erp.taken.length >= usual + TABLES.length * 205);
    assert.deepEqual(it.complaints, []);
  });

  test("F3 one error over two destinations is patched and replayed; the canary stops it where only one is mended", async () => {
    mail.refusal = "no customer";
    erp.refusal = "no customer";
    const before = hook.requests.length;
    await insert(4, "mail.sent", "bad mail ");
    await insert(4, "order.placed", "bad order ");
    const events = TABLES.length * 8;
    await until("all are dead", async () => (await stage.dead()) === events);
    const noticed = () => hook.requests.slice(before).map(({ body }) => body.toString());
    const ofLetters = /"type":"outbox-relay\.[a-z-]+".*new dead letters/;
    // Parked keys may be noticed before the dead letters have been counted.
    await until("the webhook was told", () => noticed().some((notice) => ofLetters.test(notice)));
    const notices = noticed();
    assert.doesNotMatch(notices.join(), /no customer|bad |corr/, "nothing of an event, and no reason");

    mail.refusal = null;
    await using it = await signIn(browser, stage.address, TOKENS.operator, "#/dead-letters");
    const { page } = it;
    await page.getByRole("button", { name: `Plan to patch all ${events}` }).click();
    await page.getByLabel("Patch, as JSON").fill('{"customer": {"id": "4711"}}');
    await page.getByRole("dialog").getByLabel("Reason").fill("the id was missing");
    await page.getByRole("button", { name: "Create the plan" }).click();
    await page
      .getByRole("region", { name: /^Changes to/ })
      .first()
      .waitFor();
    assert.deepEqual(await it.barriers(), []);
    const run = async (button: string) => {
      await page.getByRole("button", { name: button }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
    };
    await run("Run the plan");
    await page.locator("h1 .badge", { hasText: "stopped" }).waitFor();
    const arrived = mail.taken.filter(({ key }) => key.startsWith("bad ")).length;
    assert.ok(arrived <= TABLES.length, `${arrived} went before the canary of the other destination`);
    assert.ok((await stage.dead()) >= events - arrived - TABLES.length);

    erp.refusal = null;
    await page.getByRole("button", { name: "Continue", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
    await page.locator("h1 .badge", { hasText: "done" }).waitFor();

    await it.goTo(`#/events/${encodeURIComponent("bad mail 1")}?source=shop.outbox`);
    await page.getByRole("region", { name: "Changes to the payload" }).getByText('+     "id": "4711"').waitFor();
    assert.equal(
      await page.getByRole("link", { name: "Open the trace" }).getAttribute("href"),
      `https://tempo.example/trace/${TRACE}`,
    );
    await page.getByRole("link", { name: "Timeline" }).click();
    const steps = page.getByRole("table", { name: "Timeline, oldest first" });
    await steps.getByText("delivered").first().waitFor();
    const told = await steps.innerText();
    for (const source of TABLES) assert.match(told, new RegExp(source.replace(".", "\\.")));
    for (const what of ["written", "dead", "422"]) assert.ok(told.includes(what), what);
    assert.deepEqual(await it.barriers(), []);
    assert.deepEqual(it.complaints, []);
  });
});
