import assert from "node:assert/strict";
import type { EventHeaders, Message } from "../../core/event.ts";
import type { Outcome } from "../../core/outcome.ts";
import { type ContractCase, until } from "./contract-case.ts";
import type { PublisherHarness, PublisherSubject, PublisherTraits, Received } from "./publisher-subject.ts";

/** Far below what waiting for the destination would take, and enough for a machine that has other work. */
const PROMPTLY_MS = 10_000;
/** How long a publish to a destination that is down may try. */
const GIVE_UP_MS = 2_000;

/** Publishes on one subject and checks that no outcome is reported twice or after the end. */
class Session {
  readonly subject: PublisherSubject;
  readonly #names = new Map<string, string>();
  #written = 0;
  /** Number of requests that the publisher has timed. */
  timed = 0;

  constructor(subject: PublisherSubject) {
    this.subject = subject;
  }

  /** `messages("a1 a2 b1")`: `a1` is of key `a`, `-1` has no key. */
  messages(names: string, changes: { payload?: Buffer; headers?: EventHeaders } = {}): Message[] {
    return names.split(" ").map((name) => {
      this.#written += 1;
      const id = `00000000-0000-4000-8000-${String(this.#written).padStart(12, "0")}`;
      this.#names.set(id, name);
      const letters = name.replace(/\d+$/, "");
      const key = letters === "-" ? null : letters;
      const payload = changes.payload ?? Buffer.from(JSON.stringify({ name }));
      const headers = { ...changes.headers, "event-id": id };
      const event = { id, type: this.subject.topic, key, payload, headers, correlationId: null, createdAt: null };
      return { event, topic: this.subject.topic, key, headers, payload };
    });
  }

  /** The outcomes by index; rejects when the publisher does. */
  async publish(batch: readonly Message[], signal = new AbortController().signal): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    let isOver = false;
    const report = (index: number, outcome: Outcome) => {
      assert.ok(!isOver, "reported after the publish had ended");
      assert.ok(index >= 0 && index < batch.length, `reported message ${index} of ${batch.length}`);
      assert.equal(outcomes[index], undefined, `message ${index} was reported twice`);
      outcomes[index] = outcome;
    };
    let open = 0;
    const timer = () => {
      this.timed += 1;
      open += 1;
      return () => {
        open -= 1;
      };
    };
    await this.subject.publisher.publish(batch, report, signal, timer).finally(() => {
      isOver = true;
    });
    assert.equal(open, 0, "every timed request must end exactly once");
    return outcomes;
  }

  async deliver(batch: readonly Message[]): Promise<void> {
    assertKinds(
      await this.publish(batch),
      batch.map(() => "delivered"),
    );
  }

  nameOf(received: Received): string {
    return this.#names.get(received.id) ?? received.id;
  }

  /** The names of one key's messages in the order of their arrival. */
  async receivedOf(key: string | null): Promise<string> {
    const received = await this.subject.received();
    return received
      .filter((it) => it.key === key)
      .map((it) => this.nameOf(it))
      .join(" ");
  }
}

function assertKinds(outcomes: readonly Outcome[], kinds: readonly string[]): void {
  const shown = outcomes.map((outcome) => ("reason" in outcome ? `${outcome.kind}: ${outcome.reason}` : outcome.kind));
  assert.deepEqual(
    outcomes.map(({ kind }) => kind),
    kinds,
    shown.join("\n"),
  );
}

/** A rule, its test, and the adapters that it applies to; without the last it applies to all. */
type PublisherRule = readonly [
  rule: string,
  prove: (session: Session) => Promise<void>,
  needs?: (capabilities: PublisherTraits) => boolean,
];

/** Every rule runs on its own destination. */
function publisherCases(rules: readonly PublisherRule[]): readonly ContractCase<PublisherHarness>[] {
  return rules.map(([rule, prove, needs = () => true]) => ({
    rule,
    needs,
    async run(harness) {
      const subject = await harness.open();
      try {
        await prove(new Session(subject));
      } finally {
        await subject.publisher.close();
        await subject.close();
      }
    },
  }));
}

function names(key: string, count: number): string {
  return Array.from({ length: count }, (_, index) => `${key}${index}`).join(" ");
}

