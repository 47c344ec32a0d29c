import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { openBrowser } from "../servers/chromium.ts";
import { freePort } from "../servers/free-port.ts";
import { until } from "../servers/until.ts";
import { type ConsolePage, openConsole, SIZES, sideScroll } from "./console-page.ts";
import { type DevProcess, startDev } from "./dev-process.ts";

describe("the console of npm start in a real browser", () => {
  let dev: DevProcess;
  let browser: Browser;

  before(async () => {
    dev = startDev(await freePort(), []);
    browser = await openBrowser();
    await until("it is ready", () => /ready in \d/.test(dev.output()));
  });
  after(async () => {
    await browser?.close();
    await dev?.[Symbol.asyncDispose]();
  });

  test("F3 F6 G1 G4: the guided first minute from break to replay", async () => {
    await using it = await openConsole(browser, await dev.address());
    const { page } = it;
    const isDone = (name: string) => page.waitForSelector(`.demo-guide li.done:has-text("${name}")`);
    await it.go("");
    await isDone("Watch");

    await page.getByRole("button", { name: "Write a poison event" }).click();
    await isDone("Break it");
    await until("it is dead", async () => (await dev.state()).tour.deadLetters === 2);

    await guideLink(it, "Dead letters").click();
    await isDone("See it");
    const errors = page.getByRole("table", { name: "Errors, most frequent first" });
    await errors.getByRole("link", { name: "rejects an event without an amount" }).click();
    await page.getByRole("table", { name: "Dead letters" }).getByRole("link", { name: "invoice.issued" }).click();
    await page.getByRole("heading", { name: "invoice.issued" }).waitFor();
    assert.match(await page.innerText("main"), /the receiver rejects an event without an amount/);

    await page.getByRole("button", { name: "Fix the destination" }).click();
    await isDone("Fix it");

    await guideLink(it, "Dead letters").click();
    await page.getByRole("button", { name: "Plan to replay all 2" }).click();
    await page.getByRole("dialog").getByLabel("Reason").fill("the receiver was mended");
    await page.getByRole("button", { name: "Create the plan" }).click();
    await page.getByText("This plan has not run yet.").waitFor();
    assert.match(await page.innerText("main"), /payment\.refunded[\s\S]*billing\.outbox_events/);
    assert.equal((await dev.state()).tour.deadLetters, 2, "the dry run has changed nothing");

    await page.getByRole("button", { name: "Run the plan" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
    await page.locator("h1 .badge", { hasText: "done" }).waitFor();
    await isDone("Replay it");
    await page.getByText("That was the first minute").waitFor();

    await page.getByRole("button", { name: "Faults" }).click();
    await page.click('[data-fault="traffic"]');
    await until("all that was written has arrived", async () => (await dev.state()).destination.outstanding === 0);
    await page.click('[data-fault="traffic"]');
    const { lost, outOfOrder, repeated } = (await dev.state()).destination;
    assert.deepEqual({ lost, outOfOrder, repeated }, { lost: 0, outOfOrder: 0, repeated: 0 });
    assert.deepEqual(it.complaints, []);
  });

  test("F3 F6: every screen in both themes, wide and on a phone: no error, no barrier, no side scroll", async () => {
    await using it = await openConsole(browser, await dev.address());
    await it.go("");
    // Something dead, something parked, something planned: nothing is more accessible than an empty screen.
    await it.page.getByRole("button", { name: "Faults" }).click();
    await it.page.getByRole("button", { name: "Poison event", exact: true }).click();
    await until("it is dead", async () => (await dev.state()).tour.deadLetters === 1);
    const flaws: string[] = [];
    for (const hash of await screens(await dev.address())) {
      await it.go(hash);
      for (const theme of ["light", "dark"] as const) {
        await it.page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
        for (const [size, viewport] of Object.entries(SIZES)) {
          await it.page.setViewportSize(viewport);
          const wide = await sideScroll(it.page);
          if (wide !== null) flaws.push(`${hash} ${size} is too wide: ${wide}`);
          const rules = RULES[`${theme} ${size}`];
          for (const barrier of rules === undefined ? [] : await it.barriers(rules))
            flaws.push(`${hash} ${theme} ${size} ${barrier}`);
        }
      }
    }
    assert.deepEqual(flaws, []);
    assert.deepEqual(it.complaints, []);
  });
});

/** All rules at both widths, the contrast in both themes: the rest depends on one of them alone, and takes long. */
const RULES: Readonly<Record<string, "all" | "contrast">> = {
  "light desktop": "all",
  "dark desktop": "contrast",
  "light phone": "contrast",
  "dark phone": "all",
};

/** In the guide, not in the navigation. */
function guideLink({ page }: ConsolePage, name: string) {
  return page.locator(".demo-guide").getByRole("link", { name });
}

async function screens(address: string): Promise<readonly string[]> {
  const get = async <T>(path: string) => (await (await fetch(`${address}/api/v1${path}`)).json()) as T;
  const { events } = await get<{ events: { id: string; source: string }[] }>("/events?q=state:dead");
  const { plans } = await get<{ plans: { id: string }[] }>("/replays");
  const [event] = events;
  assert.ok(event !== undefined && plans[0] !== undefined, "there is something to look at");
  return [
    "#/",
    "#/pipelines",
    "#/subscribers",
    "#/instances",
    "#/events",
    `#/events/${encodeURIComponent(event.id)}?source=${encodeURIComponent(event.source)}`,
    "#/dead-letters",
    "#/dead-letters?view=letters",
    "#/keys",
    "#/replays",
    `#/replays/${plans[0].id}`,
    "#/audit",
    "#/settings",
  ];
}
