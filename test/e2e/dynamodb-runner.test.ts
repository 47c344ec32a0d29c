import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type DynamoDbLink, dynamoDbLink } from "../../src/dynamodb/dynamodb-link.ts";
import { type DynamoDbOutbox, dynamodbOutbox } from "../../src/dynamodb-outbox.ts";
import { CheckpointTable, createCheckpointTable } from "../../src/dynamodb-runner/checkpoints.ts";
import { DYNAMODB_ENVIRONMENT, type DynamoDb, startDynamoDb } from "../servers/dynamodb.ts";
import { writeRelays } from "../servers/dynamodb-relays.ts";
import { freePort } from "../servers/free-port.ts";
import { type HttpReceiver, startHttpReceiver } from "../servers/http-receiver.ts";
import { createScratch, type Scratch } from "../servers/scratch.ts";
import { until } from "../servers/until.ts";
import { runCommand, startService } from "./service-process.ts";

const CREDENTIALS = { accessKeyId: "local", secretAccessKey: "local" };
const SECRET = "hunter-two-and-a-half";

let dynamodb: DynamoDb;
let payroll: HttpReceiver;
let mail: HttpReceiver;
let scratch: Scratch;

before(async () => {
  scratch = createScratch("dynamodb-relays", "memory");
  [dynamodb, payroll, mail] = await Promise.all([startDynamoDb(), startHttpReceiver(), startHttpReceiver()]);
  writeRelays(scratch.path, [
    { type: "SyncToPayroll", url: payroll.origin, delaysMs: [100, 200, 400, 800, 1_600, 3_000, 3_000] },
    { type: "NotifyUser", url: mail.origin.replace("http://", `http://relay:${SECRET}@`), delaysMs: [100, 200] },
  ]);
});

after(async () => {
  await Promise.all([dynamodb, payroll, mail].map((server) => server?.[Symbol.asyncDispose]()));
  await scratch?.remove();
});

/** Each test has tables of its own. */
async function stage(name: string) {
  const env = {
    ...DYNAMODB_ENVIRONMENT,
    DYNAMODB_ENDPOINT: dynamodb.endpoint,
    OUTBOX_DYNAMODB_TABLE: name,
    OUTBOX_DYNAMODB_CHECKPOINTS: `${name}-checkpoints`,
    OUTBOX_DYNAMODB_SWEEP_INTERVAL: "100ms",
    POLL_INTERVAL_MS: "50",
    PUBLISH_TIMEOUT: "1s",
    PORT: String(await freePort()),
  };
  const run = (...args: string[]) => runCommand(["dynamodb", ...args], env, scratch.path);
  const outbox = dynamodbOutbox({
    table: name,
    endpoint: dynamodb.endpoint,
    region: DYNAMODB_ENVIRONMENT.AWS_REGION,
    credentials: CREDENTIALS,
  });
  return {
    run,
    outbox,
    checkpoints: `${name}-checkpoints`,
    start: (...args: string[]) => startService(["dynamodb", "run", ...args], env, undefined, scratch.path),
  };
}

function idsAt(receiver: HttpReceiver): string[] {
  return receiver.arrivals().map(({ headers }) => headers["idempotency-key"] ?? "");
}

async function allDelivered(outbox: DynamoDbOutbox, ids: readonly string[]): Promise<boolean> {
  const found = await outbox.read(ids);
  return ids.every((id) => found.get(id)?.deliveredAt);
}

