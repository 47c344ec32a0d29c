import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type KafkaCluster, startKafkaCluster } from "../../../test/servers/kafka-cluster.ts";
import { until } from "../../../test/servers/until.ts";
import { RelayError } from "../../core/errors.ts";
import type { LaneAddress, LaneTransactions, Transactions } from "../../ports/transactions.ts";
import type { KafkaSettings } from "./kafka-config.ts";
import { transactionalId } from "./ledger-record.ts";
import { ledger, open, openService, unaborted } from "./transactions-fixture.test.ts";

const BATCHES = 8;

let cluster: KafkaCluster;

before(async () => {
  cluster = await startKafkaCluster();
});

after(() => cluster[Symbol.asyncDispose]());

/** A lane whose coordinator also leads its partition of the ledger, so that one death hits both. */
async function laneWithOneNode(cluster: KafkaCluster, settings: KafkaSettings, lane: LaneAddress) {
  const node = await cluster.leaderOf(settings.ledger.topic, lane.slot);
  for (let number = 0; ; number++) {
    const address = { ...lane, lane: number };
    if ((await cluster.coordinatorOf(transactionalId(settings.service, address))) === node) return { address, node };
  }
}

/** As a relay does, which retries: right after its creation the other brokers may not know the ledger yet. */
async function prepareLedger(transactions: Transactions): Promise<void> {
  const prepare = () =>
    transactions.prepare(1).then(
      () => true,
      (error: unknown) => {
        if (error instanceof RelayError && error.retryable) return false;
        throw error;
      },
    );
  await until("the brokers know the ledger", prepare);
}

test("A2 A4 transactions outlive the death of their coordinator and of the ledger's leader, each event once", async () => {
  await using service = await openService(cluster, { requestTimeoutMs: 2_000 });
  await prepareLedger(service.transactions);
  const { address, node } = await laneWithOneNode(cluster, service.settings, service.lane);
  let lane: LaneTransactions | null = null;
  let settled = 0n;

  /** As the engine does: after any failure the lane is fenced again, and the ledger says what was delivered. */
  const deliver = async (number: bigint, whileOpen: () => Promise<void>): Promise<boolean> => {
    try {
      if (lane === null) {
        lane = await service.transactions.fence(address, unaborted());
        settled = (await ledger(lane, settled)).at(-1) ?? 0n;
      }
      if (settled === number) return true;
      await open(lane, number, service.messages(`a${number} b${number}`));
      await whileOpen();
      await lane.commit(unaborted());
      settled = number;
      return true;
    } catch (error) {
      assert.ok(error instanceof Error);
      await lane?.close();
      lane = null;
      return false;
    }
  };

  let isDead = false;
  for (let number = 1; number <= BATCHES; number++) {
    const strike = async (): Promise<void> => {
      if (isDead || number < BATCHES / 2) return;
      isDead = true;
      await cluster.node(node).kill();
    };
    await until(`batch ${number} is delivered`, () => deliver(BigInt(number), strike));
  }
  const ids = Array.from({ length: BATCHES }, (_, at) => [`a${at + 1}`, `b${at + 1}`]).flat();
  await service.assertVisible(...ids);
  const heir = await service.transactions.fence(address, unaborted());
  const numbers = Array.from({ length: BATCHES }, (_, at) => BigInt(at + 1));
  assert.deepEqual(await ledger(heir), numbers);
  await cluster.node(node).restart();
  await cluster.inSync(service.settings.ledger.topic);
});

test("A2 a leader of the ledger whose replicas do not follow it is not believed: another may have led since", async () => {
  await using service = await openService(cluster, { requestTimeoutMs: 2_000 });
  await prepareLedger(service.transactions);
  const lane = await service.fence();
  await open(lane, 1n, service.messages("a1"));
  await lane.commit(unaborted());
  const leader = await cluster.leaderOf(service.settings.ledger.topic, 0);
  const others = [1, 2, 3].filter((nodeId) => nodeId !== leader).map((nodeId) => cluster.node(nodeId));
  assert.deepEqual(await ledger(lane), [1n]);
  await Promise.all(others.map((node) => node.pause()));
  try {
    // The leader answers that it is alone, or the question where the partition is goes to one of the paused nodes.
    const refusal = /partition 0: \w+ \(\d+\)|no answer in time/;
    await assert.rejects(lane.lastCommitted(0n, AbortSignal.timeout(15_000)), refusal);
  } finally {
    for (const node of others) node.resume();
  }
  const heir = await until("the lane is fenced", () => service.fence().catch(() => undefined));
  assert.deepEqual(await ledger(heir), [1n]);
});
