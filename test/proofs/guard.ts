import type { ServiceProcess } from "../e2e/service-process.ts";
import { signalProcess } from "../servers/scratch.ts";

const pids = new Set<number>();
let isWatching = false;

/** No service outlives the proof, also when that is interrupted. Servers have a watchdog of their own. */
export function guarded(service: ServiceProcess): ServiceProcess {
  if (!isWatching) {
    isWatching = true;
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
    process.once("exit", () => {
      for (const pid of pids) signalProcess(pid, "SIGKILL");
    });
  }
  pids.add(service.pid);
  void service.ended.then(() => pids.delete(service.pid));
  return service;
}