/** Waits for the end or an error, which must come promptly. */
async function assertEndsPromptly(publishing: Promise<unknown>): Promise<void> {
  const startedMs = performance.now();
  await publishing.catch(() => {});
  assert.ok(performance.now() - startedMs < PROMPTLY_MS, "the publish did not end promptly");
}

const general: readonly PublisherRule[] = [
  ["a publisher that never published can be closed", async () => {}],

  [
    "an empty batch and an examination send nothing, and a working destination has no obstacle",
    async (session) => {
      assert.deepEqual(await session.publish([]), []);
      assert.deepEqual((await session.subject.publisher.examine?.(new AbortController().signal)) ?? [], []);
      assert.deepEqual(await session.subject.received(), []);
    },
  ],

  [
    "each message of a batch is reported exactly once, and everything arrives once",
    async (session) => {
      const batch = session.messages(`${names("a", 60)} ${names("b", 60)} ${names("-", 60)}`);
      await session.deliver(batch);
      const received = await session.subject.received();
      assert.deepEqual(received.map(({ id }) => id).sort(), batch.map(({ event }) => event.id).sort());
      const isTimed = session.subject.publisher.capabilities.timesRequests === true;
      assert.equal(session.timed > 0, isTimed, "a publisher times requests exactly if it declares so");
    },
  ],

  [
    "D4 a message is reported as delivered only when it has arrived",
    async (session) => {
      const [message] = session.messages("a1");
      let received: Promise<readonly Received[]> | undefined;
      const report = () => {
        received = session.subject.received();
      };
      await session.subject.publisher.publish([message!], report, new AbortController().signal);
      assert.deepEqual(
        (await received)?.map(({ id }) => id),
        [message!.event.id],
      );
    },
  ],

  [
    "A3 messages of a key arrive in the order of their batches",
    async (session) => {
      for (let round = 0; round < 20; round++) await session.deliver(session.messages(`a${round} b${round} -${round}`));
      assert.equal(await session.receivedOf("a"), names("a", 20));
      assert.equal(await session.receivedOf("b"), names("b", 20));
    },
  ],

  [
    "A3 messages of a key arrive in order within a batch, if the publisher declares it",
    async (session) => {
      for (let round = 0; round < 3; round++) {
        const batch = Array.from({ length: 20 }, (_, index) => `a${round * 20 + index} b${round * 20 + index}`);
        await session.deliver(session.messages(batch.join(" ")));
      }
      assert.equal(await session.receivedOf("a"), names("a", 60));
      assert.equal(await session.receivedOf("b"), names("b", 60));
    },
    ({ keyOrderInBatch }) => keyOrderInBatch,
  ],

  [
    "B6 topic, key, headers and the payload's bytes arrive unchanged",
    async (session) => {
      const payload = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
      const headers = { tenant: "t-1", "x-trace": "00-ab-cd-01" };
      const batch = [
        ...session.messages("a1 -1", { payload, headers }),
        ...session.messages("c1", { payload: Buffer.alloc(0) }),
      ];
      await session.deliver(batch);
      const received = await session.subject.received();
      for (const message of batch) {
        const found = received.find(({ id }) => id === message.event.id) ?? assert.fail("a message is missing");
        assert.equal(found.payload.toString("hex"), message.payload.toString("hex"));
        assert.deepEqual([found.topic, found.key], [message.topic, message.key]);
        for (const [name, value] of Object.entries(message.headers)) assert.equal(found.headers[name], value, name);
      }
    },
  ],

  [
    "a publish with an aborted signal ends promptly and reports no message as delivered that has not arrived",
    async (session) => {
      const [message] = session.messages("a1");
      const publishing = session.publish([message!], AbortSignal.abort());
      await assertEndsPromptly(publishing);
      const [outcome] = await publishing.catch((): Outcome[] => []);
      if (outcome?.kind === "delivered") assert.equal(await session.receivedOf("a"), "a1");
    },
  ],

  [
    "D8 a second message with the same event id is dropped by the destination",
    async (session) => {
      const batch = session.messages("a1 b1");
      await session.deliver(batch);
      await session.deliver(batch);
      assert.equal((await session.subject.received()).length, 2);
    },
    ({ deduplicates }) => deduplicates,
  ],
];

