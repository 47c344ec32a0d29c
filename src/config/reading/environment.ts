import { reasonOf } from "../../core/errors.ts";
import { nearestName } from "../../routing/nearest-name.ts";
import { ENVIRONMENT_NAMES } from "../settings/names.ts";
import { listenHost, OPEN_OUTBOX_VARIABLES, openOutboxProblems, openOutboxRemarks } from "./open-outbox-variables.ts";
import { type Level, LevelBuilder } from "./written.ts";

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;
/** Reads a text file. */
export type ReadText = (path: string) => string;

/** Names the config file. Not a setting, because it cannot be in that file. */
export const CONFIG_FILE_VARIABLE = "OUTBOX_RELAY_CONFIG";

/** An unknown variable with such a prefix is probably a typo. */
const OWN_PREFIXES = /^(?:(?:KAFKA|OUTBOX|RETRY|TOPICS?|LEASE|POLL|MANAGED|SUBSCRIBER)_|OutboxDispatcher__)/;
/** Variables that Kubernetes adds to every container for each service of the namespace. */
const INJECTED = /_SERVICE_(?:HOST|PORT)|_PORT(?:_\d+_(?:TCP|UDP).*)?$/;
/** A larger edit distance means that the variable belongs to another program. */
const TYPO_DISTANCE_MAX = 2;

/** Reads the settings from the environment. Problems with the environment as a whole go to `problems`. */
export function environmentLevel(env: Environment, readText: ReadText, problems: string[]): Level {
  const builder = new LevelBuilder();
  for (const [name, { setting, isFile, convert }] of ENVIRONMENT_NAMES) {
    const value = env[name];
    // As in compose files, an empty variable counts as unset; but an empty list was meant as a list.
    if (value === undefined || (value === "" && setting !== "OUTBOX_SCHEMAS")) continue;
    const plain = name.replace(/_FILE$/, "");
    if (isFile && env[plain]) problems.push(`${plain} and ${name} are both set: keep one of them`);
    const text = isFile ? textOfFile(name, value, readText, problems) : value;
    if (text !== null) builder.add(setting, { origin: { kind: "environment", name }, value: convert(text) });
  }
  addListenHost(builder, env);
  problems.push(...openOutboxProblems(env), ...typosIn(env));
  return builder.level;
}

/** SERVER_PORT can name a host too. HOST precedes it. */
function addListenHost(builder: LevelBuilder, { SERVER_PORT }: Environment): void {
  const host = SERVER_PORT === undefined ? null : listenHost(SERVER_PORT);
  if (host === null || builder.level.has("HOST")) return;
  builder.add("HOST", { origin: { kind: "environment", name: "SERVER_PORT" }, value: host });
}

/** The content of the file that `name` points to, without the line end that editors add. */
export function textOfFile(name: string, path: string, readText: ReadText, problems: string[]): string | null {
  try {
    return readText(path).replace(/\r?\n$/, "");
  } catch (error) {
    problems.push(`${name} names a file that cannot be read: ${reasonOf(error)}`);
    return null;
  }
}

/** Warns of unknown variables. Only OUTBOX_ and RETRY_ are surely ours: other programs use KAFKA_ too. */
export function unknownSettingsIn(env: Environment): string[] {
  return unknownIn(env)
    .filter((name) => /^(?:OUTBOX|RETRY)_/.test(name))
    .map((name) => `${name} is not a setting of outbox-relay and has no effect`)
    .concat(openOutboxRemarks(env));
}

function typosIn(env: Environment): string[] {
  return unknownIn(env).flatMap((name) => {
    const nearest = nearestName(name, [...ENVIRONMENT_NAMES.keys(), CONFIG_FILE_VARIABLE], TYPO_DISTANCE_MAX);
    return nearest === undefined ? [] : [`${name} is not a setting: did you mean ${nearest}?`];
  });
}

function unknownIn(env: Environment): string[] {
  return Object.keys(env).filter(
    (name) =>
      env[name] &&
      OWN_PREFIXES.test(name) &&
      !INJECTED.test(name) &&
      !ENVIRONMENT_NAMES.has(name) &&
      !OPEN_OUTBOX_VARIABLES.has(name) &&
      name !== CONFIG_FILE_VARIABLE,
  );
}
