import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fate } from "../../../test/servers/kafka-proxy.ts";
import type { TransactionRequestName } from "../../../test/servers/kafka-proxy-wire.ts";
import { proxiedKafka } from "../../../test/servers/proxied-kafka.ts";
import { until } from "../../../test/servers/until.ts";
import type { LaneTransactions } from "../../ports/transactions.ts";
import { destroyClient } from "./kafka-client.ts";
import { CODE } from "./kafka-error-codes.ts";
import { answersIn } from "./kafka-errors.ts";
import { TransactionCoordinator } from "./transaction-coordinator.ts";
import { accessFor, commit, ledger, open, openService, send, unaborted } from "./transactions-fixture.test.ts";

/** A request that got no answer may still arrive. It must find nothing that it could change. */

const stand = proxiedKafka();
type Service = Awaited<ReturnType<typeof openService>>;
const passing: Fate = { kind: "pass" };
/** Long enough for the caller to time out and continue. */
const late: Fate = { kind: "hold", ms: 700, reset: true };

/** The next request of this name meets its fate; all others pass. */
function mistreatNext(name: TransactionRequestName, fate: Fate): void {
  stand.proxy.decide = (request) => {
    if (request.name !== name) return passing;
    stand.proxy.decide = () => passing;
    return fate;
  };
}

async function theLateOneHasArrived(): Promise<void> {
  await until("the late request has arrived", () => stand.proxy.heldCount === 0);
}

async function preparedService(): Promise<Service> {
  const service = await openService(stand.kafka);
  await service.transactions.prepare(1);
  return service;
}

/** The heir's transaction is open when the zombie's late request arrives, and only the heir's message is ever seen. */
async function assertPowerlessAgainstHeir(service: Service, zombie: LaneTransactions): Promise<void> {
  assert.equal(zombie.isSpent, true);
  const heir = await service.fence();
  await open(heir, 1n, service.messages("a2"));
  await theLateOneHasArrived();
  await heir.commit(unaborted());
  await service.assertVisible("a2");
}

test("A2 a late commit does not end the heir's transaction", async () => {
  await using service = await preparedService();
  const zombie = await service.fence();
  await open(zombie, 1n, service.messages("a1"));
  mistreatNext("EndTxn", late);
  await assert.rejects(zombie.commit(unaborted()));
  assert.equal(zombie.isSpent, true);
  const heir = await service.fence();
  assert.deepEqual(await ledger(heir), []);
  await open(heir, 1n, service.messages("a2"));
  await theLateOneHasArrived();
  await heir.abort(unaborted());
  await commit(heir, 1n, service.messages("a3"));
  await service.assertVisible("a3");
  assert.deepEqual(await ledger(await service.fence()), [1n]);
});

test("A2 a broker that coordinates no more and remembers the last commit is not believed: no event counts as delivered", async () => {
  await using service = await preparedService();
  const lane = await service.fence();
  await commit(lane, 1n, service.messages("a1"));
  await open(lane, 2n, service.messages("a2"));
  // The coordinator moved; the next broker asked is a former one that has slept, and knows only that batch 1 was
  // committed.
  const said = [CODE.NOT_COORDINATOR, CODE.NONE];
  stand.proxy.decide = ({ name }) => (name === "EndTxn" ? { kind: "answer", code: said.shift() ?? 0 } : passing);
  await assert.rejects(lane.commit(unaborted()), /NOT_COORDINATOR/);
  stand.proxy.decide = () => passing;
  assert.equal(lane.isSpent, true);
  assert.deepEqual(await ledger(await service.fence()), [1n]);
  await service.assertVisible("a1");
});

test("A2 without a new fence a late commit ends the next transaction: that is why a lane is spent", async () => {
  await using service = await openService(stand.kafka);
  const access = await accessFor(service.settings);
  const coordinator = new TransactionCoordinator(access, `${service.settings.service}.careless`);
  const stamp = await coordinator.init();
  const partitions = new Map([[service.topic, new Set([0])]]);
  await coordinator.begin(stamp, partitions);
  const { accepted } = stand.proxy.watch.lateCounts;
  mistreatNext("EndTxn", late);
  await assert.rejects(coordinator.end(stamp, true));
  await coordinator.end(stamp, true);
  await coordinator.begin(stamp, partitions);
  await until("the broker has accepted it", () => stand.proxy.watch.lateCounts.accepted > accepted);
  await assert.rejects(coordinator.end(stamp, false), (error) => answersIn(error)[0]?.code === CODE.INVALID_TXN_STATE);
  await destroyClient(access.client);
});

test("A2 records that arrive late are refused, whether the heir has begun or not", async () => {
  await using service = await preparedService();
  const zombie = await service.fence();
  mistreatNext("Produce", late);
  await assert.rejects(send(zombie, 1n, service.messages("a1")));
  await assertPowerlessAgainstHeir(service, zombie);
});

test("A2 records whose answer was lost are aborted by the next fence", async () => {
  await using service = await preparedService();
  const zombie = await service.fence();
  mistreatNext("Produce", { kind: "lose-answer", reset: true });
  await assert.rejects(send(zombie, 1n, service.messages("a1")));
  await assert.rejects(zombie.commit(unaborted()));
  const heir = await service.fence();
  await commit(heir, 1n, service.messages("a2"));
  await service.assertVisible("a2");
  assert.deepEqual(await ledger(heir), [1n]);
});

test("A2 a transaction that begins late is refused", async () => {
  await using service = await preparedService();
  const zombie = await service.fence();
  mistreatNext("AddPartitionsToTxn", late);
  await assert.rejects(send(zombie, 1n, service.messages("a1")));
  assert.equal(zombie.isSpent, true);
  const heir = await service.fence();
  await commit(heir, 1n, service.messages("a2"));
  await theLateOneHasArrived();
  await commit(heir, 2n, service.messages("a3"));
  await service.assertVisible("a2", "a3");
});

test("A2 a late abort does not end the heir's transaction", async () => {
  await using service = await preparedService();
  const zombie = await service.fence();
  await open(zombie, 1n, service.messages("a1"));
  mistreatNext("EndTxn", late);
  await assert.rejects(zombie.abort(unaborted()));
  await assertPowerlessAgainstHeir(service, zombie);
});

test("A2 a fence that comes late costs its sender the lane, and nothing else", async () => {
  await using service = await preparedService();
  mistreatNext("InitProducerId", late);
  await assert.rejects(service.fence(), { code: "DESTINATION_UNREACHABLE" });
  const lane = await service.fence();
  await open(lane, 1n, service.messages("a1"));
  await theLateOneHasArrived();
  // Until a reader has started and read everything, the broker has long dealt with it.
  assert.deepEqual(await service.visible(), []);
  await assert.rejects(lane.commit(unaborted()), /PRODUCER_FENCED|INVALID_PRODUCER_EPOCH/);
  assert.equal(lane.isSpent, true);
  const heir = await service.fence();
  assert.deepEqual(await ledger(heir), []);
  await commit(heir, 1n, service.messages("a2"));
  await service.assertVisible("a2");
});
