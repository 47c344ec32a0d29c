import { reasonOf } from "../core/errors.ts";
import { nearestName } from "../routing/nearest-name.ts";
import { ENVIRONMENT_NAMES } from "./names.ts";
import { type Level, LevelBuilder } from "./written.ts";

export type Environment = Readonly<Record<string, string | undefined>>;
export type ReadText = (path: string) => string;

/** Names the config file; it is no setting because it cannot stand in that file. */
export const CONFIG_FILE_VARIABLE = "OUTBOX_RELAY_CONFIG";

/** The beginnings of names in which an unknown one is probably a slip. */
const OUR_NAMESPACES = /^(?:(?:KAFKA|OUTBOX|RETRY|TOPICS?|LEASE|POLL|MANAGED|SUBSCRIBER)_|OutboxDispatcher__)/;
/** What Kubernetes puts into every container for each service of the namespace. */
const INJECTED = /_SERVICE_(?:HOST|PORT)|_PORT(?:_\d+_(?:TCP|UDP).*)?$/;
/** Further away than this, it is a variable of somebody else's. */
const SLIPS_MAX = 2;

/** What the environment says. What is wrong with it as a whole is added to `problems`. */
export function environmentLevel(env: Environment, readText: ReadText, problems: string[]): Level {
  const builder = new LevelBuilder();
  for (const [name, { setting, isFile, convert }] of ENVIRONMENT_NAMES) {
    const value = env[name];
    // An empty variable is an absent one, as compose files write it; but a list that is empty was meant as a list.
    if (value === undefined || (value === "" && setting !== "OUTBOX_SCHEMAS")) continue;
    const plain = name.replace(/_FILE$/, "");
    if (isFile && env[plain]) problems.push(`${plain} and ${name} are both set: keep one of them`);
    const text = isFile ? textOfFile(name, value, readText, problems) : value;
    if (text !== null) builder.add(setting, { origin: { kind: "environment", name }, value: convert(text) });
  }
  problems.push(...slipsIn(env));
  return builder.level;
}

/** The content of a file that `name` points to, without the line's end that editors put there. */
export function textOfFile(name: string, path: string, readText: ReadText, problems: string[]): string | null {
  try {
    return readText(path).replace(/\r?\n$/, "");
  } catch (error) {
    problems.push(`${name} names a file that cannot be read: ${reasonOf(error)}`);
    return null;
  }
}

/** Other programs have variables with KAFKA in front too; nobody else's begin with OUTBOX or RETRY. */
export function strangersIn(env: Environment): string[] {
  return unknownIn(env)
    .filter((name) => /^(?:OUTBOX|RETRY)_/.test(name))
    .map((name) => `${name} is no setting of outbox-relay and has no effect`);
}

function slipsIn(env: Environment): string[] {
  return unknownIn(env).flatMap((name) => {
    const nearest = nearestName(name, [...ENVIRONMENT_NAMES.keys(), CONFIG_FILE_VARIABLE], SLIPS_MAX);
    return nearest === undefined ? [] : [`${name} is no setting: did you mean ${nearest}?`];
  });
}

function unknownIn(env: Environment): string[] {
  return Object.keys(env).filter(
    (name) =>
      env[name] &&
      OUR_NAMESPACES.test(name) &&
      !INJECTED.test(name) &&
      !ENVIRONMENT_NAMES.has(name) &&
      name !== CONFIG_FILE_VARIABLE,
  );
}
