import { readdirSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { reasonOf } from "../core/errors.ts";
import { defineIntentRelay, type IntentRelay } from "../routing/intent-relay.ts";
import { ConfigProblems } from "./config-problems.ts";

/** A relay and the file that it stands in. */
export interface LoadedIntentRelay {
  /** `notify-user` of `notify-user-relay.ts`: the name of its destination, where it brings its own. */
  readonly name: string;
  /** As a person would write it. */
  readonly file: string;
  readonly relay: IntentRelay;
}

/** Looked for by itself, where the settings name no folder. */
const FOLDER = "relays";

const RELAY_FILE = /^([a-z0-9][a-z0-9_-]{0,62})-relay\.(?:ts|mts|js|mjs)$/;
/** What was probably meant to be one. Tests and declarations stand beside the relays. */
const NEARLY = /relay\.[cm]?[jt]s$/i;
const NOT_MEANT = /\.(?:test|spec|d)\.[cm]?[jt]s$/i;

/**
 * The relays of the folder that the settings name, or of `relays` in one of the places if it holds some. Throws
 * ConfigProblems with everything that is wrong, each by its file.
 */
export async function loadIntentRelays(
  named: string | undefined,
  places: readonly string[],
): Promise<readonly LoadedIntentRelay[]> {
  const folder = named === undefined ? folderByConvention(places) : resolve(places[0] ?? ".", named);
  if (folder === null) return [];
  const shown = named ?? FOLDER;
  const files = filesOf(folder, shown);
  const problems = files
    .filter((file) => NEARLY.test(file) && !NOT_MEANT.test(file) && !RELAY_FILE.test(file))
    .map((file) => `${join(shown, file)} is no name of an intent relay: write ${properName(file)}`);
  const names = files.filter((file) => RELAY_FILE.test(file));
  if (names.length === 0) problems.push(`OUTBOX_INTENTS: ${shown} holds no file <intent>-relay.ts`);
  const loaded: LoadedIntentRelay[] = [];
  for (const name of names) {
    const file = join(shown, name);
    try {
      loaded.push({ name: RELAY_FILE.exec(name)![1]!, file, relay: await load(join(folder, name)) });
    } catch (error) {
      problems.push(`${file}: ${reasonOf(error).replace(/ \[CONFIG_INVALID\].*$/, "")}`);
    }
  }
  problems.push(...twiceIn(loaded));
  if (problems.length > 0) throw new ConfigProblems(problems);
  return loaded;
}

/** Only where it really holds relays: a folder of that name may be something else. */
function folderByConvention(places: readonly string[]): string | null {
  const folders = [...new Set(places)].map((place) => join(place, FOLDER));
  const holdsRelays = (folder: string) =>
    statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true &&
    readdirSync(folder).some((file) => RELAY_FILE.test(file));
  return folders.find(holdsRelays) ?? null;
}

function filesOf(folder: string, shown: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isMissing = code === "ENOENT" || code === "ENOTDIR";
    const why = isMissing ? "is no folder" : `cannot be read: ${code ?? reasonOf(error)}`;
    throw new ConfigProblems([`OUTBOX_INTENTS: ${shown} ${why}`]);
  }
}

/** A module is kept once it is loaded; another address makes it be read again at each reload. */
let readings = 0;

async function load(path: string): Promise<IntentRelay> {
  readings += 1;
  const address = `${pathToFileURL(path).href}?reading=${readings}`;
  const module = (await import(address)) as { readonly default?: unknown };
  if (typeof module.default !== "object" || module.default === null) {
    throw new Error("it has no default export: write export default defineIntentRelay({ type, target, translate })");
  }
  return defineIntentRelay(module.default as IntentRelay);
}

function twiceIn(loaded: readonly LoadedIntentRelay[]): string[] {
  const problems: string[] = [];
  for (const [type, relays] of Map.groupBy(loaded, ({ relay }) => relay.type)) {
    const files = relays.map(({ file }) => file).join(" and ");
    if (relays.length > 1) problems.push(`${files} both relay ${JSON.stringify(type)}: keep one of them`);
  }
  for (const [name, relays] of Map.groupBy(loaded, (it) => it.name)) {
    const files = relays.map(({ file }) => file).join(" and ");
    const isSameType = new Set(relays.map(({ relay }) => relay.type)).size < relays.length;
    if (relays.length > 1 && !isSameType) problems.push(`${files} are both named ${name}: rename one of them`);
  }
  return problems;
}

/** `SendMail_relay.cts` was meant to be `send-mail-relay.ts`. */
function properName(file: string): string {
  const [, stem = "", kind = "t"] = /^(.*?)[-_.]?relay\.[cm]?([jt])s$/i.exec(basename(file)) ?? [];
  const words = stem.replace(/([a-z0-9])([A-Z])/g, "$1-$2").replace(/[^a-z0-9]+/gi, "-");
  const name = words.replace(/^-+|-+$/g, "").toLowerCase();
  return `${name === "" ? "<intent>" : name}-relay.${kind}s`;
}
