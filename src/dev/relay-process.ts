// The relay of the demo: `outbox-relay run` in its own process, so that it can be killed. Its parent starts it, sets its
// environment, and is its destination if the argument says so.
import { runCommand } from "../cli/setup/run-command.ts";
import type { DestinationConfig } from "../config/destinations/destination-scheme.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import { reasonOf } from "../core/errors.ts";
import { MAIN_DESTINATION, type ToRelay } from "./destination-wire.ts";
import { DELIVER_TO_PARENT, DEMO_TIMING } from "./relay-settings.ts";
import { wiredPublisher } from "./wired-publisher.ts";

const deliversToParent = process.argv[2] === DELIVER_TO_PARENT;

/** Longer than a graceful stop takes. */
const STOP_MS_MAX = 10_000;

process.once("disconnect", endWithoutParent);
// No "disconnect" event fires if the parent ended while this process was still loading.
if (!process.connected) endWithoutParent();

try {
  process.exitCode = await runCommand({ adapt });
} catch (error) {
  process.stderr.write(`${reasonOf(error)}\n`);
  process.exitCode = 1;
}
process.exit();

/** Without its parent the relay has no destination and is never stopped: stop gracefully, after a timeout by force. */
function endWithoutParent(): void {
  process.kill(process.pid, "SIGTERM");
  setTimeout(() => process.exit(1), STOP_MS_MAX).unref();
}

/** Timing without settings: a demo should show within seconds what may take longer in production. */
function adapt(config: ServiceConfig): ServiceConfig {
  const timing = { ...config.timing, ...DEMO_TIMING };
  if (!deliversToParent) return { ...config, timing };
  const routes = config.routes.map((route) => ({ ...route, destination: MAIN_DESTINATION }));
  const subscribers = config.subscribers.map(({ name, route, ...rest }) => ({
    ...rest,
    name,
    route: { ...route, destination: name },
  }));
  const names = [MAIN_DESTINATION, ...subscribers.map(({ name }) => name)];
  return { ...config, timing, destinations: names.map(parentAsDestination), routes, subscribers };
}

function parentAsDestination(name: string): DestinationConfig {
  const open = async () =>
    wiredPublisher(name, {
      send: (message) => void process.send?.(message, undefined, undefined, () => {}),
      onMessage: (listener) => process.on("message", (message) => listener(message as ToRelay)),
    });
  return { kind: "demo", name, addresses: [], isExactlyOnce: false, warnings: [], options: {}, open };
}
