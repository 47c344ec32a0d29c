// The proof that a dead relay is noticed: npm run prove:alerts
// A real Prometheus scrapes a relay by the alert rules that ship. The relay is killed -9, and an alert must fire in time.
import { setTimeout as pauseMs } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ORDERS } from "../e2e/outbox-tables.ts";
import { type ServiceProcess, startService } from "../e2e/service-process.ts";
import { openStage } from "../e2e/stage.ts";
import { freePort } from "../servers/free-port.ts";
import { startPostgres } from "../servers/postgres.ts";
import { type PrometheusServer, startPrometheus } from "../servers/promtool.ts";
import { until } from "../servers/until.ts";
import { guarded } from "./guard.ts";
import { conclude, refuse, startLog } from "./progress.ts";

const USAGE = `usage: npm run prove:alerts -- [--seconds 300]

A relay that is killed must have an alert within so many seconds. Takes about three minutes; there is nothing to draw, so no seed.`;
const RULES = fileURLToPath(new URL("../../deploy/monitoring/alerts.yaml", import.meta.url));
const ALERT = "OutboxRelayAbsent";
/** Two scrapes and an evaluation. */
const QUIET_MS = 60_000;

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "300" }, help: { type: "boolean", default: false } },
});
const seconds = Number(values.seconds);
if (values.help || !(seconds > 0)) refuse(USAGE);
conclude(await prove(), `npm run prove:alerts -- --seconds ${seconds}`);

async function prove(): Promise<boolean> {
  const log = startLog();
  await using server = await startPostgres({ version: 18 });
  await using stage = await openStage(server, { database: "shop", tables: [ORDERS] });
  const port = await freePort();
  const env = { DATABASE_URL: stage.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: "discard:" };
  const start = () => guarded(startService(["run"], { ...env, PORT: String(port) }));
  await using relay = start();
  await relay.becomes("healthy");
  await using prometheus = await startPrometheus({ targets: [`127.0.0.1:${port}`], rulesFile: RULES });
  log("the relay is healthy, Prometheus has started");
  const isSeen = async () => (await prometheus.query("outbox_relay_build_info")).length > 0;
  await until("the relay is scraped", isSeen, QUIET_MS);
  log("the first scrape is there; waiting for a minute without an alert");
  await pauseMs(QUIET_MS);
  const early = (await prometheus.alerts()).filter(({ state }) => state === "firing");
  for (const { name, summary } of early) log(`fires although nothing is wrong: ${name}: ${summary}`);
  await kill(relay);
  const killedMs = performance.now();
  log("killed the relay with -9");
  const firingMs = await waitForAlert(prometheus, log, killedMs);
  await using again = start();
  await again.becomes("healthy");
  log("started the relay again");
  const isResolved = async () => !(await prometheus.alerts()).some(({ name }) => name === ALERT);
  await until(`${ALERT} is resolved`, isResolved, seconds * 1_000);
  log(`${ALERT} is resolved`);
  return early.length === 0 && firingMs !== null && firingMs <= seconds * 1_000;
}

async function kill(relay: ServiceProcess): Promise<void> {
  relay.kill("SIGKILL");
  await relay.ended;
}

/** Prints every change of state; returns the time from the kill until the alert fires, or null. */
async function waitForAlert(
  prometheus: PrometheusServer,
  log: (line: string) => void,
  killedMs: number,
): Promise<number | null> {
  let said = "none";
  const hasFired = async () => {
    const state = (await prometheus.alerts()).find(({ name }) => name === ALERT)?.state ?? "none";
    if (state !== said)
      log(`${ALERT}: ${state}, ${((performance.now() - killedMs) / 1_000).toFixed(1)} s after the kill`);
    said = state;
    return state === "firing";
  };
  const isFiring = await until(`${ALERT} fires`, hasFired, seconds * 1_000).catch(() => false);
  return isFiring ? performance.now() - killedMs : null;
}
