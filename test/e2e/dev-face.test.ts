import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { openBrowser } from "../servers/chromium.ts";
import { freePort } from "../servers/free-port.ts";
import { until } from "../servers/until.ts";
import { type DevProcess, startDev } from "./dev-process.ts";

const READY_MS_MAX = 10_000;

describe("the dev face in a real browser", () => {
  let dev: DevProcess;
  let browser: Browser;
  let page: Page;
  let taken: Server;
  let port: number;
  const complaints: string[] = [];

  const text = async (id: string) => (await page.textContent(`#${id}`)) ?? "";
  const number = async (id: string) => Number((await text(id)).replaceAll(",", ""));
  const shows = (what: string, id: string, fits: (shown: string) => boolean) =>
    until(`the page shows ${what}`, async () => fits(await text(id)));
  const press = (name: string) => page.click(`[data-switch="${name}"], [data-act="${name}"]`);

  before(async () => {
    port = await freePort();
    taken = createServer().listen(port, "127.0.0.1");
    dev = startDev(port, []);
    browser = await openBrowser();
    page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(error.message));
  });
  after(async () => {
    await browser?.close();
    await dev?.[Symbol.asyncDispose]();
    taken?.close();
  });

  test("G1 F6 npm start answers on /health and / within ten seconds, on the next port when its own is taken", async (t) => {
    const address = await dev.address();
    assert.ok(Number(new URL(address).port) > port, `${address} is beyond ${port}`);
    await until("health is good", async () => (await (await fetch(`${address}/health`)).text()).includes('"healthy"'));
    const answer = await fetch(`${address}/`);
    const tookMs = performance.now() - dev.startedMs;
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get("content-security-policy") ?? "", /script-src 'self'/);
    t.diagnostic(`ready after ${Math.round(tookMs)} ms`);
    assert.ok(tookMs < READY_MS_MAX, `ready after ${Math.round(tookMs)} ms`);
    assert.match(await (await fetch(`${address}/metrics`)).text(), /outbox_relay_events_published_total/);
    await until("it says so", () => /ready in \d/.test(dev.output()));
    assert.ok(dev.output().startsWith(`outbox-relay dev: ${address}\n`), "the address comes first");
    assert.equal(dev.output().includes("\u001b"), false, "no colours where there is no terminal");
  });

  test("F6 the page shows events flowing from three services", async () => {
    await page.goto(await dev.address());
    await shows("deliveries", "delivered", (shown) => Number(shown) > 0);
    const before = await number("delivered");
    await shows("more deliveries", "delivered", (shown) => Number(shown.replaceAll(",", "")) > before + 10);
    assert.equal(await page.locator("#source-rows tr").count(), 3);
    assert.ok((await page.locator("#message-rows tr").count()) > 3);
    assert.match(await text("relay-pill"), /^relay \d+ alive/);
  });

  test("F6 a destination that is down: the circuit opens, the backlog grows, and drains when it is back", async () => {
    await press("down");
    await shows("the open circuit", "destination-pill", (shown) => shown.includes("circuit open"));
    await until("the backlog grows", async () => (await number("waiting")) > 40);
    assert.match(await text("lag"), /^\d\.\d s$/);
    assert.equal(await page.getAttribute('[data-switch="down"]', "aria-checked"), "true");
    await press("down");
    await shows("that it takes events", "destination-pill", (shown) => shown.includes("takes events"));
    await until("the backlog drains", async () => (await number("waiting")) < 20);
    await until("the lag falls", async () => (await text("lag")).endsWith(" ms"));
  });

  test("F6 a poison event is a dead letter with its reason, and arrives when the destination is mended and it is replayed", async () => {
    await press("poison");
    const letter = page.locator('#failure-list li[data-state="dead"]');
    await letter.waitFor();
    assert.match((await letter.textContent()) ?? "", /invoice\.issued of poison-1 .*refuses an invoice/);
    await shows("what waits behind it", "failure-count", (shown) => shown === "1 dead, 2 parked behind them");
    await press("mended");
    await letter.getByRole("button", { name: "Replay" }).click();
    await shows("no failure any more", "failure-count", (shown) => shown === "");
    await until("the key goes on", async () => (await page.textContent("#journal"))?.includes("was put back"));
  });

  test("F6 a killed relay is seen dead, then alive again; nothing is lost and nothing out of order", async () => {
    const [relay] = (await dev.state()).relays;
    await press("burst");
    await press("kill");
    await shows("the death", "relay-pill", (shown) => shown.startsWith("relay dead"));
    const health = await fetch(`${await dev.address()}/health`);
    assert.deepEqual([health.status, await codeOf(health)], [503, "RELAY_GONE"]);
    await shows("another relay", "relay-pill", (shown) => /^relay \d+ alive .*killed once$/.test(shown));
    assert.notEqual((await dev.state()).relays[0]?.pid, relay?.pid);
    await until("the backlog drains", async () => (await number("waiting")) < 20);
    await until("the lag falls", async () => (await text("lag")).endsWith(" ms"));
    await press("traffic");
    await until("every event that was written has arrived", async () => {
      const { destination } = await dev.state();
      return destination.outstanding === 0;
    });
    await press("traffic");
    assert.deepEqual([await number("lost"), await number("out-of-order")], [0, 0]);
    assert.ok((await number("delivered")) > 10_000, "the burst was delivered");
  });

  test("F6 a second relay takes its share of the lanes, and hands them back when it is switched off", async () => {
    await press("second");
    await shows("its share", "second-pill", (shown) => /^second relay \d+ alive .* 6 lanes$/.test(shown));
    await press("second");
    await until("it is gone", async () => (await dev.state()).relays[1]?.state === "stopped");
    await shows("all lanes with the first", "relay-pill", (shown) => shown.includes("12 lanes"));
    assert.equal(await number("out-of-order"), 0);
  });

  test("F6 what it does not know is refused with the names that it knows; other sites may not ask", async () => {
    const ask = async (body: object, headers: Record<string, string> = {}) => {
      const init = {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      };
      return await fetch(`${await dev.address()}/dev/faults`, init);
    };
    const unknown = await ask({ fault: "dwon", on: true });
    assert.deepEqual([unknown.status, (await unknown.text()).includes("'down'")], [400, true]);
    assert.equal((await ask({ fault: "kill" }, { origin: "http://elsewhere.example" })).status, 403);
    assert.deepEqual(
      complaints.filter((complaint) => !complaint.includes("503")),
      [],
    );
  });

  test("G1 SIGTERM ends it with exit code 0 while the page is open, and no process and no folder is left", async () => {
    const [relay] = (await dev.state()).relays;
    assert.ok(dev.companions().length > 1, "the database and its guard run");
    assert.equal(await dev.end("SIGTERM"), 0);
    assert.deepEqual(dev.companions(), []);
    assert.ok(isGone(relay!.pid!));
    assert.deepEqual(readdirSync(dev.scratch.path), []);
    await shows("that it is gone", "relay-pill", (shown) => shown === "not connected");
  });
});

