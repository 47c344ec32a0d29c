import { setTimeout as pauseMs } from "node:timers/promises";
import type { ServiceProcess } from "../e2e/service-process.ts";
import type { ServiceScene } from "./service-scene.ts";

export interface HealthWatchOptions {
  readonly scene: ServiceScene;
  readonly service: ServiceProcess;
  /** How long the fault lasts; it is watched for at least a minute until something is said. */
  readonly seconds: number;
  readonly log: (line: string) => void;
}

/** A fault may take so long to show. */
const PATIENCE_SECONDS = 60;

interface Health {
  readonly status?: string;
  readonly problems?: readonly { readonly name: string; readonly reason: string }[];
}

/**
 * Looks at the health while a fault lasts and prints each change. True where it named a problem, or where events went on
 * to be delivered, so that there was nothing to name.
 */
export async function watchHealth({ scene, service, seconds, log }: HealthWatchOptions): Promise<boolean> {
  const startedMs = performance.now();
  const elapsed = () => (performance.now() - startedMs) / 1_000;
  let wasNamed = false;
  let said = "";
  while (elapsed() < seconds || (!wasNamed && elapsed() < PATIENCE_SECONDS)) {
    const health = await healthOf(service);
    const problems = (health.problems ?? []).toSorted((a, b) => a.name.localeCompare(b.name));
    if (health.status !== "healthy" && problems.length > 0) wasNamed = true;
    const text = [health.status ?? "no answer", ...problems.map(({ name }) => name)].join(", ");
    const reason = problems[0] === undefined ? "" : `: ${problems[0].reason.slice(0, 200)}`;
    if (text !== said) log(`${elapsed().toFixed(0)} s into the fault the health says ${text}${reason}`);
    said = text;
    await pauseMs(500);
  }
  return (
    wasNamed ||
    (await scene.flow(1, 10_000).then(
      () => true,
      () => false,
    ))
  );
}

async function healthOf(service: ServiceProcess): Promise<Health> {
  const answer = await service.get("/health").catch(() => null);
  return answer === null ? {} : (answer.json() as Health);
}
