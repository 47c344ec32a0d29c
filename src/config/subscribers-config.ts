import type { DestinationConfig } from "./destinations/destination-scheme.ts";
import { type LogStart, logStart } from "./log-start.ts";
import { type RouteConfig, routeConfig, routesProblem } from "./routes-config.ts";
import type { Settings } from "./settings.ts";

/**
 * Who reads the logs, each with progress, pace, filter and destination of its own. An event of a log is for all of
 * them, unlike that of a queue, which goes the one way that the routes say.
 */
export interface SubscriberConfig {
  readonly name: string;
  /** Null: as all logs. */
  readonly start: LogStart | null;
  readonly route: RouteConfig;
}

export function subscribersConfig(
  settings: Settings,
  destinations: readonly DestinationConfig[],
  problems: string[],
): readonly SubscriberConfig[] {
  const { OUTBOX_ONLY, OUTBOX_ROUTES, OUTBOX_SCHEMAS, OUTBOX_SUBSCRIBERS: written = [], OUTBOX_TABLE } = settings;
  if (written.length === 0) return [];
  if (OUTBOX_ONLY !== undefined) {
    problems.push("OUTBOX_ONLY and OUTBOX_SUBSCRIBERS are both set: a subscriber says with its types what it takes");
  }
  if (OUTBOX_ROUTES !== undefined && OUTBOX_SCHEMAS === undefined && OUTBOX_TABLE === undefined) {
    problems.push("OUTBOX_ROUTES has no effect: logs go to OUTBOX_SUBSCRIBERS, and no other source is named; keep one");
  }
  const names = written.map(({ name }) => name);
  for (const name of new Set(names.filter((it, at) => names.indexOf(it) !== at))) {
    problems.push(`OUTBOX_SUBSCRIBERS has the name ${name} twice: progress is kept under it, give each its own`);
  }
  // Without a destination there is another complaint already.
  if (destinations.length === 0) return [];
  return written.map(({ name, start, ...route }, index) => {
    const place = `subscribers[${index}]`;
    const config = routeConfig(route, `${place}.`, settings, destinations, problems);
    const problem = routesProblem([config], destinations);
    if (problem !== null) problems.push(problem.replaceAll("routes[0]", place));
    const begin = start === undefined ? null : logStart(start, (why) => problems.push(`${place}.start ${why}`));
    return { name, start: begin ?? null, route: config };
  });
}
