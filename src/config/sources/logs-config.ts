import { reasonOf } from "../../core/errors.ts";
import { displayTable, parseTableName, type TableName } from "../../postgres/identifiers.ts";
import type { PartitionStep } from "../../postgres/managed/managed-names.ts";
import { type LogPreset, MESSAGE_SCHEMA } from "../../sources/postgres/log/log-preset.ts";
import type { DestinationConfig } from "../destinations/destination-scheme.ts";
import { destinationNames, type RouteConfig, routeConfig, routesProblems } from "../routes-config.ts";
import type { Settings } from "../settings/settings.ts";
import { type LogStart, logStart } from "./log-start.ts";

/** A log that the settings name. */
export interface NamedLog extends TableName {
  readonly preset: LogPreset;
}

/** The configuration of logs. */
export interface LogsConfig {
  readonly named: readonly NamedLog[];
  /** How rows in the write-ahead log become messages; null to decide by their columns. */
  readonly walPreset: "debezium" | "plain" | null;
  readonly wal: {
    readonly headerColumns?: readonly string[];
    readonly slot?: string;
    readonly publication?: string;
  };
  readonly start: LogStart;
  /** How long a subscriber can prevent the pruning of a log; null for ever. */
  readonly lagMaxMs: number | null;
  /** For managed outboxes that the relay creates. */
  readonly managed: {
    readonly payload: "text" | "bytea";
    readonly partition: PartitionStep;
    readonly wakeUp: boolean;
  };
}

const LISTS = { OUTBOX_MANAGED: "managed", OUTBOX_EVENT_TABLES: "tail", OUTBOX_WAL: "wal" } as const;

type ListName = keyof typeof LISTS;

/** The logs that the settings name, and how to read them. */
export function logsConfig(settings: Settings, problems: string[]): LogsConfig {
  const { LOG_START, MANAGED_PARTITION, MANAGED_PAYLOAD, MANAGED_WAKE_UP, OUTBOX_WAL_PRESET } = settings;
  if (OUTBOX_WAL_PRESET !== undefined && settings.OUTBOX_WAL === undefined) {
    problems.push(
      "OUTBOX_WAL_PRESET is set but OUTBOX_WAL is not: set OUTBOX_WAL to the sources in the write-ahead log",
    );
  }
  return {
    named: namedLogs(settings, problems),
    walPreset: OUTBOX_WAL_PRESET ?? null,
    wal: walReading(settings, problems),
    start: logStart(LOG_START, (why) => problems.push(`LOG_START ${why}`)) ?? "beginning",
    lagMaxMs: settings.SUBSCRIBER_LAG_MAX ?? null,
    managed: { payload: MANAGED_PAYLOAD, partition: `1 ${MANAGED_PARTITION}`, wakeUp: MANAGED_WAKE_UP },
  };
}

function walReading(settings: Settings, problems: string[]): LogsConfig["wal"] {
  const { OUTBOX_SUBSCRIBERS, OUTBOX_WAL, OUTBOX_WAL_HEADERS, OUTBOX_WAL_PUBLICATION, OUTBOX_WAL_SLOT } = settings;
  const readers = (OUTBOX_WAL?.length ?? 0) * (OUTBOX_SUBSCRIBERS?.length ?? 1);
  if (OUTBOX_WAL_SLOT !== undefined && readers !== 1) {
    const why = `there are ${readers} readers of the write-ahead log, and each needs its own`;
    problems.push(`OUTBOX_WAL_SLOT names one slot, but ${why}: remove it, or read one log with one subscriber`);
  }
  return {
    ...(OUTBOX_WAL_HEADERS === undefined ? {} : { headerColumns: OUTBOX_WAL_HEADERS }),
    ...(OUTBOX_WAL_PUBLICATION === undefined ? {} : { publication: OUTBOX_WAL_PUBLICATION }),
    ...(OUTBOX_WAL_SLOT === undefined ? {} : { slot: OUTBOX_WAL_SLOT }),
  };
}

