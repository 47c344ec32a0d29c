import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { startBenchServers } from "../bench-servers.ts";
import { atLeast, atMost, type Figure, measured, type Scenario } from "../figure.ts";
import { type Delivered, deliver, fillOptions } from "./drain-kafka.ts";

/** The machine's mood changes: the two take turns, the first round warms it up, and of the others the better half counts. */
const ROUNDS = 7;
const COUNTED = 3;
const PAYLOAD_BYTES = 200;
const TRACED = 0.01;

/** What metrics, logs at the default level and tracing cost: the same drain into Kafka with and without them. */
export const overhead: Scenario = async (options) => {
  await using servers = await startBenchServers();
  await using collector = await startCollector();
  const stage = { ...options, ...servers };
  const fill = fillOptions(stage, PAYLOAD_BYTES);
  const results: Record<"bare" | "told", Delivered[]> = { bare: [], told: [] };
  const way = { delivery: "at-least-once" } as const;
  const steps = {
    bare: () => deliver(stage, fill, way),
    told: () => deliver(stage, fill, { ...way, telemetry: { tracesUrl: collector.url, ratio: TRACED } }),
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of round % 2 === 0 ? (["bare", "told"] as const) : (["told", "bare"] as const)) {
      const result = await steps[name]();
      if (round > 0) results[name].push(result);
      const rate = Math.round((fill.rows / result.ms) * 1_000);
      options.say(`  ${name}: ${rate} events/s, ${Math.round(result.rssMb)} MB`);
    }
  }
  if (collector.bytes() === 0) throw new Error("no span reached the collector: no figure can be given");
  return figuresOf(fill.rows, results);
};

function figuresOf(rows: number, { bare, told }: Record<"bare" | "told", readonly Delivered[]>): Figure[] {
  const best = (results: readonly Delivered[]) => {
    const fastest = results
      .map(({ ms }) => ms)
      .sort((a, b) => a - b)
      .slice(0, COUNTED);
    return fastest.reduce((sum, ms) => sum + ms, 0) / fastest.length;
  };
  const perS = (ms: number) => (rows / ms) * 1_000;
  return [
    measured("without telemetry", perS(best(bare)), "events/s"),
    measured("with metrics, logs and 1 % of traces", perS(best(told)), "events/s"),
    atLeast("with / without", (best(bare) / best(told)) * 100, "%", 95),
    atMost("peak RSS with it", Math.max(...told.map(({ rssMb }) => rssMb)), "MB", 256),
  ];
}

/** Takes spans and forgets them. */
async function startCollector(): Promise<AsyncDisposable & { readonly url: string; bytes(): number }> {
  let bytes = 0;
  const server = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    request.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bytes: () => bytes,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
