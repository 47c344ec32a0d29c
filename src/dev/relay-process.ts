// The relay of the dev face: `outbox-relay run` in a process of its own, so that it can be killed for real. Its parent
// starts it, sets its environment, and is its destination when the argument says so.
import { runCommand } from "../cli/run-command.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import { reasonOf } from "../core/errors.ts";
import type { ToRelay } from "./destination-wire.ts";
import { DEMO_DESTINATION, DEMO_TIMING } from "./relay-settings.ts";
import { wiredPublisher } from "./wired-publisher.ts";

const deliversToParent = process.argv[2] === DEMO_DESTINATION;

// Without its parent it has nobody to deliver to, and nobody would ever stop it.
process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));

try {
  process.exitCode = await runCommand({ adapt });
} catch (error) {
  process.stderr.write(`${reasonOf(error)}\n`);
  process.exitCode = 1;
}
process.exit();

/** What the settings have no names for: a demo shows within seconds what may take longer at work. */
function adapt(config: ServiceConfig): ServiceConfig {
  const timing = { ...config.timing, ...DEMO_TIMING };
  if (!deliversToParent) return { ...config, timing };
  const open = async () =>
    wiredPublisher(DEMO_DESTINATION, {
      send: (message) => void process.send?.(message, undefined, undefined, () => {}),
      onMessage: (listener) => process.on("message", (message) => listener(message as ToRelay)),
    });
  const demo = { kind: "demo", name: DEMO_DESTINATION, addresses: [], isExactlyOnce: false, warnings: [], options: {} };
  const routes = config.routes.map((route) => ({ ...route, destination: DEMO_DESTINATION }));
  return { ...config, timing, destinations: [{ ...demo, open }], routes };
}