/** The logs of all lists. A table in two of them would be delivered twice. */
function namedLogs(settings: Settings, problems: string[]): readonly NamedLog[] {
  const seen = new Map<string, string>();
  const own = settings.OUTBOX_TABLE;
  if (own !== undefined) seen.set(nameIn("OUTBOX_TABLE", own, [])?.name ?? "", "OUTBOX_TABLE");
  return (Object.keys(LISTS) as ListName[]).flatMap((list) =>
    (settings[list] ?? []).flatMap((written): NamedLog[] => {
      const found = nameIn(list, written, problems);
      if (found === null) return [];
      const earlier = seen.get(found.name);
      if (earlier !== undefined) {
        const where = earlier === list ? `${list} twice` : `${earlier} and in ${list}`;
        problems.push(`${found.name} is in ${where}: a table can be read only once, keep one of them`);
        return [];
      }
      seen.set(found.name, list);
      return [{ ...found.table, preset: LISTS[list] }];
    }),
  );
}

function nameIn(
  list: ListName | "OUTBOX_TABLE",
  written: string,
  problems: string[],
): { name: string; table: TableName } | null {
  const prefix = list === "OUTBOX_WAL" ? /^message:(.*)$/is.exec(written)?.[1] : undefined;
  if (prefix === undefined) {
    try {
      const table = parseTableName(written);
      return { name: displayTable(table), table };
    } catch (error) {
      problems.push(`${list}: ${reasonOf(error).replace(/ \[CONFIG_INVALID\].*$/, "")}`);
      return null;
    }
  }
  if (/^\S{1,63}$/.test(prefix)) {
    return { name: `${MESSAGE_SCHEMA}:${prefix}`, table: { schema: MESSAGE_SCHEMA, table: prefix } };
  }
  problems.push(`${list} has ${JSON.stringify(written)}: write message:PREFIX, 1 to 63 characters and no space`);
  return null;
}

/**
 * A reader of logs, with its own progress, pace, filter and destination. Every subscriber receives the events of a log,
 * while an event of a queue goes only where the routes send it.
 */
export interface SubscriberConfig {
  readonly name: string;
  /** Null: LOG_START. */
  readonly start: LogStart | null;
  readonly route: RouteConfig;
}

/** The subscribers that the settings list. */
export function subscribersConfig(
  settings: Settings,
  destinations: readonly DestinationConfig[],
  problems: string[],
): readonly SubscriberConfig[] {
  const { OUTBOX_ONLY, OUTBOX_ROUTES, OUTBOX_SCHEMAS, OUTBOX_SUBSCRIBERS: written = [], OUTBOX_TABLE } = settings;
  if (written.length === 0) return [];
  if (OUTBOX_ONLY !== undefined) {
    problems.push("OUTBOX_ONLY and OUTBOX_SUBSCRIBERS are both set: select events by each subscriber's types instead");
  }
  if (OUTBOX_ROUTES !== undefined && OUTBOX_SCHEMAS === undefined && OUTBOX_TABLE === undefined) {
    problems.push(
      "OUTBOX_ROUTES has no effect: OUTBOX_SUBSCRIBERS read the logs, and there is no other source; keep one",
    );
  }
  const names = written.map(({ name }) => name);
  for (const name of new Set(names.filter((it, at) => names.indexOf(it) !== at))) {
    problems.push(`OUTBOX_SUBSCRIBERS has the name ${name} twice: progress is stored by name, so each needs its own`);
  }
  // A missing destination is already reported.
  const known = destinationNames(settings, destinations);
  if (known.length === 0) return [];
  return written.map(({ name, start, ...route }, index) => {
    const place = `subscribers[${index}]`;
    const config = routeConfig(route, `${place}.`, settings, known, problems);
    problems.push(...routesProblems([config], known).map((problem) => problem.replaceAll("routes[0]", place)));
    const begin = start === undefined ? null : logStart(start, (why) => problems.push(`${place}.start ${why}`));
    return { name, start: begin ?? null, route: config };
  });
}