test("F6 with a broker configured the page names it and keeps its faults; killed by force, it leaves nothing", async () => {
  await using dev = startDev(await freePort(), ["--no-traffic"], {
    KAFKA_BROKERS: "127.0.0.1:1",
    DELIVERY: "at-least-once",
  });
  await until("it is ready", () => /ready in \d/.test(dev.output()));
  const { destination, relays } = await dev.state();
  assert.equal(destination.broker, "kafka at 127.0.0.1:1");
  const asked = await fetch(`${await dev.address()}/dev/faults`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ fault: "down", on: true }),
  });
  assert.deepEqual([asked.status, await codeOf(asked)], [409, "UNAVAILABLE"]);
  await dev.end("SIGKILL");
  await until("its processes end", () => dev.companions().length === 0);
  await until("its relay ends", () => isGone(relays[0]!.pid!));
  assert.deepEqual(readdirSync(dev.scratch.path), []);
});

test("G1 F6 what cannot work is told in a line, with exit code 2 and nothing started", async () => {
  const told = async (args: readonly string[], env: Readonly<Record<string, string>>) => {
    await using dev = startDev(await freePort(), args, env);
    const code = await dev.end("SIGCONT");
    assert.deepEqual([code, dev.companions()], [2, []]);
    return dev.output();
  };
  assert.match(await told([], { KAFKA_BROKERS: "a b" }), /KAFKA_BROKERS/);
  assert.match(await told([], { TMPDIR: "/proc/nothing" }), /Set TMPDIR to one that can/);
  assert.match(await told(["--port", "70000"], {}), /a whole number from 1 to 65535/);
});

/** What nobody has buried yet has no command line either. */
function isGone(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8") === "";
  } catch {
    return true;
  }
}

async function codeOf(answer: Response): Promise<string> {
  return ((await answer.json()) as { error: { code: string } }).error.code;
}