const whenRefused: readonly PublisherRule[] = [
  [
    "C5 a refused message is reported as its own failure, and all others of the batch are delivered",
    async (session) => {
      const [bad, ...others] = session.messages("a1 b1 c1 -1");
      const outcomes = await session.publish([others[0]!, await session.subject.refuse!(bad!), ...others.slice(1)]);
      assert.ok(outcomes[1]?.kind === "retry" || outcomes[1]?.kind === "rejected");
      assert.equal(outcomes[1].scope, "event");
      assert.notEqual(outcomes[1].reason, "");
      outcomes.splice(1, 1);
      assertKinds(outcomes, ["delivered", "delivered", "delivered"]);
      assert.equal(await session.receivedOf("a"), "");
    },
    ({ refuses }) => refuses,
  ],

  [
    "F2 a refused message holds back the later ones of its key in the batch, if the publisher declares it",
    async (session) => {
      const [before, bad, ...after] = session.messages("a1 a2 a3 b1 a4");
      const batch = [before!, await session.subject.refuse!(bad!), ...after];
      const outcomes = await session.publish(batch);
      assert.notEqual(outcomes[1]?.kind, "delivered");
      assertKinds([outcomes[0]!, outcomes[3]!], ["delivered", "delivered"]);
      for (const index of [2, 4]) assert.notEqual(outcomes[index]?.kind, "delivered");
      assert.equal(await session.receivedOf("a"), "a1");
      assert.equal(await session.receivedOf("b"), "b1");
    },
    ({ refuses, keyOrderInBatch }) => refuses && keyOrderInBatch,
  ],
];

const whenStalled: readonly PublisherRule[] = [
  [
    "D4 nothing is reported before the destination answers",
    async (session) => {
      await session.subject.stall!();
      let reports = 0;
      const publisher = session.subject.publisher;
      const publishing = publisher.publish(session.messages("a1 b1"), () => reports++, new AbortController().signal);
      // The absence of a report can only be shown by letting time pass.
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.equal(reports, 0);
      await session.subject.resume!();
      await publishing;
      assert.equal(reports, 2);
      assert.equal((await session.subject.received()).length, 2);
    },
    ({ stalls }) => stalls,
  ],

  [
    "an abort promptly ends a publish without an answer, and nothing is reported afterwards",
    async (session) => {
      await session.subject.stall!();
      const abort = new AbortController();
      const publishing = session.publish(session.messages("a1 a2 b1"), abort.signal);
      await new Promise((resolve) => setImmediate(resolve));
      abort.abort();
      await assertEndsPromptly(publishing);
      await session.subject.resume!();
      await session.deliver(session.messages("c1"));
      assert.equal(await session.receivedOf("c"), "c1");
    },
    ({ stalls }) => stalls,
  ],
];

const whenStopped: readonly PublisherRule[] = [
  [
    "A4 while the destination is down nothing is delivered and no failure counts against an event; afterwards publishing continues",
    async (session) => {
      await session.deliver(session.messages("a1"));
      await session.subject.stop!();
      const batch = session.messages("a2 b2");
      const outcomes = await session.publish(batch, AbortSignal.timeout(GIVE_UP_MS)).catch((): Outcome[] => []);
      for (const outcome of outcomes) {
        if (outcome === undefined || outcome.kind === "skipped") continue;
        assert.ok(outcome.kind === "retry" && outcome.scope !== "event", JSON.stringify(outcome));
      }
      await session.subject.start!();
      await until("the destination takes the batch", async () => {
        const again = await session.publish(batch, AbortSignal.timeout(PROMPTLY_MS)).catch((): Outcome[] => []);
        return again.length === 2 && again.every((outcome) => outcome?.kind === "delivered");
      });
      // Messages without an answer may have arrived, so duplicates are allowed.
      assert.match(await session.receivedOf("a"), /^a1( a2)+$/);
      assert.match(await session.receivedOf("b"), /^b2( b2)*$/);
    },
    ({ stops }) => stops,
  ],
];

/** The guarantees of every publisher. Each case opens its own destination and closes both. */
export const publisherContract = publisherCases([...general, ...whenRefused, ...whenStalled, ...whenStopped]);
