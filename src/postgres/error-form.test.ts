import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertWithin } from "../../test/servers/pace.ts";
import { type PostgresServer, startPostgres } from "../../test/servers/postgres.ts";
import { errorFormSql, fingerprintSql } from "./error-form.ts";

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ version: 15 });
});
after(async () => await server[Symbol.asyncDispose]());

type Failure = string | { readonly reason: string; readonly key: string };

/** Errors that belong together, group by group. */
const GROUPS: Readonly<Record<string, readonly Failure[]>> = {
  "a number in a sentence": [
    "http://shop answered 400 Bad Request; it said: no such customer 4711",
    "http://shop answered 400 Bad Request; it said: no such customer 4712",
    "http://shop answered 400 Bad Request; it said: no such customer KD-2026/0815",
    "http://shop answered 400 Bad Request; it said: no such customer cus_9sk2Hd81",
  ],
  "another sentence": [
    "http://shop answered 400 Bad Request; it said: customer 4711 is blocked",
    "http://shop answered 400 Bad Request; it said: customer 5 is blocked",
  ],
  "the same sentence with another status": [
    "http://shop answered 422 Unprocessable Entity; it said: no such customer 4711",
  ],
  "statuses without words of their own": [
    "http://shop answered 520: customer 1",
    "http://shop answered 520: customer 2",
  ],
  "a status right before a value": [`http://shop answered 521: "a"`, `http://shop answered 521: "b", "c"`],
  "another status before a value": [`http://shop answered 522: "a"`],
  "and another one": ["http://shop answered 599: customer 1"],
  "quoted names": [
    `http://shop answered 404 Not Found: customer "Müller & Söhne" can't be found`,
    `http://shop answered 404 Not Found: customer "Anna" can't be found`,
    `http://shop answered 404 Not Found: customer 'Bert' can't be found`,
  ],
  "a JSON answer": [
    `http://10.0.0.1:8080 answered 422 Unprocessable Entity; it said: {"error":"no such customer 4711","traceId":"4bf92f3577b34da6a3ce929d0e0e4736","at":"2026-11-18T07:26:10.123Z","retry":false}`,
    `http://10.0.0.2:8080 answered 422 Unprocessable Entity; it said: {"error": "no such customer 12", "traceId": "abcdef", "at": "2026-11-19T17:26:10+01:00", "retry": true}`,
    `http://10.0.0.3:8080 answered 422 Unprocessable Entity; it said: {"error":"no such customer \\"Anna\\"","traceId":null,"at":17}`,
  ],
  "a JSON answer of the same shape": [
    `http://10.0.0.1:8080 answered 422 Unprocessable Entity; it said: {"error":"amount is negative","traceId":"4bf92f3577b34da6a3ce929d0e0e4736","at":"2026-11-18T07:26:10.123Z","retry":false}`,
  ],
  "problem details": [
    `http://shop answered 403 Forbidden: {"type":"https://example.net/out-of-credit","title":"You do not have enough credit.","detail":"Your balance is 30, but that costs 50.","instance":"/account/anna/msgs/abc","accounts":["/account/anna"]}`,
    `http://shop answered 403 Forbidden: {"type":"https://example.net/out-of-credit","title":"You do not have enough credit.","detail":"Your balance is 1.50, but that costs 5,000.","instance":"/account/bert/msgs/xyz","accounts":["/account/bert","/account/carl"]}`,
  ],
  "a code": [
    `http://shop answered 400 Bad Request: {"code":"E1001","message":"validation failed","id":1}`,
    `http://shop answered 400 Bad Request: {"code":"E1001","message":"validation failed","id":2}`,
  ],
  "another code": [`http://shop answered 400 Bad Request: {"code":"E1002","message":"validation failed","id":1}`],
  "a list of fields": [
    `http://shop answered 400 Bad Request: {"message":"validation failed","fields":["street","city"]}`,
    `http://shop answered 400 Bad Request: {"message":"validation failed","fields":["name"]}`,
    `http://shop answered 400 Bad Request: {"message":"validation failed","fields":["a","b","c","d"]}`,
  ],
  "a page": [
    "http://shop answered 500 Internal Server Error; it said: <html><title>Error</title> Ref: 18.a1b2c3 at Wed, 18 Nov 2026 07:26:10 GMT</html>",
    "http://shop answered 500 Internal Server Error; it said: <html><title>Error</title> Ref: 77.ff at Thu, 3 Dec 2026 17:00:00 GMT</html>",
  ],
  "the event's key in the answer": [
    { key: "anna", reason: "http://shop answered 409 Conflict: tenant anna is being moved" },
    { key: "acme-corp", reason: "http://shop answered 409 Conflict: tenant acme-corp is being moved" },
    { key: "team+x.*(\\", reason: "http://shop answered 409 Conflict: tenant team+x.*(\\ is being moved" },
  ],
  "an address of a person": [
    "RabbitMQ refused it: mailbox anna@example.com is full",
    "RabbitMQ refused it: mailbox bert.b@mail.example.org is full",
  ],
  "long answers, cut": ["x", "y"].map(
    (it) =>
      `http://shop answered 400 Bad Request: {"message":"too long","value":"${it.repeat(it === "x" ? 400 : 399)} ${it}…`,
  ),
  "time-outs": ["It did not answer within 1500 ms", "It did not answer within 30 ms"],
  "a refused connection": ["connect ECONNREFUSED 10.0.0.1:443", "connect ECONNREFUSED 127.0.0.1:5432"],
  "a reset connection": ["read ECONNRESET"],
};

