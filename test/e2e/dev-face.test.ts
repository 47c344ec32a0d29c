import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import type { Browser } from "playwright-core";
import { openBrowser } from "../servers/chromium.ts";
import { freePort } from "../servers/free-port.ts";
import { assertWithin } from "../servers/pace.ts";
import { until, untilEqual } from "../servers/until.ts";
import { type ConsolePage, openConsole } from "./console-page.ts";
import { type DevProcess, startDev } from "./dev-process.ts";

const READY_MS_MAX = 10_000;

describe("the dev face in a real browser", () => {
  let dev: DevProcess;
  let browser: Browser;
  let it: ConsolePage;
  let taken: Server;
  let port: number;
  let visitors = 0;

  const press = (name: string) => it.page.getByRole("button", { name, exact: true }).click();
  const throwSwitch = (fault: string) => it.page.click(`[data-fault="${fault}"]`);
  const figure = async (name: string) => {
    const text = (await it.page.textContent(`[data-figure="${name}"] dd`)) ?? "";
    return Number(text.replaceAll(/\D/g, ""));
  };
  const untilState = (what: string, fits: (state: Awaited<ReturnType<DevProcess["state"]>>) => boolean) =>
    until(what, async () => fits(await dev.state()));

  before(async () => {
    port = await freePort();
    taken = createServer((socket) => {
      visitors += 1;
      socket.destroy();
    }).listen(port, "127.0.0.1");
    // As they may stand in anybody's shell: the demo must not send its events and logs there.
    const there = `127.0.0.1:${port}`;
    dev = startDev(port, [], {
      KAFKA_BROKERS: there,
      LOKI_HOST: `http://${there}`,
      DATABASE_URL: `postgres://${there}/x`,
    });
    browser = await openBrowser();
  });
  after(async () => {
    await browser?.close();
    await dev?.[Symbol.asyncDispose]();
    taken?.close();
  });

  test("G1 F6 npm start answers on /health and / within ten seconds, on the next port when its own is taken", async (t) => {
    const address = await dev.address();
    assert.ok(Number(new URL(address).port) > port, `${address} is beyond ${port}`);
    await until("health is good", async () => (await (await dev.get("/health")).text()).includes('"healthy"'));
    const answer = await dev.get("/");
    const tookMs = performance.now() - dev.startedMs;
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get("content-security-policy") ?? "", /script-src 'self'/);
    t.diagnostic(`ready after ${Math.round(tookMs)} ms`);
    await assertWithin(tookMs, READY_MS_MAX, "getting ready");
    assert.match(await (await dev.get("/metrics")).text(), /outbox_relay_events_published_total/);
    await until("it says so", () => /ready in \d/.test(dev.output()));
    assert.ok(dev.output().startsWith(`outbox-relay dev: ${address}\n`), "the address comes first");
    assert.equal(dev.output().includes("\u001b"), false, "no colours where there is no terminal");
  });

  test("F6 the console opens on it and shows events arriving from four services", async () => {
    it = await openConsole(browser, await dev.address());
    await it.go("");
    await until("events arrive", async () => (await figure("arrived")) > 0);
    const before = await figure("arrived");
    await until("more arrive", async () => (await figure("arrived")) > before + 10);
    await it.go("#/pipelines");
    const shown = await it.page.innerText("main");
    for (const source of ["orders.outbox", "billing.outbox_events", "payments.openoutbox_events", "shipping.outbox"]) {
      assert.ok(shown.includes(source), `${source} is shown`);
    }
    assert.deepEqual(it.complaints, []);
  });

  test("F6 a destination that is down: the circuit opens, the backlog grows, and drains when it is back", async () => {
    await press("Faults");
    await throwSwitch("down");
    await untilState("the circuit opens", ({ destination }) => destination.circuit !== null);
    await untilState("the backlog grows", ({ flow }) => (flow?.waiting ?? 0) > 40);
    await it.page.waitForSelector('[data-fault="down"][aria-checked="true"]');
    await throwSwitch("down");
    await untilState("it takes events", ({ destination }) => destination.circuit === null);
    await untilState("the backlog drains", ({ flow }) => (flow?.waiting ?? 99) < 20 && (flow?.lagMs ?? 0) < 1_000);
    const { lost, outOfOrder } = (await dev.state()).destination;
    assert.deepEqual([lost, outOfOrder], [0, 0]);
    assert.deepEqual([await figure("lost"), await figure("out-of-order")], [0, 0]);
  });

  test("F6 F3 a database that is stopped: the console says so and goes on by itself when it is back", async () => {
    await throwSwitch("database");
    await it.page.waitForSelector('[data-fault="database"][aria-checked="true"]');
    await it.page.getByRole("link", { name: "Events", exact: true }).first().click();
    await it.page.waitForSelector('[role="alert"]');
    await until("it names the database", async () => /database/i.test(await it.page.innerText(".content")));
    const before = (await dev.state()).destination.arrived;
    await throwSwitch("database");
    await untilState("events arrive again", ({ destination }) => destination.arrived > before + 20);
    await it.page.waitForSelector(".outage-bar", { state: "detached" });
    await it.page.waitForSelector("main table tbody tr");
    const { destination } = await dev.state();
    assert.deepEqual([destination.lost, destination.outOfOrder], [0, 0]);
  });

  test("F6 a killed relay: the console stays, and another relay goes on; nothing is lost and nothing out of order", async () => {
    const [relay] = (await dev.state()).relays;
    await press("Burst");
    await press("Kill the relay");
    // Another one is started after seconds.
    await until("the death is seen", async () => {
      const health = await dev.get("/health");
      return health.status === 503 && (await codeOf(health)) === "RELAY_GONE";
    });
    await it.page.reload();
    await it.page.waitForSelector(".demo");
    await untilState("another relay runs", ({ relays }) => relays[0]?.state === "running");
    assert.notEqual((await dev.state()).relays[0]?.pid, relay?.pid);
    await press("Fix");
    await throwSwitch("traffic");
    const dead = await untilState(
      "the burst has arrived, and only what is dead and what is behind it waits",
      ({ destination }) => destination.arrived > 10_000 && destination.outstanding <= 3,
    );
    assert.ok(dead);
    await throwSwitch("traffic");
    await until("the page shows the burst", async () => (await figure("arrived")) > 10_000);
    assert.deepEqual([await figure("lost"), await figure("out-of-order")], [0, 0]);
  });

  test("F6 a second relay takes its share of the lanes, and hands them back when it is switched off", async () => {
    await throwSwitch("second");
    await untilState("it has its share", ({ relays }) => relays[1]?.lanes === 10);
    await throwSwitch("second");
    await untilState("it is gone", ({ relays }) => relays[1]?.state === "stopped");
    await untilState("all lanes are with the first", ({ relays }) => relays[0]?.lanes === 20);
    assert.equal(await figure("out-of-order"), 0);
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
  });

  test("H1 F6 no server of the shell's variables hears of the demo, and its database asks for a password", async () => {
    assert.match(dev.output(), /KAFKA_BROKERS, LOKI_HOST are set and not used.*--external/);
    assert.deepEqual([visitors, (await dev.state()).destination.broker], [0, null]);
    const url = new URL(/database: (postgres:\S+)/.exec(dev.output())?.[1] ?? "");
    const refusal = async (change: (to: URL) => void) => {
      const to = new URL(url);
      change(to);
      const client = new pg.Client({ connectionString: to.href });
      try {
        await client.connect();
        return null;
      } catch (error) {
        const { code, message } = error as { code?: string; message: string };
        return code ?? message;
      } finally {
        await client.end();
      }
    };
    assert.equal(await refusal(() => {}), null, "as printed");
    for (const name of ["postgres", "outbox_relay_demo"]) {
      const guessed = await refusal((to) => Object.assign(to, { username: name, password: "guess" }));
      assert.equal(guessed, "28P01", name);
      const none = await refusal((to) => Object.assign(to, { username: name, password: "" }));
      assert.match(String(none), /password/, name);
    }
  });

  test("G1 SIGTERM ends it with exit code 0 while the console is open, and no process and no folder is left", async () => {
    const [relay] = (await dev.state()).relays;
    assert.ok(dev.companions().length > 1, "the database and its guard run");
    assert.equal(await dev.end("SIGTERM"), 0);
    await untilEqual("no process is left", () => dev.companions(), []);
    await until("the relay has ended", () => isGone(relay!.pid!));
    await untilEqual("no folder is left", () => readdirSync(dev.scratch.path), []);
    await it.page.waitForSelector('[role="alert"]');
  });
});

test("F6 with a broker configured the demo names it and keeps its faults; killed by force, it leaves nothing", async () => {
  await using dev = startDev(await freePort(), ["--no-traffic", "--external"], {
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
  await untilEqual("no folder is left", () => readdirSync(dev.scratch.path), []);
});

test("G1 F6 what cannot work is told in a line, with exit code 2 and nothing started", async () => {
  const outputOf = async (args: readonly string[], env: Readonly<Record<string, string>>) => {
    await using dev = startDev(await freePort(), args, env);
    const code = await dev.end("SIGCONT");
    assert.equal(code, 2);
    await untilEqual("no process is left", () => dev.companions(), []);
    return dev.output();
  };
  assert.match(await outputOf(["--external"], { KAFKA_BROKERS: "a b" }), /KAFKA_BROKERS/);
  assert.match(await outputOf([], { TMPDIR: "/proc/nothing" }), /Set TMPDIR to a writable folder/);
  assert.match(await outputOf(["--port", "70000"], {}), /a whole number from 1 to 65535/);
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
  return ((await answer.json()) as { code: string }).code;
}
