import type { DestinationConfig } from "../destinations/destination-scheme.ts";
import { destinationNames, type RouteConfig, routeConfig, routesProblems } from "../routes-config.ts";
import type { Settings } from "../settings/settings.ts";
import { type LogStart, logStart } from "./log-start.ts";

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
