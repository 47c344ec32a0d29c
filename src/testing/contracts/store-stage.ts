import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { isRelayError } from "../../core/errors.ts";
import type {
  ClaimedEvent,
  Failure,
  FailureNext,
  Grant,
  PipelineSpec,
  QueueStore,
  Run,
  RunRequest,
  Settlement,
  SettleResult,
  Takeover,
} from "../../ports/queue-store.ts";
import type { ContractCase } from "./contract-case.ts";
import type { NewEvent, StoreCapabilities, StoreHarness, StoreSubject } from "./store-subject.ts";

const LEASE_MS = 60_000;

/** More bytes than any case writes, so that only the number of rows bounds a page. */
export const BYTES_MAX = 100_000_000;

/** A single lane, unless a case is about lanes. */
export const SPEC: PipelineSpec = {
  name: "contract",
  types: null,
  lanes: 1,
  attemptsMax: 3,
  payloadBytesMax: 100_000,
  headersMax: 100,
};

/** A rule, its test, and the adapters that it applies to; without the last it applies to all. */
export type StoreRule = readonly [
  rule: string,
  prove: (stage: Stage) => Promise<void>,
  needs?: (capabilities: StoreCapabilities) => boolean,
];

/** Every rule runs on its own subject. */
export function storeCases(rules: readonly StoreRule[]): readonly ContractCase<StoreHarness>[] {
  return rules.map(([rule, prove, needs = () => true]) => ({
    rule,
    needs,
    async run(harness) {
      const subject = await harness.open();
      try {
        await prove(new Stage(subject));
      } finally {
        await subject.close();
      }
    },
  }));
}

export async function assertFenced(write: Promise<unknown>): Promise<void> {
  await assert.rejects(write, (error) => isRelayError(error, "FENCED"));
}

/**
 * Lets cases use short names for events: `a1` is an event of key `a`, `-1` one without a key. Their ids are hashed, so that
 * sorting by id never gives the right order by accident.
 */
export class Stage {
  readonly subject: StoreSubject;
  readonly #names = new Map<string, string>();

  constructor(subject: StoreSubject) {
    this.subject = subject;
  }

  /** `write("a1 b1 a2")` writes in this order, each in its own transaction. */
  async write(names: string, changes: Partial<NewEvent> = {}): Promise<void> {
    await this.subject.insert(this.events(names, changes));
  }

  events(names: string, changes: Partial<NewEvent> = {}): NewEvent[] {
    return names.split(" ").map((name) => ({
      id: this.id(name),
      type: "t",
      key: keyOf(name),
      payload: Buffer.from(`"${name}"`),
      headers: {},
      correlationId: null,
      ...changes,
    }));
  }

