import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { freePort } from "../servers/free-port.ts";
import type { PostgresServer } from "../servers/postgres.ts";
import { schemathesisCommand } from "../servers/schemathesis.ts";
import { until } from "../servers/until.ts";
import { type DeadLetterStage, deadLetterStage, untilDead } from "./dead-letter-stage.ts";
import { visit } from "./http-visitor.ts";
import { nastyRequests } from "./nasty-input.ts";
import type { OpenApiDocument } from "./openapi-client.ts";
import type { ServiceProcess } from "./service-process.ts";

const TOKEN = "of-the-fuzzer-and-long";

/** A service at work, with delivered, dead and parked events, whose API asks for a token and lets it ask at any pace. */
export interface FuzzStage extends AsyncDisposable {
  readonly address: string;
  readonly token: string;
  readonly service: ServiceProcess;
  readonly document: OpenApiDocument;
  /** Of events that are there: delivered, parked and dead. */
  readonly ids: readonly string[];
}

export async function fuzzStage(server: PostgresServer): Promise<FuzzStage> {
  const stage: DeadLetterStage = await deadLetterStage(server);
  const port = String(await freePort());
  const service = await stage.run({ PORT: port, ADMIN_TOKEN: TOKEN, API_REQUESTS_PER_SECOND: "100000" });
  await service.becomes("healthy");
  const { a1 = "", a2 = "", b1 = "" } = await stage.write("orders.outbox", "a1! a2 b1 c1! c2 c3");
  await stage.write("public.openoutbox_events", "d1 d2! d3");
  await untilDead(stage, 3);
  await until("the rest is delivered", () => service.stdout().includes("d1"));
  // Until then one route answers with 503, as documented.
  await until("everything is counted", async () => (await service.get("/stats")).status === 200);
  const document = (await service.get("/openapi.json")).json() as unknown as OpenApiDocument;
  return {
    address: `http://127.0.0.1:${port}`,
    token: TOKEN,
    service,
    document,
    ids: [b1, a2, a1],
    [Symbol.asyncDispose]: async () => {
      await service[Symbol.asyncDispose]();
      await stage[Symbol.asyncDispose]();
    },
  };
}

interface FuzzOptions {
  readonly seed: number;
  /** Of each operation. */
  readonly examples: number;
  readonly phases: string;
  readonly timeoutMs: number;
}

const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_schema_conformance",
  "unsupported_method",
  "allow_header_conformance",
];

/** Asks everything but what never ends; the report of what was not as documented, which is empty if all is well. */
export async function fuzzApi({ address, document, token }: FuzzStage, options: FuzzOptions): Promise<string> {
  const { examples, phases, seed, timeoutMs } = options;
  const args = [
    ...["run", `${address}/openapi.json`, "--checks", CHECKS.join(","), "--phases", phases],
    ...["--max-examples", String(examples), "--seed", String(seed), "--generation-database", "none"],
    ...["--header", `authorization: Bearer ${token}`, "--suppress-health-check", "all", "--request-timeout", "20"],
    ...streamsOf(document).flatMap((path) => ["--exclude-path", path]),
    ...["--continue-on-failure", "--no-color", "--warnings", "off"],
  ];
  const [program, ...before] = await schemathesisCommand();
  return await new Promise((resolve) => {
    // It keeps notes in the folder where it is started.
    const how = { cwd: tmpdir(), timeout: timeoutMs, maxBuffer: 100_000_000 };
    execFile(program, [...before, ...args], how, (error, stdout, stderr) => {
      const report = `${error?.message}\n${stdout}\n${stderr}`;
      resolve(error === null ? "" : report.replace(/(.{1,20}?)\1{20,}/gs, "$1[and so on]"));
    });
  });
}

/** Asks each operation, streams too, with each field spoilt in turn; what was answered by an error of the server's own. */
export async function askNasty({
  address,
  document,
  ids,
  token,
}: FuzzStage): Promise<{ asked: number; broken: string[] }> {
  const broken: string[] = [];
  let asked = 0;
  for (const { body, method, path } of nastyRequests(document, ids)) {
    asked += 1;
    const { status, body: text } = await visit(`${address}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { body }),
    });
    if (status < 200 || status >= 500)
      broken.push(`${method} ${path.slice(0, 300)} ${JSON.stringify(body)}: ${status} ${text}`);
  }
  return { asked, broken };
}

/** Addresses whose answers have no end. */
function streamsOf(document: OpenApiDocument): string[] {
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.values(operations).some(({ responses }) => "text/event-stream" in (responses["200"]?.content ?? {}))
      ? [path]
      : [],
  );
}

/** Whatever was asked, the service still works, and nothing in it was called a fault of its own. */
export async function requireSound({ address, service, token }: FuzzStage): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const status = await fetch(`${address}/api/v1/status`, { headers });
  assert.equal(status.status, 200);
  assert.notEqual((await service.get("/health")).json().status, "unhealthy");
}