async function ask(expression: typeof fingerprintSql, failure: Failure): Promise<string> {
  const { reason, key } = typeof failure === "string" ? { reason: failure, key: null } : failure;
  const sql = `select ${expression({ reason: "$1::text", key: "$2::text" })} as text`;
  return (await server.query<{ text: string }>(sql, [reason, key])).rows[0]?.text ?? "";
}

test("H1 F3 numbers, ids, quoted values and what an answer says beside its message split no group of errors", async () => {
  const prints = new Map<string, string>();
  for (const [name, failures] of Object.entries(GROUPS)) {
    const forms = new Set(await Promise.all(failures.map((failure) => ask(errorFormSql, failure))));
    assert.equal(forms.size, 1, `${name}: ${[...forms].join("\n")}`);
    const [failure = ""] = failures;
    const print = await ask(fingerprintSql, failure);
    assert.match(print, /^[0-9a-f]{12}$/);
    assert.equal(prints.get(print), undefined, `${name} is another error`);
    prints.set(print, name);
  }
});

test("F3 a form reads like the error", async () => {
  const forms = {
    "http://10.0.0.1:80 answered 404 Not Found: no customer 4711": "http://<n> answered 404 Not Found: no customer <n>",
    'topic "orders" refused 12 bytes of event 0198c7a0-1111-7000-8000-000000000001 after 1.5 s':
      "topic <value> refused <n> bytes of event <n> after <n> s",
    'answered 400: {"code":"E1001","message":"not \\"x\\"","id":7}':
      "answered <n>: {code: <n>,message: not <value>} (E1001)",
  };
  for (const [reason, form] of Object.entries(forms)) assert.equal(await ask(errorFormSql, reason), form);
});

test("F3 the longest and strangest reasons are compared within milliseconds", async () => {
  const nasty = [
    "a".repeat(10_000),
    '"'.repeat(1_001),
    "\\\"'`".repeat(500),
    "1a-".repeat(3_000),
    "<n> ".repeat(3_000),
    "…",
  ];
  for (const reason of nasty) {
    const sql = `select count(${fingerprintSql({ reason: "r", key: "k" })}) from (select $1::text || n as r, $2::text || n as k from generate_series(1, 20) n) x`;
    const startedMs = performance.now();
    await server.query(sql, [reason, reason.slice(0, 900)]);
    await assertWithin(performance.now() - startedMs, 2_000, `20 times ${reason.slice(0, 20)}`);
  }
});