  id(name: string): string {
    const hash = createHash("sha256").update(name).digest("hex");
    const uuid = `${hash.slice(0, 8)}-${hash.slice(8, 12)}-4${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
    const id = this.subject.idOf?.(name) ?? uuid;
    this.#names.set(id, name);
    return id;
  }

  ids(names: string): string[] {
    return names === "" ? [] : names.split(" ").map((name) => this.id(name));
  }

  /** Names grouped by key, each in the given order: ports guarantee only the order within a key. */
  show(events: readonly { readonly id: string; readonly key: string | null }[]): string {
    const names = events.map((event) => ({ key: event.key ?? "", name: this.#names.get(event.id) ?? event.id }));
    const order = (a: (typeof names)[0], b: (typeof names)[0]) =>
      compare(a.key, b.key) || (a.key === "" ? compare(a.name, b.name) : 0);
    return names
      .sort(order)
      .map(({ name }) => name)
      .join(" ");
  }

  /** Names in alphabetical order, for ids that have no order. */
  showIds(ids: readonly string[]): string {
    return ids
      .map((id) => this.#names.get(id) ?? id)
      .sort()
      .join(" ");
  }

  async pending(): Promise<string> {
    return this.showIds(await this.subject.pendingIds());
  }

  async delivered(): Promise<string> {
    return this.showIds(await this.subject.deliveredIds());
  }

  async dead(): Promise<string> {
    return this.showIds((await this.subject.deadLetters()).map(({ id }) => id));
  }

  /** Joins a new instance with its own store object. It owns no lanes yet. */
  async join(spec: Partial<PipelineSpec> = {}): Promise<Owner> {
    const full = { ...SPEC, ...spec };
    const owner = new Owner(this, this.subject.store(full), randomUUID());
    const { lanes } = await owner.store.prepare();
    owner.lanes = Array.from({ length: lanes }, (_, lane) => lane);
    const takes = { [full.name]: full.types };
    const joining = { id: owner.id, name: "contract", leaseMs: LEASE_MS, pipelines: [full.name], takes };
    await this.subject.source.membership.join(joining);
    return owner;
  }

  /** Joins and takes all free lanes. */
  async own(spec: Partial<PipelineSpec> = {}): Promise<Owner> {
    const owner = await this.join(spec);
    await owner.takeOver();
    return owner;
  }

  failure(name: string, next: FailureNext, options: { attempts?: number; reason?: string } = {}): Failure {
    const { attempts = 1, reason = `${name} failed` } = options;
    return { id: this.id(name), key: keyOf(name), reason, attempts, next };
  }
}

export const AT_ONCE: FailureNext = { kind: "retry", delayMs: 0 };
export const LATER: FailureNext = { kind: "retry", delayMs: 600_000 };
export const DEAD_PARKED: FailureNext = { kind: "dead", parks: true };
export const DEAD_SKIPPED: FailureNext = { kind: "dead", parks: false };

type Parts = Partial<Omit<Settlement, "grant">>;

/** An instance with its view of the lanes that it took. */
export class Owner {
  readonly stage: Stage;
  readonly store: QueueStore;
  readonly id: string;
  lanes: number[] = [];
  readonly takeovers = new Map<number, Takeover>();
  readonly #settledBatch = new Map<number, bigint>();

  constructor(stage: Stage, store: QueueStore, id: string) {
    this.stage = stage;
    this.store = store;
    this.id = id;
  }

  async takeOver(lanes: readonly number[] = this.lanes): Promise<readonly Takeover[]> {
    const taken = await this.store.takeOver(this.id, lanes);
    for (const takeover of taken) {
      this.takeovers.set(takeover.grant.lane, takeover);
      this.#settledBatch.set(takeover.grant.lane, takeover.settledBatch);
    }
    return taken;
  }

  get grants(): Grant[] {
    return [...this.takeovers.values()].map(({ grant }) => grant);
  }

  takeoverOf(lane = 0): Takeover {
    return this.takeovers.get(lane) ?? assert.fail(`lane ${lane} was not taken`);
  }

  /** Always ends the run: an open run would keep the subject from closing. */
  async inRun<Result>(use: (run: Run) => Promise<Result>, request: Partial<RunRequest> = {}): Promise<Result> {
    const { grants = this.grants, exceptKeys = [], exceptTypes = [] } = request;
    const run = await this.store.begin({ grants, exceptKeys, exceptTypes });
    try {
      return await use(run);
    } finally {
      await run.end();
    }
  }

  /** A whole run, read in small pages so that page boundaries are tested. */
  async read(request: Partial<RunRequest> & { rows?: number } = {}): Promise<ClaimedEvent[]> {
    const { rows = 3 } = request;
    return await this.inRun(async (run) => {
      const events: ClaimedEvent[] = [];
      for (let page = await run.next(rows, BYTES_MAX); page.length > 0; page = await run.next(rows, BYTES_MAX)) {
        assert.ok(page.length <= rows, `a page of ${rows} rows holds ${page.length}`);
        events.push(...page);
      }
      return events;
    }, request);
  }

  /** The events of a run by name; durable claims are handed back at once. */
  async sees(request: Partial<RunRequest> = {}): Promise<string> {
    const events = await this.read(request);
    if (this.store.durableClaims !== null) await this.handBack(events);
    return this.stage.show(events);
  }

  async handBack(events: readonly ClaimedEvent[]): Promise<void> {
    for (const [lane, ofLane] of Map.groupBy(events, (event) => event.lane)) {
      await this.settle({ handedBack: ofLane.map(({ id }) => id) }, lane);
    }
  }

  /** Deliveries raise the batch by one; the rest of the settlement is empty unless given. */
  async settle(parts: Parts, lane = 0): Promise<SettleResult> {
    const settlement = this.settlement(parts, lane);
    const result = await this.store.settle(settlement);
    this.#settledBatch.set(lane, settlement.batch);
    return result;
  }

  settlement(parts: Parts, lane = 0): Settlement {
    const previousBatch = parts.previousBatch ?? this.#settledBatch.get(lane) ?? 0n;
    const raised = (parts.delivered?.length ?? 0) > 0 ? 1n : 0n;
    return {
      grant: this.takeoverOf(lane).grant,
      batch: previousBatch + raised,
      ledger: "none",
      delivered: [],
      failed: [],
      handedBack: [],
      releasedHolds: [],
      suspects: [],
      ...parts,
      previousBatch,
    };
  }

  /** Its lease has expired and a reap has removed it: only then its lanes must be free. */
  async die(): Promise<void> {
    await this.stage.subject.expireInstance(this.id);
    await this.stage.subject.source.membership.reap();
  }
}

function keyOf(name: string): string | null {
  const key = name.replace(/\d+$/, "");
  return key === "-" ? null : key;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
