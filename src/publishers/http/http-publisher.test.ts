import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { type AddressInfo, isIP, type LookupFunction } from "node:net";
import { after, before, test } from "node:test";
import { createCertificates } from "../../../test/servers/certificates.ts";
import { type HttpReceiver, startHttpReceiver } from "../../../test/servers/http-receiver.ts";
import { startTcpProxy } from "../../../test/servers/tcp-proxy.ts";
import { until } from "../../../test/servers/until.ts";
import { isRelayError } from "../../core/errors.ts";
import type { EventHeaders, Message } from "../../core/event.ts";
import type { Outcome } from "../../core/outcome.ts";
import type { Publisher } from "../../ports/publisher.ts";
import { type HttpPublisherOptions, httpPublisher } from "./http-publisher.ts";

let receiver: HttpReceiver;

before(async () => {
  receiver = await startHttpReceiver();
});

after(() => receiver[Symbol.asyncDispose]());

let written = 0;

function message(key: string | null, headers: EventHeaders = {}): Message {
  written += 1;
  const id = `event-${written}`;
  const payload = Buffer.from("{}");
  const event = { id, type: "t", key, payload, headers, correlationId: null, createdAt: null };
  return { event, topic: "t", key, headers, payload };
}

const acting = (manner: string, key: string | null = null) => message(key, { "x-manner": manner });

function show(outcome: Outcome | undefined): string {
  if (outcome === undefined) return "none";
  return "reason" in outcome ? `${outcome.kind} ${outcome.scope}: ${outcome.reason}` : outcome.kind;
}

async function published(publisher: Publisher, batch: readonly Message[], signal = new AbortController().signal) {
  const outcomes: Outcome[] = [];
  const report = (index: number, outcome: Outcome) => {
    outcomes[index] = outcome;
  };
  const error: unknown = await publisher.publish(batch, report, signal).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  return { outcomes: batch.map((_, index) => show(outcomes[index])), error, raw: outcomes };
}

async function withPublisher(
  options: Partial<HttpPublisherOptions>,
  use: (publisher: Publisher) => Promise<void>,
): Promise<void> {
  const publisher = httpPublisher({ url: `${receiver.origin}/here`, ...options });
  try {
    await use(publisher);
  } finally {
    await publisher.close();
  }
}

const idsAtReceiver = () => receiver.arrivals().map(({ headers }) => headers["idempotency-key"]);

test("A4 429 with Retry-After sets the pause, and the rest of the batch is not sent", () =>
  withPublisher({ concurrency: 1 }, async (publisher) => {
    const batch = [message("a"), acting("after:429:7", "b"), message("c"), message("b")];
    const { outcomes, raw } = await published(publisher, batch);
    assert.deepEqual([outcomes[0], outcomes[2], outcomes[3]], ["delivered", "skipped", "skipped"]);
    assert.match(outcomes[1]!, /^retry destination: .* answered 429/);
    assert.partialDeepStrictEqual(raw[1], { afterMs: 7_000 });
    assert.ok(!idsAtReceiver().includes(batch[2]!.event.id));
  }));

test("H1 A4 unrequested statuses below 200 are ignored", () =>
  withPublisher({ concurrency: 1 }, async (publisher) => {
    const batch = [acting("interim", "a"), acting("interim", "a")];
    const { error, outcomes } = await published(publisher, batch);
    assert.deepEqual([outcomes, error], [["delivered", "delivered"], null]);
    const ids = batch.map(({ event }) => event.id);
    assert.deepEqual(
      idsAtReceiver().filter((id) => ids.includes(String(id))),
      ids,
      "each arrived once",
    );
  }));

test("A4 a date in Retry-After is measured by the clock that was passed in", () => {
  const clock = { wallMs: () => Date.UTC(2026, 0, 1), monotonicMs: () => 0, sleep: async () => {} };
  return withPublisher({ clock }, async (publisher) => {
    const { raw } = await published(publisher, [acting("after:503:Thu, 01 Jan 2026 00:00:30 GMT")]);
    assert.partialDeepStrictEqual(raw[0], { kind: "retry", scope: "destination", afterMs: 30_000 });
  });
});

for (const manner of ["hang", "reset", "half"]) {
  test(`A4 D4 a receiver that answers by "${manner}" leaves that event alone unknown`, () =>
    withPublisher({ requestTimeoutMs: 1_500 }, async (publisher) => {
      const { error, outcomes } = await published(publisher, [acting(manner, "a"), message("a"), message("b")]);
      assert.deepEqual(outcomes, ["none", "skipped", "delivered"]);
      assert.ok(isRelayError(error, "PUBLISH_UNKNOWN"));
      assert.match(error.message, /gave no answer, so the event may have arrived/);
    }));
}

