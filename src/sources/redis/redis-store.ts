import { randomUUID } from "node:crypto";
import { RelayError } from "../../core/errors.ts";
import type { Hold } from "../../core/hold.ts";
import { typeMatcher } from "../../core/type-filter.ts";
import type {
  Backlog,
  Grant,
  Heads,
  LookedAt,
  PipelineIdentity,
  PipelineSpec,
  QueueStore,
  Run,
  RunRequest,
  Settlement,
  SettleResult,
  Survey,
  Takeover,
} from "../../ports/queue-store.ts";
import { BlockedKeys } from "./blocked-keys.ts";
import { type EventHead, headOf } from "./event-head.ts";
import { identityScript, prepareScript, releaseScript, surveyScript, takeOverScript } from "./lua/lanes.ts";
import { beginScript, claimHeadsScript, lookAtScript, pruneScript } from "./lua/reading.ts";
import { reviewHoldsScript, settleScript } from "./lua/settle.ts";
import { countBacklog, countUnrouted } from "./redis-counts.ts";
import type { Argument, Line, RedisLink } from "./redis-link.ts";
import { holdOf, laneStateOf, listOf, numberOf, type Reply, textOf, textOrNull, textsOf } from "./redis-replies.ts";
import { headsThatFit, loadEvents, RedisRun, type ScanScope, scanPending } from "./redis-run.ts";
import type { Script } from "./redis-script.ts";
import { settleArguments, settleResult } from "./redis-settle.ts";

/** Payload that one call by id returns at most, with one event at least. */
const READ_BYTES_MAX = 8 * 1024 * 1024;

interface StoreParts {
  readonly link: RedisLink;
  readonly spec: PipelineSpec;
  readonly deliveredIdsMs: number;
}

