import { readFileSync } from "node:fs";
import { reasonOf } from "../core/errors.ts";
import { nearestName } from "../routing/nearest-name.ts";
import { ConfigProblems } from "./config-problems.ts";
import { metaOf, SETTING_NAMES, type SettingName, type Settings, settingsSchema } from "./settings.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

interface ReadSettings {
  readonly settings: Settings;
  /** Values that no log line and no error may show. */
  readonly secrets: readonly string[];
  /** What looks like a mistake and stops nothing. */
  readonly warnings: readonly string[];
}

/** The beginnings of names in which an unknown one is probably a slip. */
const OUR_NAMESPACES = /^(?:KAFKA|OUTBOX|RETRY|TOPICS?|LEASE|POLL)_/;
/** What Kubernetes puts into every container for each service of the namespace. */
const INJECTED = /_SERVICE_(?:HOST|PORT)|_PORT(?:_\d+_(?:TCP|UDP).*)?$/;
/** Further away than this, it is a variable of somebody else's. */
const SLIPS_MAX = 2;

/** Reads and checks all settings. Throws ConfigProblems with every fault at once. */
export function readSettings(env: Environment, readFile = (path: string) => readFileSync(path, "utf8")): ReadSettings {
  const problems: string[] = [];
  const written = new Map<SettingName, Written>();
  for (const name of SETTING_NAMES) {
    const found = [name, ...(metaOf(name).aliases ?? [])].flatMap((alias) =>
      lookUp(env, name, alias, readFile, problems),
    );
    const [first] = found;
    if (first !== undefined) written.set(name, first);
    problems.push(...contradictions(name, found));
  }
  problems.push(...slipsIn(env));
  const texts = Object.fromEntries([...written].map(([name, { value }]) => [name, value]));
  const parsed = settingsSchema.safeParse(texts);
  for (const { path, message } of parsed.error?.issues ?? []) {
    problems.push(faultOf(written.get(path[0] as SettingName), String(path[0]), message));
  }
  if (!parsed.success || problems.length > 0) throw new ConfigProblems(problems);
  const secrets = SETTING_NAMES.filter((name) => metaOf(name).secret).flatMap((name) =>
    secretsIn(name, written.get(name)),
  );
  return { settings: parsed.data, secrets, warnings: strangersIn(env) };
}

interface Written {
  /** The variable that it came from. */
  readonly variable: string;
  readonly value: string;
  readonly isSecret: boolean;
}

/** An empty variable is an absent one, as compose files write it; but a list that is empty was meant as a list. */
function lookUp(
  env: Environment,
  name: SettingName,
  variable: string,
  readFile: (path: string) => string,
  problems: string[],
): Written[] {
  const isSecret = metaOf(name).secret !== undefined;
  const value = env[variable];
  const file = isSecret ? env[`${variable}_FILE`] : undefined;
  if (value && file) problems.push(`${variable} and ${variable}_FILE are both set: keep one of them`);
  if (value || (value === "" && name === "OUTBOX_SCHEMAS")) return [{ variable, value, isSecret }];
  if (!file) return [];
  try {
    return [{ variable: `${variable}_FILE`, value: readFile(file).replace(/\r?\n$/, ""), isSecret }];
  } catch (error) {
    problems.push(`${variable}_FILE names a file that cannot be read: ${reasonOf(error)}`);
    return [];
  }
}

/** A name and its alias may say the same thing, also in other words: 500 and 500ms. */
function contradictions(name: SettingName, found: readonly Written[]): string[] {
  const [first, ...others] = found;
  if (first === undefined) return [];
  const meaning = ({ value }: Written) => JSON.stringify(settingsSchema.shape[name].safeParse(value).data ?? value);
  const other = others.find((it) => meaning(it) !== meaning(first));
  if (other === undefined) return [];
  return [`${first.variable} and ${other.variable} mean the same setting and differ: keep one of them`];
}

function faultOf(written: Written | undefined, name: string, message: string): string {
  if (written === undefined) return `${name}: ${message}`;
  const { variable, value, isSecret } = written;
  const shown = isSecret ? "cannot be used" : `is ${JSON.stringify(value.slice(0, 200))}`;
  return `${variable} ${shown}: ${message}`;
}

/** All names that mean something, those of files included. */
function knownNames(): string[] {
  return SETTING_NAMES.flatMap((name) => {
    const { aliases = [], secret } = metaOf(name);
    const names = [name, ...aliases];
    return secret ? [...names, ...names.map((variable) => `${variable}_FILE`)] : names;
  });
}

function unknownIn(env: Environment): string[] {
  const known = new Set(knownNames());
  return Object.keys(env).filter(
    (name) => env[name] && OUR_NAMESPACES.test(name) && !INJECTED.test(name) && !known.has(name),
  );
}

function slipsIn(env: Environment): string[] {
  return unknownIn(env).flatMap((name) => {
    const nearest = nearestName(name, knownNames(), SLIPS_MAX);
    return nearest === undefined ? [] : [`${name} is no setting: did you mean ${nearest}?`];
  });
}

/** Other programs have variables with KAFKA in front too; nobody else's begin with OUTBOX or RETRY. */
function strangersIn(env: Environment): string[] {
  return unknownIn(env)
    .filter((name) => /^(?:OUTBOX|RETRY)_/.test(name))
    .map((name) => `${name} is no setting of outbox-relay and has no effect`);
}

/** The password inside an address is a secret by itself, as written and as meant. */
function secretsIn(name: SettingName, written: Written | undefined): string[] {
  if (written === undefined) return [];
  if (metaOf(name).secret !== "address") return [written.value];
  const password = /^[a-z+]+:\/\/[^/?#]*?:([^/?#]*)@/i.exec(written.value)?.[1];
  return password === undefined ? [] : [password, decoded(password)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