test("D4 an answer after the timeout is no answer, and the event has arrived all the same", () =>
  withPublisher({ requestTimeoutMs: 200 }, async (publisher) => {
    const late = acting("late:400");
    const { error, outcomes } = await published(publisher, [late]);
    assert.deepEqual([outcomes, isRelayError(error, "PUBLISH_UNKNOWN")], [["none"], true]);
    await until("it has arrived", () => idsAtReceiver().includes(late.event.id));
  }));

test("an answer without an end is cut off, and its status counts", () =>
  withPublisher({}, async (publisher) => {
    assert.deepEqual((await published(publisher, [acting("long"), message(null)])).outcomes, [
      "delivered",
      "delivered",
    ]);
  }));

const says = (status: number, body: string | Buffer, headers: EventHeaders = {}) =>
  message(null, { "x-manner": `says:${status}:${Buffer.from(body).toString("base64")}`, ...headers });

test("H1 D4 what the receiver answers is in the reason: in one line, bounded, without secrets", () => {
  const headers = { authorization: "Bearer s3cret-token", "x-api-key": "k-12345" };
  const url = `${receiver.origin}/hooks/T0ken?sig=abcd1234`;
  return withPublisher({ url, headers, hideAnswer: (text) => text.replace("Ann", "[hidden]") }, async (publisher) => {
    const reasonOf = async (it: Message) => (await published(publisher, [it])).outcomes[0]!;
    const plain = await reasonOf(says(422, "no such\n\u001b[31m\u202e\0customer 4711\r\n"));
    assert.match(plain, /^rejected event: .* answered 422 Unprocessable Entity; it said: no such \[31m customer 4711$/);
    assert.match(
      await reasonOf(says(500, "the disk is full")),
      /^retry event: .* answered 500 .*; it said: the disk is full$/,
    );
    assert.match(await reasonOf(says(503, "back at 5")), /^retry destination: .*; it said: back at 5$/);
    const echoed = await reasonOf(
      says(
        400,
        'POST /hooks/T0ken?sig=abcd1234 s3cret-token k-12345 Ann {"password":"p w","token": "t1"} Basic dTpwYXNz',
      ),
    );
    assert.match(echoed, /it said: POST \S+ \S+ \S+ \[hidden\] /);
    assert.doesNotMatch(echoed, /T0ken|abcd1234|s3cret|k-12345|Ann|p w|t1|dTpwYXNz/);
    const long = await reasonOf(says(422, "é".repeat(10_000)));
    assert.ok(long.endsWith(`it said: ${"é".repeat(499)}…`), long.slice(-40));
    const page = says(502, "<html><style>a{}</style><h1>Bad&nbsp;gateway</h1>", { "x-answer-type": "text/html" });
    assert.match(await reasonOf(page), /it said: Bad gateway$/);
    for (const silent of [says(422, ""), says(422, Buffer.alloc(99)), says(422, "x", { "x-answer-coding": "gzip" })]) {
      assert.doesNotMatch(await reasonOf(silent), /it said/);
    }
    assert.match(await reasonOf(acting("endless:422")), /it said: no such customer\. no such/);
  });
});

test("H1 what differs from event to event in an answer is not in the reason that all events share", () =>
  withPublisher({}, async (publisher) => {
    const { raw } = await published(publisher, [says(422, "unknown customer Ann"), says(422, "unknown customer Bob")]);
    const [first, second] = raw.map((outcome) => ("reason" in outcome ? outcome.commonReason : undefined));
    assert.ok(first !== undefined && !first.includes("customer"), first);
    assert.equal(first, second);
  }));

test("A4 a server with another protocol is distinguished from one that does not answer", () =>
  withPublisher({}, async (publisher) => {
    const { outcomes } = await published(publisher, [acting("garbage")]);
    assert.match(outcomes[0]!, /^retry destination: .* does not speak HTTP/);
  }));

test("an abort ends the connections of its own publish only", () =>
  withPublisher({}, async (publisher) => {
    const abort = new AbortController();
    const hanging = acting("hang");
    const given = published(publisher, [hanging], abort.signal);
    const other = published(publisher, [acting("late:300")]);
    await until("it hangs", () => idsAtReceiver().includes(hanging.event.id));
    abort.abort();
    const { error, outcomes } = await given;
    assert.deepEqual([outcomes, isRelayError(error, "PUBLISH_UNKNOWN")], [["none"], true]);
    assert.deepEqual((await other).outcomes, ["delivered"]);
  }));

test("A3 when the time for sending is over, the rest is reported as not sent, in order", () =>
  withPublisher({ sendMs: 100, concurrency: 1 }, async (publisher) => {
    const batch = [acting("late:150", "a"), message("a"), message("b"), message(null)];
    const { error, outcomes } = await published(publisher, batch);
    assert.deepEqual([error, outcomes], [null, ["delivered", "skipped", "skipped", "skipped"]]);
  }));

test("no more than so many requests are at a host at a time, over all publishes", async () => {
  await using proxy = await startTcpProxy(receiver.port);
  const url = `http://127.0.0.1:${proxy.port}/`;
  await withPublisher({ url, concurrency: 3, sendMs: 60_000 }, async (publisher) => {
    const batches = [0, 1].map(() => Array.from({ length: 20 }, () => acting("late:20")));
    const results = await Promise.all(batches.map((batch) => published(publisher, batch)));
    for (const { outcomes } of results) assert.ok(outcomes.every((outcome) => outcome === "delivered"));
    assert.equal(proxy.connectionCount, 3);
  });
});

test("A20 a name is looked up once per connection, and the connection goes where the check was", async () => {
  const answers = [["127.0.0.1"], ["169.254.169.254"], ["93.184.215.14", "10.0.0.1"]];
  let asked = 0;
  const lookup = ((_host, _options, callback) => {
    callback(
      null,
      answers[asked++]!.map((address) => ({ address, family: isIP(address) })),
    );
  }) as LookupFunction;
  const url = { of: () => `http://rebinding.example:${receiver.port}/x`, origin: null, scope: "event" } as const;
  await withPublisher({ url, lookup, allowPrivate: true, concurrency: 1 }, async (publisher) => {
    assert.deepEqual((await published(publisher, [message(null)])).outcomes, ["delivered"]);
    assert.deepEqual((await published(publisher, [message(null)])).outcomes, ["delivered"]);
    assert.equal(asked, 1);
  });
  for (const allowPrivate of [true, false]) {
    await withPublisher({ url, lookup, allowPrivate }, async (publisher) => {
      assert.match(
        (await published(publisher, [message(null)])).outcomes[0]!,
        /^rejected event: .*private or reserved/,
      );
    });
  }
});

test("F2 where the address depends on the type, one that is wrong stops the events of its topic only", async () => {
  const url = {
    of: ({ topic }: Message) => `${receiver.origin}/${topic}`,
    origin: receiver.origin,
    scope: "topic",
  } as const;
  await withPublisher({ url, concurrency: 1 }, async (publisher) => {
    const batch = [acting("status:404"), message(null), { ...message(null), topic: "other" }];
    const { outcomes } = await published(publisher, batch);
    assert.match(outcomes[0]!, /^retry topic: .* answered 404/);
    assert.deepEqual(outcomes.slice(1), ["skipped", "delivered"]);
  });
  const astray = { ...url, of: () => "http://elsewhere.example/" };
  await withPublisher({ url: astray }, async (publisher) => {
    assert.match(
      (await published(publisher, [message(null)])).outcomes[0]!,
      /^rejected event: the event's address is not below/,
    );
  });
});

test("A20 certificates: an untrusted one is refused with a clear reason, a trusted one is accepted, also with a client certificate", async () => {
  const { authority, client, server } = await createCertificates(receiver.folder);
  const files = { key: readFileSync(server.keyFile), cert: server.certificate, ca: authority.certificate };
  const https = createServer({ ...files, requestCert: true, rejectUnauthorized: true }, (_request, response) => {
    response.end();
  });
  await new Promise<void>((resolve) => https.listen(0, "127.0.0.1", resolve));
  const url = `https://127.0.0.1:${(https.address() as AddressInfo).port}/`;
  try {
    await withPublisher({ url }, async (publisher) => {
      assert.match(
        (await published(publisher, [message(null)])).outcomes[0]!,
        /its certificate is not signed by a trusted authority/,
      );
    });
    const tls = { ca: authority.certificate, cert: client.certificate, key: client.key };
    await withPublisher({ url, tls }, async (publisher) => {
      assert.deepEqual((await published(publisher, [message(null)])).outcomes, ["delivered"]);
    });
  } finally {
    https.closeAllConnections();
    await new Promise((resolve) => https.close(resolve));
  }
});

test("options that cannot be are refused without showing a secret", () => {
  const url = "https://host/";
  const cases: readonly (readonly [HttpPublisherOptions, RegExp])[] = [
    [{ url: "ftp://user:pass-1@host/" }, /no address of the form/],
    [{ url, concurrency: 0 }, /concurrency = 0/],
    [{ url, requestTimeoutMs: 0.5 }, /requestTimeoutMs/],
    [{ url, headers: { "a b": "pass-1" } }, /"a b"/],
    [{ url, headers: { authorization: "pass-1\r\nx: y" } }, /a value of the header authorization/],
    [{ url, signingSecrets: ["pass-1"] }, /signing secret/],
    [{ url, method: "GET" as "POST" }, /has the method GET/],
  ];
  for (const [options, said] of cases) {
    assert.throws(
      () => httpPublisher(options),
      (error: Error) => said.test(error.message) && !error.message.includes("pass-1"),
    );
  }
});
