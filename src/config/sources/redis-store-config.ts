import { parseAddress } from "../destinations/address.ts";
import type { Settings } from "../settings/settings.ts";

/** An outbox in Redis instead of the database. */
export interface RedisStoreConfig {
  readonly url: string;
  /** The name of the outbox. */
  readonly name: string;
  /** Replaces the schema in names, logs and metrics. */
  readonly schema: string;
}

const DEFAULT_NAME = "outbox";

const DATABASE_SETTINGS = [
  "OUTBOX_SCHEMAS",
  "OUTBOX_TABLE",
  "OUTBOX_MANAGED",
  "OUTBOX_EVENT_TABLES",
  "OUTBOX_WAL",
  "OUTBOX_SUBSCRIBERS",
  "DATABASE_URL",
  "RETENTION",
] as const;

/** Null if the events are in the database, or when `problems` say what is wrong. */
export function redisStoreConfig(settings: Settings, problems: string[]): RedisStoreConfig | null {
  const { OUTBOX_STORE: written } = settings;
  if (written === undefined) return null;
  if (!/^rediss?:\/\//i.test(written)) {
    problems.push("OUTBOX_STORE is not a Redis address: write redis://host:port/0?name=OUTBOX");
    return null;
  }
  const own = { name: "redis", setting: "OUTBOX_STORE", address: written, settings, problems };
  const address = parseAddress(own, { defaultPort: 6_379, parameters: ["name"] });
  if (address === null) return null;
  const name = address.parameters.get("name") ?? DEFAULT_NAME;
  if (!/^[^{}\s]{1,100}$/.test(name)) {
    problems.push(
      `OUTBOX_STORE has the name ${JSON.stringify(name)}: write 1 to 100 characters without spaces and braces`,
    );
  }
  for (const other of DATABASE_SETTINGS) {
    if (settings[other] === undefined) continue;
    problems.push(
      `OUTBOX_STORE and ${other} are both set: events are either in Redis or in a database, keep one of them`,
    );
  }
  return { url: written.replace(/\?.*$/, ""), name, schema: "redis" };
}