test("D2 D3 D5: two intent types by the CLI's runner; one destination is down for a while and delays nobody else; dead letters are listed and replayed", async () => {
  const { outbox, run, start } = await stage("shop");
  assert.equal((await run("create")).code, 0);
  await using service = start();
  await service.logged("it reads", ({ message }) => message === "reading the stream");
  await payroll.kill();
  const payrollIds = await outbox.write([1, 2, 3].map((number) => ({ type: "SyncToPayroll", payload: { number } })));
  const mailIds = await outbox.write([4, 5, 6].map((number) => ({ type: "NotifyUser", payload: { number } })));
  const [poisonId = ""] = await outbox.write({ type: "NotifyUser", payload: { number: 7, manner: "status:422" } });
  await outbox.write({ type: "NobodysIntent", payload: {} });
  await until("the mails went out", () => allDelivered(outbox, mailIds));
  await until("the first failures are noted", async () => {
    const found = await outbox.read(payrollIds);
    return payrollIds.every((id) => (found.get(id)?.attemptCount ?? 0) > 0);
  });
  const down = /"destination","name":"synctopayroll"/;
  await until("health names it", async () => down.test(JSON.stringify((await service.becomes("degraded")).problems)));
  await payroll.restart();
  await until("the payroll got its intents", () => allDelivered(outbox, payrollIds));

  for (const [receiver, ids] of [
    [payroll, payrollIds],
    [mail, mailIds],
  ] as const) {
    for (const id of ids) {
      const arrived = receiver.arrivals().filter(({ headers }) => headers["idempotency-key"] === id);
      assert.equal(arrived.length, 1, `${id} once`);
      assert.equal((JSON.parse(arrived[0]!.body.toString()) as { idempotency_key: string }).idempotency_key, id);
    }
  }
  await until("the poison is a dead letter", async () => (await outbox.deadLetterOf(poisonId)) !== null);
  const mismatch = await service.logged("nobody relays it", ({ event }) => event === "RelayMismatch");
  assert.equal(mismatch.eventType, "NobodysIntent");
  assert.equal(service.logs(({ event }) => event === "RelayMismatch").length, 1, "once per type");

  const listed = await run("dlq", "list", "-o", "json");
  const { deadLetters } = JSON.parse(listed.stdout) as { deadLetters: { id: string; errors: object[] }[] };
  assert.deepEqual(
    deadLetters.map(({ errors, id }) => [id, errors.length]),
    [[poisonId, 1]],
  );
  assert.match((await run("dlq", "list")).stdout, /NotifyUser.*422/s);
  const waiting = JSON.parse((await run("list", "-o", "json")).stdout) as { intents: { type: string }[] };
  assert.deepEqual(
    waiting.intents.map(({ type }) => type),
    ["NobodysIntent"],
  );
  assert.equal((await run("dlq", "replay", "no-such-id")).code, 4);
  writeFileSync(join(scratch.path, "relays", "mended"), "");
  const replayed = await run("dlq", "replay", poisonId, "-o", "json");
  assert.equal(replayed.code, 0, replayed.stderr);
  await until("the replayed one arrived", () => idsAt(mail).includes(poisonId));

  assert.equal((await service.get("/livez")).status, 200);
  await until("it is ready", async () => (await service.get("/readyz")).status === 200);
  await service.becomes("healthy");
  assert.match((await service.get("/metrics")).body, /outbox_relay_events_published_total\{source="shop\/NotifyUser"/);
  for (const path of ["overview", "series", "logs", "doctor", "config"]) {
    assert.equal((await service.get(`/api/v1/${path}`)).status, 200, path);
  }
  service.kill("SIGTERM");
  const ended = await service.ended;
  assert.equal(ended.code, 0, ended.stderr);
  assert.ok(!`${ended.stdout}${ended.stderr}`.includes(SECRET), "no password in any line");
  await outbox.close();
});

test("D2 D6: a place that the stream lost halts the relay loudly; recover relays what the table holds, once each, and it goes on", async () => {
  const { checkpoints, outbox, run, start } = await stage("lost");
  let first = "";
  {
    await using service = start("--create");
    await service.logged("the stream tells", ({ looked, type }) => looked === 0 && type === "NotifyUser");
    [first = ""] = await outbox.write({ type: "NotifyUser", payload: { number: 10 } });
    await until("the first went out", () => allDelivered(outbox, [first]));
    service.kill("SIGTERM");
    assert.equal((await service.ended).code, 0);
  }
  const link = dynamoDbLink({ endpoint: dynamodb.endpoint, region: "eu-central-1", credentials: CREDENTIALS });
  await addGoneShard(link, checkpoints, "lost/NotifyUser");
  await link.close();
  const unread = await outbox.write([11, 12].map((number) => ({ type: "NotifyUser", payload: { number } })));
  await using service = start();
  const halted = await service.logged("it is halted", ({ code }) => code === "STREAM_TRIMMED");
  assert.match(String(halted.reason), /shard-that-is-gone.*outbox-relay dynamodb recover/s);
  assert.equal((await service.becomes("degraded")).status, "degraded");
  assert.ok(unread.every((id) => !idsAt(mail).includes(id)));

  const recovered = await run("recover", "-o", "json");
  assert.equal(recovered.code, 0, recovered.stderr);
  const { found, relays } = JSON.parse(recovered.stdout) as { found: number; relays: string[] };
  assert.deepEqual([relays, found], [["NotifyUser"], 2]);
  assert.ok(await allDelivered(outbox, unread));
  const later = await outbox.write([13, 14].map((number) => ({ type: "NotifyUser", payload: { number } })));
  await until("it goes on", () => allDelivered(outbox, later));
  assert.equal((await service.becomes("healthy")).status, "healthy");
  for (const id of [first, ...unread, ...later]) {
    assert.equal(idsAt(mail).filter((arrived) => arrived === id).length, 1, `${id} once`);
  }
  assert.match((await run("recover")).stdout, /no relay is halted/);
  await outbox.close();
});

test("G2 D2: what is wrong with the settings is told at once, and a table that is not there yet is waited for", async () => {
  const { outbox, run, start } = await stage("later");
  const wrong = await runCommand(["dynamodb", "run"], { DYNAMODB_ENDPOINT: "localhost:8000", PORT: "1" }, "/");
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /No intent relays found.*\n.*DYNAMODB_ENDPOINT is not a URL/s);
  const usage = await run("dlq", "replay");
  assert.deepEqual([usage.code, usage.stderr.includes("ids, --type or --all")], [2, true]);
  await using service = start("--only", "NotifyUser");
  await service.logged("there is no table", ({ code }) => code === "TABLE_MISSING");
  assert.equal((await run("create")).code, 0);
  const [left = ""] = await outbox.write({ type: "SyncToPayroll", payload: { number: 19 } });
  const [id = ""] = await outbox.write({ type: "NotifyUser", payload: { number: 20 } });
  await until("it is relayed", () => allDelivered(outbox, [id]));
  assert.equal((await outbox.read([left])).get(left)?.deliveredAt, null, "left to another runner");
  assert.deepEqual(
    service.logs(({ event }) => event === "RelayMismatch"),
    [],
    "and no intent without a relay",
  );
  await outbox.close();
});

