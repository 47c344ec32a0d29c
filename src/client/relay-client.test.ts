import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { freePort } from "../../test/servers/free-port.ts";
import { RelayApiError } from "./relay-api-error.ts";
import { createRelayClient, type RelayClient } from "./relay-client.ts";

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

type Respond = (asked: Asked, response: ServerResponse) => void;

/** A service on 127.0.0.1 that answers as the test says, and notes what it was asked. */
async function serviceThat(respond: Respond) {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const { headers, method = "", url = "" } = request;
    const body = (await request.toArray()).join("");
    asked.push({ method, url, headers, body });
    respond(asked.at(-1)!, response);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  };
  return { url, asked, [Symbol.asyncDispose]: close };
}

const answers =
  (body: object, status = 200, headers: Readonly<Record<string, string>> = {}): Respond =>
  (_, response) =>
    void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));

async function failureOf(call: Promise<unknown>): Promise<RelayApiError> {
  const error: unknown = await call.then(
    () => assert.fail("it did not fail"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof RelayApiError, String(error));
  return error;
}

const pausing = (client: RelayClient) => client.pausePipeline({ name: "orders.outbox->http", reason: "a deploy" });

describe("a call goes where the API document says", () => {
  test("H4 values stand in path, query and body; names are encoded, and what is undefined is left out", async () => {
    await using service = await serviceThat(answers({ pipelines: [] }));
    const client = createRelayClient({ url: `${service.url}/relay/`, token: "secret" });
    await client.pausePipeline({ name: "orders.outbox->http", reason: "a deploy" });
    await client.listDeadLetters({ q: "type:a & b", limit: 5, resolved: true, key: undefined });
    await client.resumePipeline({ name: "a/b" });
    const [pause, list, resume] = service.asked;
    assert.deepEqual(
      [pause?.method, pause?.url, JSON.parse(pause?.body ?? "")],
      ["POST", "/relay/api/v1/pipelines/orders.outbox-%3Ehttp/pause", { reason: "a deploy" }],
    );
    assert.equal(list?.url, "/relay/api/v1/dead-letters?q=type%3Aa+%26+b&limit=5&resolved=true");
    assert.deepEqual([resume?.url, resume?.body], ["/relay/api/v1/pipelines/a%2Fb/resume", "{}"]);
    assert.deepEqual(
      service.asked.map(({ headers }) => headers.authorization),
      Array(3).fill("Bearer secret"),
    );
  });

  test("H4 the token is asked for before each call, and fetch can be another one", async () => {
    await using service = await serviceThat(answers({ pipelines: [] }));
    const tokens = ["one", "two"];
    const seen: string[] = [];
    const client = createRelayClient({
      url: service.url,
      token: async () => tokens.shift() ?? "",
      fetch: async (input, init) => {
        seen.push(String(input));
        return await fetch(input, init);
      },
    });
    await client.status();
    await client.listPipelines();
    assert.deepEqual(
      service.asked.map(({ headers }) => headers.authorization),
      ["Bearer one", "Bearer two"],
    );
    assert.deepEqual(seen, [`${service.url}/api/v1/status`, `${service.url}/api/v1/pipelines`]);
  });

  test("H4 pages follow the cursor to the end", async () => {
    await using service = await serviceThat(({ url }, response) => {
      const cursor = new URL(url, "http://it").searchParams.get("cursor");
      answers({ events: [{ id: cursor ?? "first" }], cursor: cursor === null ? "second" : null })(
        {} as Asked,
        response,
      );
    });
    const ids: string[] = [];
    for await (const { events } of createRelayClient({ url: service.url }).pages("listEvents", { q: "state:dead" })) {
      ids.push(...events.map(({ id }) => id));
    }
    assert.deepEqual(ids, ["first", "second"]);
    assert.ok(service.asked.every(({ url }) => url.includes("q=state%3Adead")));
  });
});

describe("a call that fails says what happened and what to do", () => {
  test("H4 by the problem that the service tells", async () => {
    const problem = { code: "CONFLICT", detail: "The plan was changed", fix: "Read it again." };
    await using service = await serviceThat(answers(problem, 409));
    const error = await failureOf(createRelayClient({ url: service.url }).runReplay({ id: "1" }));
    assert.deepEqual(
      [error.status, error.code, error.fix, error.isRetryable],
      [409, "CONFLICT", "Read it again.", false],
    );
    assert.equal(error.message, "runReplay: The plan was changed. [CONFLICT] Read it again.");
  });

  test("H4 also where a proxy answers instead, or something that is no relay", async () => {
    await using proxy = await serviceThat(
      (_, response) => void response.writeHead(502).end("<html>Bad gateway</html>"),
    );
    const bad = await failureOf(createRelayClient({ url: proxy.url }).status());
    assert.deepEqual([bad.status, bad.code, bad.isRetryable], [502, "HTTP_502", true]);
    await using page = await serviceThat((_, response) => void response.writeHead(200).end("<html>Hello</html>"));
    const wrong = await failureOf(createRelayClient({ url: page.url }).status());
    assert.deepEqual([wrong.code, wrong.isRetryable], ["NOT_THE_API", false]);
  });

  test("H4 a limit says how long to wait", async () => {
    await using service = await serviceThat(answers({ code: "TOO_MANY" }, 429, { "retry-after": "3" }));
    const error = await failureOf(createRelayClient({ url: service.url }).status());
    assert.deepEqual([error.retryAfterMs, error.isRetryable], [3_000, true]);
  });

  test("H4 nobody listens, or nobody answers in time", async () => {
    const nobody = await failureOf(pausing(createRelayClient({ url: `http://127.0.0.1:${await freePort()}` })));
    assert.deepEqual([nobody.status, nobody.code], [0, "SERVICE_UNREACHABLE"]);
    assert.match(nobody.message, /ECONNREFUSED/);
    await using silent = await serviceThat(() => {});
    const late = await failureOf(pausing(createRelayClient({ url: silent.url, timeoutMs: 50 })));
    assert.deepEqual([late.status, late.code, late.isRetryable], [0, "SERVICE_TIMEOUT", true]);
  });

  test("H4 the caller's own signal ends a call, and the wait for a plan", async () => {
    await using silent = await serviceThat(() => {});
    const stop = new AbortController();
    const calling = createRelayClient({ url: silent.url }).status({ signal: stop.signal });
    stop.abort(new Error("enough"));
    await assert.rejects(calling, /enough/);

    await using service = await serviceThat(answers({ state: "running" }));
    const waiting = new AbortController();
    const client = createRelayClient({ url: service.url });
    const plan = client.waitForReplay("1", {
      signal: waiting.signal,
      onProgress: () => waiting.abort(new Error("enough")),
    });
    await assert.rejects(plan, /enough/);
  });
});
