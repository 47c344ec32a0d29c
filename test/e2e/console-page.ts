import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { until } from "../servers/until.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const SIZES = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } } as const;

interface ConsoleOptions {
  readonly size?: keyof typeof SIZES;
  readonly theme?: "light" | "dark";
}

/** Only what never comes is waited for so long. */
const PATIENCE_MS = 120_000;

/** The console in a browser, with whatever it complains about. */
export interface ConsolePage extends AsyncDisposable {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors in the browser's console, errors of scripts, requests that failed, dialogs of the browser. */
  readonly complaints: string[];
  /** Opens the screen and waits until nothing on it is still loading. */
  go(hash: string): Promise<void>;
  /** The same without loading the page anew, as a click does. */
  goTo(hash: string): Promise<void>;
  settled(): Promise<void>;
  /** What axe finds that is serious or worse, as `rule: element`. Of the theme depends the contrast alone. */
  barriers(rules?: "all" | "contrast"): Promise<string[]>;
}

export async function openConsole(
  browser: Browser,
  address: string,
  { size = "desktop", theme = "light" }: ConsoleOptions = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({
    viewport: SIZES[size],
    colorScheme: theme,
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const complaints = complaintsOf(page);
  const settled = () =>
    until("the screen has loaded", () => page.evaluate(isLoaded)).then(
      () => {},
      async (error: Error) => {
        const shown = await page.innerText("body").catch(() => "");
        throw new Error(`${error.message}, at ${page.url()}:\n${shown}`);
      },
    );
  return {
    page,
    context,
    complaints,
    go: async (hash) => {
      await page.goto(`${address}/${hash}`);
      await settled();
    },
    goTo: async (hash) => {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await settled();
    },
    settled,
    barriers: (rules = "all") => barriersOf(page, rules),
    [Symbol.asyncDispose]: () => context.close(),
  };
}

/** With a token, as a person types it. */
export async function signIn(browser: Browser, address: string, token: string, hash = ""): Promise<ConsolePage> {
  const it = await openConsole(browser, address);
  await it.page.goto(`${address}/${hash}`);
  await it.page.getByLabel("Token").fill(token);
  await it.page.getByRole("button", { name: "Sign in" }).click();
  await it.page.waitForSelector("main#main");
  await it.settled();
  return it;
}

function complaintsOf(page: Page): string[] {
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => {
    complaints.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("response", (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()} ${response.url()}`);
  });
  return complaints;
}

/** In the browser. What an address or an answer has begun is there after two frames: until then the screen may be the former one. */
async function isLoaded(): Promise<boolean> {
  const { document, requestAnimationFrame, setTimeout } = globalThis as unknown as {
    readonly document: { querySelector(selector: string): unknown };
    requestAnimationFrame(run: () => void): void;
    setTimeout(run: () => void): void;
  };
  await new Promise<void>((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve))); // why: frames are what is awaited
  });
  const has = (selector: string) => document.querySelector(selector) !== null;
  return has("#console h1") && !has(".skeleton, [aria-busy=true]");
}

interface AxeResult {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[];
}

const ALL_RULES = '{ resultTypes: ["violations"], preload: false }';
const CONTRAST = '{ resultTypes: ["violations"], preload: false, runOnly: ["color-contrast"] }';

async function barriersOf(page: Page, rules: "all" | "contrast"): Promise<string[]> {
  // The debugger's way into the page, which the page's content policy does not bind.
  if (!(await page.evaluate("globalThis.axe !== undefined"))) await page.evaluate(AXE);
  const violations = (await page.evaluate(
    `axe.run(document, ${rules === "all" ? ALL_RULES : CONTRAST}).then(({ violations }) => violations)`,
  )) as AxeResult[];
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}\n${failureSummary}`),
    );
}

/** What is wider than the window, by its outermost element; null when nothing is. What adapts may take a moment. */
export async function sideScroll(page: Page): Promise<string | null> {
  const widest = async () => (await page.evaluate(WIDEST)) as string | null;
  const wide = await until("it fits", async () => (await widest()) === null, ADAPTS_MS).then(
    () => null,
    () => widest(),
  );
  return wide;
}

const ADAPTS_MS = 10_000;

const WIDEST = `(() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return null;
  const wide = [...document.querySelectorAll("#console *")].filter((it) => it.getBoundingClientRect().right > width + 1);
  const path = wide.slice(-1).concat(wide.slice(0, 3)).map((it) => it.tagName + "." + it.className).join(" ");
  return document.documentElement.scrollWidth + " of " + width + " px: " + path;
})()`;
