import { readdirSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { reasonOf } from "../../core/errors.ts";
import { defineIntentRelay, type IntentRelay } from "../../routing/intent-relay.ts";
import { ConfigProblems } from "../reading/config-problems.ts";

/** An intent relay and its file. */
export interface LoadedIntentRelay {
  /** `notify-user` of `notify-user-relay.ts`; also the name of the destination that the relay brings with it. */
  readonly name: string;
  /** The path as the user would write it. */
  readonly file: string;
  readonly relay: IntentRelay;
}

/** The default folder, searched if the settings name none. */
const FOLDER = "relays";

const RELAY_FILE = /^([a-z0-9][a-z0-9_-]{0,62})-relay\.(?:ts|mts|js|mjs)$/;
/** Probably a misnamed relay. Tests and declarations beside the relays do not count. */
const RELAY_LIKE = /relay\.[cm]?[jt]s$/i;
const IGNORED = /\.(?:test|spec|d)\.[cm]?[jt]s$/i;

/**
 * Loads the relays of the folder that the settings name, or of `relays` in one of the base folders if it contains any.
 * Throws ConfigProblems with all problems at once, each with its file.
 */
export async function loadIntentRelays(
  named: string | undefined,
  baseFolders: readonly string[],
): Promise<readonly LoadedIntentRelay[]> {
  const folder = named === undefined ? folderByConvention(baseFolders) : resolve(baseFolders[0] ?? ".", named);
  if (folder === null) return [];
  const shown = named ?? FOLDER;
  const files = filesOf(folder, shown);
  const problems = files
    .filter((file) => RELAY_LIKE.test(file) && !IGNORED.test(file) && !RELAY_FILE.test(file))
    .map((file) => `${join(shown, file)} is not a valid name of an intent relay: rename it to ${properName(file)}`);
  const names = files.filter((file) => RELAY_FILE.test(file));
  if (names.length === 0) problems.push(`OUTBOX_INTENTS: ${shown} contains no file <intent>-relay.ts`);
  const loaded: LoadedIntentRelay[] = [];
  for (const name of names) {
    const file = join(shown, name);
    try {
      loaded.push({ name: RELAY_FILE.exec(name)![1]!, file, relay: await load(join(folder, name)) });
    } catch (error) {
      problems.push(`${file}: ${reasonOf(error).replace(/ \[CONFIG_INVALID\].*$/, "")}`);
    }
  }
  problems.push(...duplicatesIn(loaded));
  if (problems.length > 0) throw new ConfigProblems(problems);
  return loaded;
}

/** Only a folder with relays counts: another one can have the same name. */
function folderByConvention(baseFolders: readonly string[]): string | null {
  const folders = [...new Set(baseFolders)].map((place) => join(place, FOLDER));
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
    const why = isMissing ? "is not a folder" : `cannot be read: ${code ?? reasonOf(error)}`;
    throw new ConfigProblems([`OUTBOX_INTENTS: ${shown} ${why}`]);
  }
}

/** Node caches modules by URL, so each reload needs a new one. */
let loads = 0;

async function load(path: string): Promise<IntentRelay> {
  loads += 1;
  const address = `${pathToFileURL(path).href}?reading=${loads}`;
  const module = (await import(address)) as { readonly default?: unknown };
  if (typeof module.default !== "object" || module.default === null) {
    throw new Error("it has no default export: write export default defineIntentRelay({ type, target, translate })");
  }
  return defineIntentRelay(module.default as IntentRelay);
}

function duplicatesIn(loaded: readonly LoadedIntentRelay[]): string[] {
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

/** The correct name: `send-mail-relay.ts` for `SendMail_relay.cts`. */
function properName(file: string): string {
  const [, stem = "", kind = "t"] = /^(.*?)[-_.]?relay\.[cm]?([jt])s$/i.exec(basename(file)) ?? [];
  const words = stem.replace(/([a-z0-9])([A-Z])/g, "$1-$2").replace(/[^a-z0-9]+/gi, "-");
  const name = words.replace(/^-+|-+$/g, "").toLowerCase();
  return `${name === "" ? "<intent>" : name}-relay.${kind}s`;
}
