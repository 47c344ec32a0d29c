import { type Browser, chromium } from "playwright-core";
import { installPrograms } from "./debian-programs.ts";

export const CHROMIUM = { chromium: "chromium" };

/** Nothing is fetched, reported or synchronized: the browser talks to the page under test alone. */
const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];

export async function openBrowser(): Promise<Browser> {
  return await chromium.launch({ executablePath: await chromiumProgram(), headless: true, args: flags });
}

/** The system's Chromium. Installed once per machine where that is allowed. */
export async function chromiumProgram(): Promise<string> {
  await installPrograms("the console", CHROMIUM);
  return "/usr/bin/chromium";
}
