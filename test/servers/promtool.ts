import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { cached, cacheFolder } from "../../src/dev/embedded-postgres.ts";
import { freePort } from "./free-port.ts";
import { createScratch, signalProcess } from "./scratch.ts";
import { until } from "./until.ts";

const run = promisify(execFile);
const ADVICE = "Prometheus is missing and the tests do not run without it: apt-get install prometheus";

/** The path of `prometheus` or `promtool`: the machine's own, or one unpacked once per machine without an install. */
export async function prometheusProgram(name: "prometheus" | "promtool"): Promise<string> {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const folder = folders.find((it) => existsSync(join(it, name))) ?? join(await unpacked(), "usr/bin");
  return join(folder, name);
}

async function unpacked(): Promise<string> {
  const known = readdirSync(cacheFolder()).find((entry) => entry.startsWith("prometheus-"));
  if (known !== undefined) return join(cacheFolder(), known);
  try {
    const version = await packageVersion();
    return await cached(`prometheus-${version.replace(/[^\w.+-]/g, "_")}`, async (target) => {
      console.log("fetching Prometheus from Debian, once per machine");
      const cwd = `${target}-download`;
      mkdirSync(cwd);
      await run("apt-get", ["download", `prometheus=${version}`], { cwd });
      const [file = ""] = readdirSync(cwd);
      await run("dpkg", ["-x", join(cwd, file), target]);
    });
  } catch (cause) {
    throw new Error(ADVICE, { cause });
  }
}

/** What the distribution offers. Its lists may have been thrown away to make an image small. */
async function packageVersion(): Promise<string> {
  const candidate = async () =>
    /Candidate: (\d\S*)/.exec((await run("apt-cache", ["policy", "prometheus"])).stdout)?.[1];
  const version = await candidate();
  if (version !== undefined) return version;
  await run("flock", [join(cacheFolder(), "install.lock"), "apt-get", "update"]);
  return (await candidate()) ?? "none";
}

export interface PrometheusOptions {
  /** Scraped every 15 seconds: `host:port` of each. Default: none, it takes what is written to it. */
  readonly targets?: readonly string[];
  /** A file with alert rules, read from where it is. */
  readonly rulesFile?: string;
}

export interface PrometheusAlert {
  readonly name: string;
  readonly state: "pending" | "firing";
  readonly summary: string;
}

export interface PrometheusServer extends AsyncDisposable {
  /** Where a remote write goes. */
  readonly writeUrl: string;
  /** The value of each series that the query gives at this moment, by its labels. */
  query(promql: string): Promise<readonly { readonly labels: Record<string, string>; readonly value: number }[]>;
  alerts(): Promise<readonly PrometheusAlert[]>;
}

/** A private Prometheus on 127.0.0.1. */
export async function startPrometheus(options: PrometheusOptions = {}): Promise<PrometheusServer> {
  const program = await prometheusProgram("prometheus");
  const scratch = createScratch("prometheus", "memory");
  const config = join(scratch.path, "prometheus.yml");
  writeFileSync(config, configText(options));
  const port = await freePort();
  const flags = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(scratch.path, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
    "--web.enable-remote-write-receiver",
    "--log.level=error",
  ];
  const child = spawn(program, flags, { stdio: ["ignore", "ignore", "inherit"] });
  const closed = once(child, "close");
  const url = `http://127.0.0.1:${port}`;
  const dispose = async () => {
    signalProcess(child.pid!, "SIGKILL");
    await closed;
    await scratch.remove();
  };
  try {
    await until("Prometheus is ready", async () => {
      if (child.exitCode !== null) throw new Error(`Prometheus ended with ${child.exitCode}`);
      return await fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    });
  } catch (error) {
    await dispose();
    throw error;
  }
  const get = async <Data>(path: string) => {
    const response = await fetch(`${url}/api/v1/${path}`);
    return ((await response.json()) as { data: Data }).data;
  };
  return {
    writeUrl: `${url}/api/v1/write`,
    query: async (promql) => {
      const data = await get<{ result: { metric: Record<string, string>; value: [number, string] }[] }>(
        `query?query=${encodeURIComponent(promql)}`,
      );
      return data.result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
    },
    alerts: async () => {
      type Told = { labels: Record<string, string>; annotations: Record<string, string>; state: "pending" | "firing" };
      const { alerts } = await get<{ alerts: Told[] }>("alerts");
      return alerts.map(({ labels, annotations, state }) => ({
        name: labels.alertname ?? "",
        state,
        summary: annotations.summary ?? "",
      }));
    },
    [Symbol.asyncDispose]: dispose,
  };
}

function configText({ targets = [], rulesFile }: PrometheusOptions): string {
  return stringify({
    global: { scrape_interval: "15s", evaluation_interval: "15s" },
    ...(rulesFile === undefined ? {} : { rule_files: [rulesFile] }),
    scrape_configs: targets.length === 0 ? [] : [{ job_name: "outbox-relay", static_configs: [{ targets }] }],
  });
}