test("D2 B4: on the real table a lease is taken by one of two, and whoever lost it writes nothing any more", async () => {
  const link = dynamoDbLink({ endpoint: dynamodb.endpoint, region: "eu-central-1", credentials: CREDENTIALS });
  await createCheckpointTable(link, "leases");
  const [one, two] = ["one", "two"].map((owner) => new CheckpointTable(link, "leases", owner)) as [
    CheckpointTable,
    CheckpointTable,
  ];
  const none = { position: null, isDone: false, lost: null, owner: null, fence: 0, beat: 0 };
  const fresh = { relay: "outbox/A", shard: "s", stream: "arn", ...none };
  const taken = await Promise.all([one.take(fresh), two.take(fresh)]);
  assert.equal(taken.filter((grant) => grant !== null).length, 1, "one of two");
  const [winner, loser, grant] = taken[0] === null ? [two, one, taken[1]] : [one, two, taken[0]];
  assert.ok(grant);
  assert.equal(await winner.save(grant, { position: "5" }), true);
  const [seen] = await loser.ofRelay("outbox/A");
  assert.deepEqual([seen?.position, seen?.fence, seen?.beat], ["5", 1, 1]);
  assert.equal(await winner.renew(grant), true);
  assert.equal(await loser.take(seen!), null, "it gave a sign of life meanwhile");
  const [later] = await loser.ofRelay("outbox/A");
  const next = await loser.take(later!);
  assert.equal(next?.fence, 2);
  assert.deepEqual([await winner.save(grant, { position: "9" }), await winner.renew(grant)], [false, false]);
  await winner.release(grant);
  await loser.save(next!, { isDone: true, lost: "why" });
  const [row] = await winner.ofRelay("outbox/A");
  assert.deepEqual([row?.position, row?.isDone, row?.lost, row?.owner !== null], ["5", true, "why", true]);
  await winner.reset(row!);
  const [again] = await winner.ofRelay("outbox/A");
  assert.deepEqual(
    [again?.position, again?.isDone, again?.lost, again?.owner, again?.fence],
    [null, false, null, null, 3],
  );
  await winner.remove(again!);
  assert.deepEqual(await winner.ofRelay("outbox/A"), []);
  await link.close();
});

/** As a runner leaves it that was away for more than a day. */
async function addGoneShard(link: DynamoDbLink, table: string, relay: string): Promise<void> {
  await link.send("preparing", async (client, sdk) => {
    const { Items = [] } = await client.send(new sdk.ScanCommand({ TableName: table }));
    const known = Items.find((item) => item.relay?.S === relay && item.place?.S !== "searched");
    assert.ok(known, "the runner has noted its place");
    const gone = { ...known, shard: { S: "shard-that-is-gone" } };
    await client.send(new sdk.PutItemCommand({ TableName: table, Item: gone }));
  });
}
