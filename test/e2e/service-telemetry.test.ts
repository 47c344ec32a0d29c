import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { startKafka } from "../servers/kafka.ts";
import { readTopic } from "../servers/kafka-reader.ts";
import { startPrometheus } from "../servers/promtool.ts";
import { type Receiver, startReceiver } from "../servers/receiver.ts";
import { until } from "../servers/until.ts";
import { ORDERS } from "./outbox-tables.ts";
import { runCommand, type ServiceProcess, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const server = serverOfFile();
const stage = stagesOn(server, "telemetry", [ORDERS]);

async function service(it: Stage, env: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
  return startService(["run"], {
    DATABASE_URL: it.relayUrl,
    OUTBOX_SCHEMAS: "orders",
    OUTBOX_DESTINATION: "stdout:",
    SERVICE_NAME: "shop-relay",
    RELAY_ID: "relay-1",
    PORT: String(await freePort()),
    ...env,
  });
}

interface Sent {
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
}

const sentBy = (process: ServiceProcess): Sent[] =>
  process
    .stdout()
    .split("\n")
    .filter((line) => line.startsWith('{"id":') && line.endsWith("}"))
    .map((line) => JSON.parse(line) as Sent);

async function insert({ sql }: Stage, type: string, headers: object | null = null, count = 1): Promise<string[]> {
  const rows = await sql<{ id: string }>(
    `insert into orders.outbox (aggregate_id, event_type, payload, headers)
     select 'key-' || n, $1, '{}', $2 from generate_series(1, $3::int) n returning id`,
    [type, headers, count],
  );
  return rows.map(({ id }) => id);
}

describe("telemetry of the service", { concurrency: 3 }, () => {
  test("A21 A11: metrics are pushed to a real Prometheus and shown on a port of their own, in both formats", async () => {
    await using it = await stage();
    await using prometheus = await startPrometheus();
    const port = await freePort();
    const push = { ALLOY_PUSH_URL: prometheus.writeUrl, METRICS_PUSH_INTERVAL: "1s" };
    await using running = await service(it, { METRICS_PORT: String(port), ...push });
    await running.becomes("healthy");
    await insert(it, "order.placed", null, 7);
    const pushed = await until("the counter is there", async () => {
      const series = await prometheus.query("outbox_relay_events_published_total");
      return series[0]?.value === 7 && series[0].labels;
    });
    assert.deepEqual(pushed, {
      __name__: "outbox_relay_events_published_total",
      job: "shop-relay",
      instance: "relay-1",
      source: "orders.outbox",
      destination: "stdout",
    });
    await until("the buckets are a histogram", async () => {
      const query = "histogram_quantile(0.99, outbox_relay_delivery_latency_seconds_bucket) < 60";
      return ((await prometheus.query(query))[0]?.value ?? 0) > 0;
    });
    const owned = /^outbox_relay_lanes\{source="orders.outbox",destination="stdout",state="owned"\} 4$/m;
    await until("it owns all lanes", async () => owned.test((await running.get("/metrics")).body));
    for (const [accept, told] of [
      ["application/openmetrics-text", /^# TYPE outbox_relay_events_published counter$/m],
      ["text/plain;version=0.0.4", /^# TYPE outbox_relay_events_published_total counter$/m],
    ] as const) {
      const response = await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { accept } });
      assert.ok(response.headers.get("content-type")?.startsWith(accept.split(";")[0]!));
      const text = await response.text();
      assert.match(text, told);
      assert.match(text, owned);
      assert.match(text, /^process_cpu_seconds_total [\d.]+$/m);
      assert.match(text, /^nodejs_eventloop_lag_p99_seconds [\d.e-]+$/m);
    }
    assert.equal((await fetch(`http://127.0.0.1:${port}/health`)).status, 404);
  });

  test("A21 C6: lines of the wanted level are pushed to Loki with labels and correlation ids, the last one too", async () => {
    await using it = await stage();
    await using loki = await startReceiver();
    await using running = await service(it, {
      LOKI_HOST: loki.url,
      LOKI_LEVEL: "info",
      LOG_LEVEL: "warn",
      LOG_EVENTS: "all",
    });
    await running.becomes("healthy");
    const [id] = await insert(it, "order.placed");
    const line = await until("the line is there", () => lokiLines(loki).find(({ eventId }) => eventId === id));
    assert.match(String(line.correlationId), /^[0-9a-f-]{36}$/);
    assert.deepEqual([line.service, line.level, line.event, line.attempt], ["shop-relay", "info", "IntentRelayed", 1]);
    assert.match(String(line.time), /^\d{4}-\d\d-\d\dT/);
    assert.ok("version" in line);
    running.kill("SIGTERM");
    assert.equal((await running.ended).code, 0);
    assert.ok(lokiLines(loki).some(({ message }) => message === "stopped"));
    assert.deepEqual(running.logs(), [], "standard output has its own level");
  });

  test("A21: receivers that are dead, silent or failing disturb nothing, and are told of once and counted", async () => {
    await using it = await stage();
    await using silent = await startReceiver();
    silent.manner = "silent";
    await using failing = await startReceiver();
    failing.manner = 500;
    await using running = await service(it, {
      ALLOY_PUSH_URL: `http://127.0.0.1:${await freePort()}/api/v1/write`,
      METRICS_PUSH_INTERVAL: "1s",
      LOKI_HOST: failing.url,
      OTEL_EXPORTER_OTLP_ENDPOINT: silent.url,
      OTEL_TRACES_SAMPLER_ARG: "1",
    });
    await insert(it, "order.placed", null, 2_000);
    await until("all is delivered", () => sentBy(running).length === 2_000);
    await running.becomes("healthy");
    for (const receiver of ["remote_write", "loki", "traces"]) {
      await until(`${receiver} is counted`, async () => {
        const { body } = await running.get("/metrics");
        const sample = `outbox_relay_telemetry_push_failures_total\\{receiver="${receiver}"\\} (\\d+)`;
        return Number(new RegExp(sample).exec(body)?.[1]) >= 1;
      });
    }
    // A failure is counted before it is told.
    for (const receiver of ["remote_write", "loki", "traces"]) {
      await running.logged(`the failure of ${receiver}`, (line) => line.receiver === receiver);
    }
    const told = running.logs((line) => "receiver" in line);
    assert.deepEqual(told.map(({ receiver, level }) => `${level} ${receiver}`).sort(), [
      "warn loki",
      "warn remote_write",
      "warn traces",
    ]);
    running.kill("SIGTERM");
    assert.equal((await running.ended).code, 0);
  });

  test("A21 C6 C2: a poison event has lines with its whole context and the stack of what was thrown", async () => {
    await using it = await stage();
    await using running = await service(it, { TOPIC_TEMPLATE: "{header:topic}" });
    const [id] = await insert(it, "order.placed");
    const failed = await running.logged("the attempt", ({ event }) => event === "IntentRelayFailed");
    assert.deepEqual([failed.eventId, failed.eventType, failed.attempt], [id, "order.placed", 1]);
    assert.match(String(failed.stack), /TOPIC_TEMPLATE[^\n]*\n\s+at /);
    const dead = await running.logged("the end", ({ event }) => event === "IntentDeadLettered");
    assert.deepEqual([dead.level, dead.eventId, dead.key, dead.attempt], ["error", id, "key-1", 1]);
    assert.match(String(dead.correlationId), /^[0-9a-f-]{36}$/);
    const errors = dead.errors as { at: string; attempt: number; reason: string }[];
    assert.deepEqual([errors.length, errors[0]?.attempt, errors[0]?.reason], [1, 1, dead.reason]);
    for (const time of [dead.firstFailedAt, dead.lastFailedAt, errors[0]?.at]) {
      assert.ok(Math.abs(Date.parse(String(time)) - Date.now()) < 60_000, String(time));
    }
    await until("it is counted", async () => {
      const { body } = await running.get("/metrics");
      return /delivery_attempts_total\{destination="stdout",outcome="failed",error_type="EVENT_UNREADABLE"\} 1/.test(
        body,
      );
    });
  });
});

describe("tracing of the service", { concurrency: 2 }, () => {
  const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
  const SPAN = "00f067aa0ba902b7";
  const context = (flags: string) => `00-${TRACE}-${SPAN}-${flags}`;

  test("A21: the row's context is linked and reaches the receiver unchanged, and only once", async () => {
    await using it = await stage();
    await it.sql("alter table orders.outbox add column traceparent text, add column tracestate text");
    await using collector = await startReceiver();
    await using running = await service(it, {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: "api-key=collector-key",
      OTEL_TRACES_SAMPLER_ARG: "0",
    });
    const [traced] = await insert(it, "order.placed", { traceparent: context("01"), other: "x" });
    const [silent] = await insert(it, "order.placed", { traceparent: context("00") });
    const [plain] = await insert(it, "order.placed");
    const [inColumns] = await it.sql<{ id: string }>(
      `insert into orders.outbox (event_type, traceparent, tracestate) values ('order.placed', $1, 'v=1') returning id`,
      [context("00")],
    );
    await until("all are sent", () => sentBy(running).length === 4);
    const headersOf = (id: string | undefined) => sentBy(running).find((sent) => sent.id === id)?.headers ?? {};
    assert.equal(headersOf(traced).traceparent, context("01"));
    assert.equal(headersOf(traced).other, "x");
    assert.equal(headersOf(silent).traceparent, context("00"));
    assert.equal("traceparent" in headersOf(plain), false);
    const { traceparent, tracestate } = headersOf(inColumns?.id);
    assert.deepEqual([traceparent, tracestate], [context("00"), "v=1"]);
    running.kill("SIGTERM");
    assert.equal((await running.ended).code, 0);
    const [event, publish, ...more] = spansIn(collector);
    assert.deepEqual(more, [], "neither the event that nobody records nor the one without a context has spans");
    assert.deepEqual([event?.name, event?.traceId, event?.parentSpanId], ["send order.placed", TRACE, SPAN]);
    const attributes = Object.fromEntries(event!.attributes.map(({ key, value }) => [key, value.stringValue]));
    assert.deepEqual(
      [attributes["messaging.system"], attributes["messaging.destination.name"], attributes["messaging.message.id"]],
      ["stdout", "order.placed", traced],
    );
    assert.deepEqual(
      publish?.links?.map((link) => [link.traceId, link.spanId]),
      [[TRACE, SPAN]],
    );
    const [{ path, headers, body } = assert.fail("nothing came")] = collector.requests;
    assert.deepEqual([path, headers["api-key"]], ["/v1/traces", "collector-key"]);
    assert.match(body.toString(), /"service.name","value":\{"stringValue":"shop-relay"\}/);
  });

  test("A21: a traced event without a context begins a trace that its message carries on", async () => {
    await using it = await stage();
    await using collector = await startReceiver();
    await using running = await service(it, {
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
      OTEL_TRACES_SAMPLER_ARG: "1",
    });
    const ids = await insert(it, "order.placed", null, 20);
    await until("all are sent", () => sentBy(running).length === 20);
    running.kill("SIGTERM");
    await running.ended;
    const spans = new Map<string, string | undefined>(
      spansIn(collector).map((span) => [`00-${span.traceId}-${span.spanId}-01`, messageIdOf(span)]),
    );
    const carried = sentBy(running).map(({ id, headers }) => [id, spans.get(headers.traceparent ?? "")]);
    assert.deepEqual(carried.sort(), ids.map((id) => [id, id]).sort());
  });
});

test("A21 A11: into Kafka, exactly once, each message has one context; a short run pushes its metrics at the end", async () => {
  await using kafka = await startKafka();
  await using it = await stage();
  await using receiver = await startReceiver();
  const given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  await insert(it, "order.placed", { traceparent: given });
  await insert(it, "order.placed", null, 10);
  const [refused] = await insert(it, "no/topic");
  const { code, stderr } = await runCommand(["run", "--once"], {
    DATABASE_URL: it.relayUrl,
    OUTBOX_SCHEMAS: "orders",
    KAFKA_BROKERS: kafka.brokers,
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_TRACES_SAMPLER_ARG: "1",
    ALLOY_PUSH_URL: `${receiver.url}/api/v1/write`,
  });
  assert.equal(code, 5, stderr);
  const records = await readTopic(kafka.directBrokers, "order.placed");
  const contexts = records.map(({ headers }) => headers.filter(([name]) => name === "traceparent").map(String));
  assert.deepEqual([records.length, new Set(contexts.map((found) => found.length))], [11, new Set([1])]);
  assert.ok(contexts.flat().includes(`traceparent,${given}`));
  const spans = spansIn(receiver);
  // One bad event spoils a transaction for the others, which are then sent once more.
  const sent = spans.filter((span) => span.name === "send order.placed" && outcomeOf(span) === undefined);
  assert.equal(sent.filter((span) => messageIdOf(span) !== undefined).length, 11);
  const failed = spans.filter((span) => messageIdOf(span) === refused);
  assert.deepEqual([failed.length > 0, ...new Set(failed.map(errorTypeOf))], [true, "REJECTED"]);
  const pushed = receiver.requests.filter(({ path }) => path === "/api/v1/write");
  assert.match(pushed.at(-1)?.body.toString("latin1") ?? "", /outbox_relay_events_published_total/);
  assert.match(pushed.at(-1)?.body.toString("latin1") ?? "", /error_type.{0,6}REJECTED/);
});

test("A21: a METRICS_PORT that is taken is told by its name, and nothing starts", async () => {
  await using other = await startReceiver();
  const { code, stderr, stdout } = await runCommand(["run"], {
    DATABASE_URL: server().url,
    OUTBOX_SCHEMAS: "orders",
    OUTBOX_DESTINATION: "stdout:",
    PORT: String(await freePort()),
    METRICS_PORT: new URL(other.url).port,
  });
  assert.equal(code, 2, stderr);
  assert.match(stderr + stdout, /METRICS_PORT \d+ on 127\.0\.0\.1 is in use: set METRICS_PORT to a free port/);
});

interface OtlpSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
}

function attributeOf(name: string): (span: OtlpSpan) => string | undefined {
  return ({ attributes }) => attributes.find(({ key }) => key === name)?.value.stringValue;
}

const messageIdOf = attributeOf("messaging.message.id");
const outcomeOf = attributeOf("outbox_relay.outcome");
const errorTypeOf = attributeOf("error.type");

/** Spans of events first. */
function spansIn({ requests }: Receiver): OtlpSpan[] {
  const spans = requests.flatMap(({ path, body }) => {
    if (path !== "/v1/traces") return [];
    const { resourceSpans } = JSON.parse(body.toString()) as {
      resourceSpans: { scopeSpans: { spans: OtlpSpan[] }[] }[];
    };
    return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
  });
  return spans.sort((a, b) => Number(messageIdOf(a) === undefined) - Number(messageIdOf(b) === undefined));
}

function lokiLines({ requests }: Receiver): Record<string, unknown>[] {
  return requests.flatMap(({ body }) => {
    const { streams } = JSON.parse(body.toString()) as { streams: { values: [string, string][] }[] };
    return streams.flatMap(({ values }) => values.map(([, line]) => JSON.parse(line) as Record<string, unknown>));
  });
}