/** Every change is one script, which the server runs atomically: the fence is checked in the same step as the write. */
export class RedisStore implements QueueStore {
  readonly durableClaims = null;
  readonly #parts: StoreParts;
  readonly #isMine: (head: EventHead) => boolean;
  readonly #blockedKeys = new BlockedKeys();
  #laneCount: number | null = null;

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.#isMine = typeMatcher(parts.spec.types);
  }

  async prepare(): Promise<{ readonly lanes: number }> {
    const { lanes: proposed } = this.#parts.spec;
    const [lanes, policy] = listOf(await this.#run("writes", "preparing", prepareScript, [proposed, randomUUID()]));
    if (textOf(policy).startsWith("allkeys-")) {
      const what = `Redis may evict events: maxmemory-policy is ${textOf(policy)}. Set it to noeviction.`;
      throw new RelayError("DATABASE_REFUSED", what);
    }
    this.#laneCount = numberOf(lanes);
    return { lanes: this.#laneCount };
  }

  async identity(): Promise<PipelineIdentity> {
    const reply = await this.#run("writes", "reading the identity", identityScript, []);
    if (reply === null) throw new RelayError("SCHEMA_MISSING", `Pipeline ${this.#name} is not prepared.`);
    const [database, firstSlot, lanes] = listOf(reply);
    // A restored copy of the data has the same id as the original.
    return { database: textOf(database), firstSlot: numberOf(firstSlot), lanes: numberOf(lanes), isAtHome: true };
  }

  async survey(): Promise<Survey> {
    const reply = await this.#run("writes", "surveying the lanes", surveyScript, []);
    const [instances, lanes, pause] = listOf(reply);
    const [by, reason, handsOver] = listOf(pause);
    return {
      instances: textsOf(instances).sort(),
      lanes: listOf(lanes).map(laneStateOf),
      pause:
        by === undefined ? null : { by: textOf(by), reason: textOrNull(reason), handsOver: textOf(handsOver) === "1" },
      // Redis outboxes have no rate limit.
      limitPerSecond: null,
    };
  }

  async takeOver(owner: string, lanes: readonly number[]): Promise<readonly Takeover[]> {
    if (lanes.length === 0) return [];
    const args = [owner, await this.#lanes(), ...lanes];
    return listOf(await this.#run("writes", "taking lanes over", takeOverScript, args)).map((reply) => {
      const [number, epoch, settled, ledgered, crashes, holds] = listOf(reply);
      const lane = numberOf(number);
      return {
        grant: { lane, owner, epoch: BigInt(textOf(epoch)) },
        settledBatch: BigInt(textOf(settled)),
        ledgeredBatch: BigInt(textOf(ledgered)),
        crashes: numberOf(crashes),
        holds: listOf(holds).map((hold) => holdOf(lane, hold)),
      };
    });
  }

  async release(grant: Grant, suspects: readonly string[] = []): Promise<void> {
    await this.#run("writes", "releasing a lane", releaseScript, [...grantArguments(grant), ...suspects]);
  }

  async probe(grants: readonly Grant[]): Promise<boolean> {
    const scope = await this.#scope(grants, "", "+inf");
    const { heads, isEnd } = await scanPending(scope, "0");
    // If the first page holds nothing for us and more follows, only a run can find out.
    return heads.some((head) => this.#isMine(head)) || !isEnd;
  }

  async begin({ exceptKeys, exceptTypes, grants }: RunRequest): Promise<Run> {
    const lanes = grants.map(({ lane }) => lane);
    const [server, last, rows] = listOf(await this.#run("reads", "beginning to read", beginScript, lanes));
    const scope = await this.#scope(grants, textOf(server), textOf(last));
    const isBlocked = await this.#blockedKeys.find(exceptTypes, lanes, scope.last, (after, visit) =>
      eachPending(scope, after, visit),
    );
    return new RedisRun({
      scope,
      spec: this.#parts.spec,
      lanes: listOf(rows).map(laneStateOf),
      isMine: this.#isMine,
      exceptKeys: new Set(exceptKeys),
      exceptTypes: new Set(exceptTypes),
      isBlocked,
    });
  }

  async claimHeads(grant: Grant, ids: readonly string[]): Promise<Heads> {
    if (ids.length === 0) return { events: [], gone: [] };
    const { link, spec } = this.#parts;
    const [due, gone] = listOf(await this.#run("reads", "reading held events", claimHeadsScript, [grant.lane, ...ids]));
    const failures = new Map<EventHead, number>();
    for (const reply of listOf(due)) failures.set(headOf(listOf(reply)[0] ?? null), numberOf(listOf(reply)[1]));
    // Events that do not fit stay due; the engine asks again.
    const fitting = headsThatFit([...failures.keys()], READ_BYTES_MAX, spec);
    const loaded = await loadEvents(link, fitting, spec, (head) => failures.get(head) ?? 0);
    return { events: loaded.map(({ event }) => event), gone: textsOf(gone) };
  }

  async readUnsettled(ids: readonly string[]): Promise<LookedAt> {
    if (ids.length === 0) return { events: [], unread: [] };
    const { link, spec } = this.#parts;
    const args = [await this.#lanes(), ...ids];
    const heads = listOf(await this.#run("reads", "comparing events with the ledger", lookAtScript, args)).map(headOf);
    const fitting = headsThatFit(heads, READ_BYTES_MAX, spec);
    const loaded = await loadEvents(link, fitting, spec);
    return { events: loaded.map(({ event }) => event), unread: heads.slice(fitting.length).map(({ id }) => id) };
  }

  async settle(settlement: Settlement): Promise<SettleResult> {
    const { deliveredIdsMs } = this.#parts;
    const [, ...args] = settleArguments(this.#name, settlement, deliveredIdsMs);
    const [word, missing, dead] = listOf(await this.#run("writes", "settling", settleScript, args));
    if (textOf(word) === "fenced") throw this.#fenced(settlement.grant, missing);
    return settleResult(missing, dead);
  }

  async reviewHolds(grant: Grant): Promise<readonly Hold[]> {
    const args = grantArguments(grant);
    const [word, holds] = listOf(await this.#run("writes", "reviewing the holds", reviewHoldsScript, args));
    if (textOf(word) === "fenced") throw this.#fenced(grant, holds);
    return listOf(holds).map((hold) => holdOf(grant.lane, hold));
  }

  async unrouted(): Promise<readonly { readonly type: string; readonly count: number }[]> {
    const { link } = this.#parts;
    return await countUnrouted(link, this.#name, await this.#lanes());
  }

  async backlog(): Promise<Backlog> {
    return await countBacklog(this.#parts.link, this.#name, await this.#lanes(), this.#isMine);
  }

  /** Only the id of a delivered event is kept, so pruning removes ids. */
  async prune(olderThanMs: number, rows: number): Promise<number> {
    return numberOf(await this.#run("writes", "forgetting delivered ids", pruneScript, [olderThanMs, rows]));
  }

  get #name(): string {
    return this.#parts.spec.name;
  }

  async #run(line: Line, doing: string, script: Script, args: readonly Argument[]): Promise<Reply> {
    return (await this.#parts.link.run(line, doing, script, [this.#name, ...args])) as Reply;
  }

  /** The stored number of lanes. Every reader must use the same one, or keys would change lanes. */
  async #lanes(): Promise<number> {
    return this.#laneCount ?? (await this.prepare()).lanes;
  }

  async #scope(grants: readonly Grant[], server: string, last: string): Promise<ScanScope> {
    const lanes = grants.map(({ lane }) => lane);
    return { link: this.#parts.link, pipeline: this.#name, laneCount: await this.#lanes(), lanes, server, last };
  }

  #fenced({ epoch, lane }: Grant, found: Reply | undefined): RelayError {
    const what = `Lane ${lane} of ${this.#name} is no longer owned at epoch ${epoch} (found: ${textOf(found)}).`;
    return new RelayError("FENCED", what);
  }
}

function grantArguments({ epoch, lane, owner }: Grant): readonly Argument[] {
  return [lane, owner, String(epoch)];
}

async function eachPending(scope: ScanScope, after: string, visit: (head: EventHead) => void): Promise<void> {
  let position = after;
  for (;;) {
    const scanned = await scanPending(scope, position);
    for (const head of scanned.heads) visit(head);
    if (scanned.isEnd) return;
    position = scanned.after;
  }
}
