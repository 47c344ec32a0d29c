// `npm run screenshots`: starts the demo, breaks and mends something so that every screen has something to show, and
// renews docs/images. Run it after a change of the console, and look at what it made.
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Browser } from "playwright-core";
import { type ConsolePage, openConsole } from "../e2e/console-page.ts";
import { type DevProcess, startDev } from "../e2e/dev-process.ts";
import { openBrowser } from "../servers/chromium.ts";
import { freePort } from "../servers/free-port.ts";
import { prepareDemo } from "./prepare.ts";

const IMAGES = resolve(import.meta.dirname, "../../docs/images");
const BYTES_MAX = 250 * 1024;
/** Of these a phone is shown too. */
const ON_A_PHONE = ["overview", "events", "dead-letters", "replay"];

async function main(): Promise<void> {
  await using dev = startDev(await freePort(), ["--rate", "20"]);
  const browser = await openBrowser();
  try {
    const screens = await watched(browser, dev, () => prepareDemo(dev));
    await removeOld();
    for (const theme of ["light", "dark"] as const) {
      await shoot(browser, dev, screens, { theme, size: "desktop", suffix: suffixOf(theme) });
    }
    const main = new Map([...screens].filter(([name]) => ON_A_PHONE.includes(name)));
    await shoot(browser, dev, main, { theme: "light", size: "phone", suffix: "-phone" });
    await firstMinute(browser, dev);
    await checkSizes();
  } finally {
    await browser.close();
    await dev.end("SIGTERM");
  }
}

/** What waits is counted only while somebody looks, so somebody does: else the charts would have little to show. */
async function watched<T>(browser: Browser, dev: DevProcess, work: () => Promise<T>): Promise<T> {
  await using it = await openConsole(browser, await dev.address());
  await it.go("");
  return await work();
}

interface Look {
  readonly theme: "light" | "dark";
  readonly size: "desktop" | "phone";
  readonly suffix: string;
}

async function shoot(browser: Browser, dev: DevProcess, screens: ReadonlyMap<string, string>, look: Look) {
  await using it = await openConsole(browser, await dev.address(), look);
  await it.go("");
  for (const [name, hash] of screens) {
    await it.go(hash);
    await withoutDemo(it);
    await it.page.screenshot({ path: join(IMAGES, `console-${name}${look.suffix}.png`) });
  }
  if (it.complaints.length > 0) process.stderr.write(`${it.complaints.join("\n")}\n`);
}

/** So that the pictures show what everybody has. */
async function withoutDemo({ page }: ConsolePage): Promise<void> {
  await page.waitForSelector(".demo", { state: "attached" });
  await page.evaluate("document.querySelector('.demo').hidden = true");
  await page.evaluate("scrollTo(0, 0)");
}

/** What `npm start` opens on, without and with its faults. */
async function firstMinute(browser: Browser, dev: DevProcess): Promise<void> {
  for (const theme of ["light", "dark"] as const) {
    await using it = await openConsole(browser, await dev.address(), { theme });
    await it.go("");
    await it.page.waitForSelector(".demo");
    await it.page.screenshot({ path: join(IMAGES, `first-minute${suffixOf(theme)}.png`) });
    await it.page.getByRole("button", { name: "Faults" }).click();
    await it.page.waitForSelector(".demo-faults");
    await it.page.screenshot({ path: join(IMAGES, `faults${suffixOf(theme)}.png`) });
  }
}

function suffixOf(theme: Look["theme"]): string {
  return theme === "dark" ? "-dark" : "";
}

async function removeOld(): Promise<void> {
  await mkdir(IMAGES, { recursive: true });
  for (const name of await readdir(IMAGES)) {
    if (/^(?:console-|first-minute|faults).*\.png$/.test(name)) await rm(join(IMAGES, name));
  }
}

async function checkSizes(): Promise<void> {
  for (const name of await readdir(IMAGES)) {
    const { size } = await stat(join(IMAGES, name));
    process.stdout.write(`${name} ${Math.round(size / 1024)} KB\n`);
    if (size > BYTES_MAX) throw new Error(`${name} has ${size} bytes, more than ${BYTES_MAX}`);
  }
}

await main();
