import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import type { PostgresServer } from "../../../../test/servers/postgres.ts";
import { until } from "../../../../test/servers/until.ts";
import { delivered, retry } from "../../../core/outcome.ts";
import { exponentialRetry } from "../../../core/retry-policy.ts";
import { type MemoryPublisher, memoryPublisher } from "../../../publishers/memory/memory-publisher.ts";
import { createRelay, type Relay } from "../../../relay/relay.ts";
import { type Fixture, openFixture, startServer } from "./fixture.test.ts";

const COUNT = 3_000;
const KEYS = 40;
const TIMING = { pollIntervalMs: 20, balanceMs: 50, leaseMs: 3_000, leaseMarginMs: 500, publishTimeoutMs: 2_000 };
const RETRY = exponentialRetry({ initialMs: 5, maxMs: 20, attemptsMax: 100 });

/** The least that the table's contract asks of a relay: claim, deliver, mark what is still its own. */
class ForeignRelay {
  readonly delivered: string[] = [];
  /** What it had claimed when it died. */
  readonly abandoned: string[] = [];
  readonly #fixture: Fixture;
  readonly #client: pg.Client;
  #lives = 0;

  constructor(fixture: Fixture, client: pg.Client) {
    this.#fixture = fixture;
    this.#client = client;
  }

  /** One batch. When it dies, the batch stays claimed and unsent, under a name that is never used again. */
  async work(dies: boolean): Promise<number> {
    const { table } = this.#fixture;
    const name = `foreign-${this.#lives}`;
    const { rows } = await this.#client.query<{ event_id: string }>(
      `with target as (
         select event_id from ${table} where status = 'PENDING' and available_at <= now()
         order by available_at, created_at limit 15 for update skip locked)
       update ${table} e set status = 'DELIVERING', locked_by = $1, locked_at = now(), updated_at = now()
       from target t where e.event_id = t.event_id returning e.event_id`,
      [name],
    );
    const ids = rows.map(({ event_id }) => event_id);
    if (dies) {
      this.abandoned.push(...ids);
      this.#lives += 1;
      return ids.length;
    }
    this.delivered.push(...ids);
    await this.#client.query(
      `update ${table} set status = 'DELIVERED', delivered_at = now(), locked_by = null, locked_at = null,
         updated_at = now() where event_id = any($1::uuid[]) and status = 'DELIVERING' and locked_by = $2`,
      [ids, name],
    );
    return ids.length;
  }
}

async function write({ admin, table }: Fixture, from: number, to: number): Promise<void> {
  await admin.query(
    `insert into ${table} (event_id, event_type, partition_key, payload)
     select gen_random_uuid(), 't' || i % 3, 'k' || i % ${KEYS}, convert_to(i::text, 'UTF8')
     from generate_series($1::int, $2::int) i`,
    [from, to],
  );
}

function startRelay(fixture: Fixture, publisher: MemoryPublisher, leaseMs: number, reviewMs: number): Relay {
  const source = fixture.source({ name: "orders", leaseMs });
  const routes = [{ destination: "broker" as const, retry: RETRY }];
  const timing = { ...TIMING, reviewMs };
  return createRelay({ sources: [source], destinations: { broker: publisher }, routes, lanes: 3, timing });
}

function assertKeyOrder(publisher: MemoryPublisher): void {
  const last = new Map<string | null, number>();
  for (const { key, payload } of publisher.delivered) {
    const number = Number(payload.toString());
    assert.ok(number > (last.get(key) ?? 0), `${number} of ${key} came after ${last.get(key)}`);
    last.set(key, number);
  }
}

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    before(async () => {
      server = await startServer(version);
    });
    after(async () => await server[Symbol.asyncDispose]());

    test("B5 side by side with another relay nothing is lost, and nothing delivered twice while both live", async () => {
      await using fixture = await openFixture(server);
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      const foreign = new ForeignRelay(fixture, client);
      const publisher = memoryPublisher({ latencyMs: 1 });
      await using relay = startRelay(fixture, publisher, 2_000, 200);
      await write(fixture, 1, COUNT / 3);
      // On a busy machine it may get nothing beside our relay.
      for (const abandons of [true, false]) await foreign.work(abandons);
      await relay.start();
      await publisher.arrived(1);
      for (let round = 0; round < 40; round++) {
        if (round === 10 || round === 20) await write(fixture, 1 + (COUNT * round) / 30, (COUNT * (round + 10)) / 30);
        await foreign.work(round % 8 === 5);
      }
      await until("all is delivered", async () => (await fixture.ids("status <> 'DELIVERED'")).length === 0);
      await relay.stop();
      await client.end();
      const all = [...foreign.delivered, ...publisher.delivered.map(({ event }) => event.id)];
      assert.equal(all.length, COUNT);
      assert.equal(new Set(all).size, COUNT);
      assert.ok(foreign.delivered.length > 0 && foreign.abandoned.length > 0 && publisher.delivered.length > 0);
      assert.deepEqual(await fixture.broken(), []);
      assert.deepEqual((await fixture.ids("attempts = 1")).sort(), [...foreign.abandoned].sort());
      assert.equal((await fixture.ids("attempts > 1")).length, 0);
    });

    test("B3 F2 the engine drains the table in the order of each key, however much fails and is handed back", async () => {
      await using fixture = await openFixture(server);
      await write(fixture, 1, COUNT);
      const publisher = memoryPublisher({ latencyMs: 1 });
      let sent = 0;
      publisher.respond(() => {
        sent += 1;
        if (sent % 211 === 0) return retry("the topic is closed", { scope: "topic", afterMs: 5 });
        return sent % 97 === 0 ? retry("not this one") : delivered;
      });
      await using relay = startRelay(fixture, publisher, 60_000, 10_000);
      await relay.start();
      await until("all is delivered", async () => (await fixture.ids("status <> 'DELIVERED'")).length === 0);
      await relay.stop();
      assert.equal(publisher.delivered.length, COUNT);
      assertKeyOrder(publisher);
      assert.deepEqual(await fixture.broken(), []);
      assert.ok((await fixture.ids("attempts > 0 and last_error = 'not this one'")).length > 0);
    });

    test("B4 two instances share the table, and one that stops hands over what it had claimed without an attempt", async () => {
      await using fixture = await openFixture(server);
      await write(fixture, 1, COUNT);
      const publishers = [memoryPublisher({ latencyMs: 2 }), memoryPublisher({ latencyMs: 2 })] as const;
      await using first = startRelay(fixture, publishers[0], 60_000, 10_000);
      await using second = startRelay(fixture, publishers[1], 60_000, 10_000);
      await first.start();
      await publishers[0].arrived(100);
      await second.start();
      await first.stop();
      await until("all is delivered", async () => (await fixture.ids("status <> 'DELIVERED'")).length === 0);
      await second.stop();
      const ids = publishers.flatMap((publisher) => publisher.delivered.map(({ event }) => event.id));
      assert.deepEqual([ids.length, new Set(ids).size], [COUNT, COUNT]);
      for (const publisher of publishers) assertKeyOrder(publisher);
      assert.equal((await fixture.ids("attempts > 0")).length, 0);
      assert.deepEqual(await fixture.broken(), []);
    });
  });
}
