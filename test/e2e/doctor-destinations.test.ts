import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { describe, test } from "node:test";
import { createCertificates } from "../servers/certificates.ts";
import { freePort } from "../servers/free-port.ts";
import { assertWithin } from "../servers/pace.ts";
import { createScratch } from "../servers/scratch.ts";
import { ORDERS } from "./outbox-tables.ts";
import { runCommand } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "doctor", [ORDERS]);

interface Finding {
  readonly severity: string;
  readonly check: string;
  readonly what: string;
}

interface Listening extends AsyncDisposable {
  readonly port: number;
}

/** Takes connections on a free port of this machine until it is disposed of, with all of them. */
async function listening(server: Server): Promise<Listening> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket.on("error", () => {}).on("close", () => sockets.delete(socket)));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** One destination of every kind at this port, and what the doctor says of each. */
async function ask(it: Stage, port: number, more: Record<string, string> = {}): Promise<Map<string, string>> {
  const at = `127.0.0.1:${port}`;
  const urls = {
    amqp: { url: `amqp://guest:guest@${at}/?exchange=events` },
    bullmq: { url: `bullmq+redis://${at}/0?queue=events` },
    kafka: { url: `kafka://${at}`, delivery: "at-least-once" },
    nats: { url: `nats://${at}?stream=EVENTS` },
    redis: { url: `redis://${at}/0` },
    sqs: { url: `sqs://eu-central-1/events?endpoint=http://${at}` },
    web: { url: `https://${at}/hooks` },
  };
  const env = {
    DATABASE_URL: it.relayUrl,
    OUTBOX_SCHEMAS: "orders",
    OUTBOX_DESTINATIONS: JSON.stringify(urls),
    OUTBOX_ROUTES: JSON.stringify(Object.keys(urls).map((name) => ({ types: [`${name}.*`], destination: name }))),
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    ...more,
  };
  const { code, stderr, stdout } = await runCommand(["doctor", "-o", "json"], env);
  assert.equal(code, 3, stderr + stdout);
  const found = (JSON.parse(stdout) as Finding[]).filter(({ check }) => check === "destination");
  const said = new Map<string, string>();
  for (const name of Object.keys(urls)) {
    const [first, ...others] = found.filter(({ what }) => new RegExp(`\\b${name}\\b`).test(what.split(":")[0] ?? ""));
    assert.deepEqual([first?.severity, others.length], ["error", 0], `${name}: ${stdout}`);
    said.set(name, first?.what ?? "");
  }
  return said;
}

describe("outbox-relay doctor and destinations that cannot work", { concurrency: true }, () => {
  test("A17 doctor names an address that belongs to another protocol, for every kind of destination", async () => {
    await using it = await stage();
    await using web = await listening(createHttpServer((_, response) => response.writeHead(404).end()));
    const said = await ask(it, web.port);
    assert.match(said.get("amqp") ?? "", /amqp: RabbitMQ at 127.*is not RabbitMQ/);
    assert.match(said.get("bullmq") ?? "", /bullmq: Redis at 127.*what answers there is no Redis/);
    assert.match(said.get("kafka") ?? "", /kafka: Kafka at 127.*is not Kafka/);
    assert.match(said.get("nats") ?? "", /nats: NATS at 127.*(?:no greeting|is not NATS)/);
    assert.match(said.get("redis") ?? "", /redis: Redis at 127.*what answers there is no Redis/);
    assert.match(said.get("web") ?? "", /web: https:\/\/127.*may not speak TLS/);
  });

  test("A17 doctor ends in bounded time where a host takes connections and never answers, and names each", async () => {
    await using it = await stage();
    await using silent = await listening(createServer());
    const startedMs = performance.now();
    const said = await ask(it, silent.port, { PUBLISH_TIMEOUT: "1s" });
    assert.equal(said.size, 7);
    // Every question of the doctor has an end.
    await assertWithin(performance.now() - startedMs, 60_000, "the doctor");
  });

  test("A17 doctor says that nothing listens at an address, and that a certificate is not trusted", async () => {
    await using it = await stage();
    const port = await freePort();
    for (const [name, what] of await ask(it, port))
      assert.match(what, new RegExp(`^${name} cannot be reached: .*:${port}: connection refused .*nothing listens`));
    const folder = createScratch("doctor-certificates", "memory");
    try {
      const { server: identity } = await createCertificates(folder.path);
      const { certificate: cert, key } = identity;
      await using secure = await listening(createHttpsServer({ cert, key }, (_, response) => response.end()));
      const said = await ask(it, secure.port);
      assert.match(said.get("web") ?? "", /its certificate is not signed by a trusted authority .*: check HTTP_TLS_CA/);
    } finally {
      await folder.remove();
    }
  });
});
