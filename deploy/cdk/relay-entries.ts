import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { IntentRelay } from "./outbox-relay.ts";

/** One intent type of an application: its relay, and the file that Lambda starts. */
export interface RelayEntry {
  /** `sync-to-payroll` of `relays/sync-to-payroll-relay.ts` and `lambdas/sync-to-payroll.ts`. */
  readonly name: string;
  readonly intentType: string;
  readonly entry: string;
  /** Of the target's address: `kafka`, `https`, `sqs`. */
  readonly scheme: string;
  /** The queue, where the target is one: its function may send there. */
  readonly queue: { readonly region: string; readonly name: string; readonly account: string | null } | null;
  /** What the relay's file reads from the environment. */
  readonly environment: Readonly<Record<string, string>>;
}

const RELAY_FILE = /^(.+)-relay\.(?:ts|mts|js|mjs)$/;
const TEST_FILE = /\.(?:test|spec|d)\.[cm]?[jt]s$/;

/**
 * Every relay of an application's folder `relays`, each with its entry file in `lambdas`. Only the relay's own file knows
 * its target, so a new intent type is a new pair of files here too. The variables that it reads are those of the
 * deployment: they are given to its function, and to no other.
 */
export async function relayEntries(folder: string): Promise<readonly RelayEntry[]> {
  const files = readdirSync(join(folder, "relays")).filter((file) => RELAY_FILE.test(file) && !TEST_FILE.test(file));
  if (files.length === 0) throw new Error(`${join(folder, "relays")} contains no file <intent>-relay.ts`);
  const names = files.map((file) => RELAY_FILE.exec(file)![1]!);
  for (const file of readdirSync(join(folder, "lambdas"))) {
    const name = file.replace(/\.[cm]?[jt]s$/, "");
    if (!names.includes(name)) throw new Error(`lambdas/${file} has no relay: write relays/${name}-relay.ts`);
  }
  const entries: RelayEntry[] = [];
  for (const file of files.sort()) entries.push(await relayEntry(folder, file));
  for (const [type, same] of Map.groupBy(entries, ({ intentType }) => intentType)) {
    const both = same.map(({ name }) => name).join(" and ");
    if (same.length > 1) throw new Error(`${both} both relay ${type}: keep one of them`);
  }
  return entries;
}

async function relayEntry(folder: string, file: string): Promise<RelayEntry> {
  const name = RELAY_FILE.exec(file)![1]!;
  const path = join(folder, "relays", file);
  const environment = environmentOf(name, readFileSync(path, "utf8"));
  const { default: relay } = (await import(pathToFileURL(path).href)) as { readonly default?: IntentRelay };
  if (relay === undefined) throw new Error(`relays/${file} has no default export: write defineIntentRelay({ ... })`);
  if (!("url" in relay.target)) {
    throw new Error(`relays/${file}: a function has no configuration file, so its target is { url }`);
  }
  const entry = [".ts", ".mts", ".js", ".mjs"].map((end) => join(folder, "lambdas", name + end)).find(existsSync);
  if (entry === undefined)
    throw new Error(`lambdas/${name}.ts is missing: export const handler = intentHandler(relay)`);
  const { url } = relay.target;
  const scheme = /^[a-z][a-z0-9+.-]*(?=:)/i.exec(url)?.[0].toLowerCase() ?? "nothing";
  return { name, intentType: relay.type, entry, scheme, queue: queueOf(url), environment };
}

/** Without a value the address of the target would be wrong, and only the first intent would show it. */
function environmentOf(name: string, text: string): Record<string, string> {
  const names = [...new Set([...text.matchAll(/\bprocess\.env\.([A-Z][A-Z0-9_]*)/g)].map(([, found]) => found!))];
  const missing = names.filter((variable) => (process.env[variable] ?? "") === "");
  if (missing.length > 0) throw new Error(`The relay ${name} reads ${missing.join(", ")}: set it before you deploy`);
  return Object.fromEntries(names.map((variable) => [variable, process.env[variable]!]));
}

function queueOf(url: string): RelayEntry["queue"] {
  const [, region, name, question] = /^sqs:\/\/([a-z0-9-]+)\/([^?]+)(?:\?(.*))?$/i.exec(url) ?? [];
  if (region === undefined || name === undefined) return null;
  return { region, name, account: new URLSearchParams(question).get("account") };
}
