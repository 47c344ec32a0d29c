import { isRelayError, RelayError } from "../../../core/errors.ts";
import { typeMatcher } from "../../../core/type-filter.ts";
import type { ClaimedEvent, TypeRule } from "../../../ports/queue-store.ts";
import { glance } from "../../../postgres/transaction.ts";
import type { Checkpoint, LogBacklog, LogKind, LogPass, LogPlace, PassRequest } from "../log/log-kind.ts";
import { GivenRows } from "./given-rows.ts";
import { parseLsn, printLsn } from "./lsn.ts";
import { requirePublication } from "./publication.ts";
import { identify, type PresentPlace, placeOn, replicationError, startReplication } from "./replication.ts";
import { ReplicationLink } from "./replication-link.ts";
import { requireSlot } from "./slot.ts";
import { Untaken } from "./untaken.ts";
import { CONFIRM_AFTER_MS, type WalOptions } from "./wal-options.ts";
import { EMPTY_PASS, WalPass } from "./wal-pass.ts";
import { isSamePlace, orderOf, readPlace, type WalPlace, type WalSegment, writePlace } from "./wal-place.ts";
import { firstPlace, setUp, type WalSetup, wantedPublication } from "./wal-setup.ts";
import { WalStream } from "./wal-stream.ts";

/** The checkpoint follows an idle log once it is so much behind: each write of it makes the log longer by itself. */
const IDLE_BYTES_MAX = 1024n * 1024n;
/** How often slot and publication are looked at while nothing comes: a dropped table or slot is as quiet as an idle one. */
const GUARD_MS = 10_000;
/** The lane may be somebody else's by now, who waits for the slot. */
const IDLE_MAX_MS = 60_000;

export function walKind(options: WalOptions): WalKind {
  return new WalKind(options);
}

/**
 * The server's write-ahead log, read through a slot by the plugin pgoutput. One connection stays open from pass to
 * pass; the server forgets only what `settled` has named.
 */
export class WalKind implements LogKind<WalSegment> {
  readonly lanesMax = 1;
  readonly readsInOrder = true;
  readonly #options: WalOptions;
  readonly #takes: (event: ClaimedEvent) => boolean;
  readonly #untaken = new Untaken();
  readonly #given = new GivenRows();
  readonly #watchers = new Set<() => void>();
  #setup: WalSetup | null = null;
  #stream: WalStream | null = null;
  #guardedAtMs = Number.NEGATIVE_INFINITY;
  /** A reading ended at a row without one of its columns; the next look at the table tells whether it is back. */
  #missedColumns = false;
  #isClosed = false;

  constructor(options: WalOptions) {
    if (options.table === null && options.messages === null) {
      throw new RelayError("CONFIG_INVALID", "A write-ahead log wants a table, a prefix of messages, or both");
    }
    this.#options = options;
    this.#takes = typeMatcher(options.spec.types);
  }

  async prepare(): Promise<void> {
    const before = this.#setup?.content.table?.parts;
    this.#setup = await setUp(this.#options, before, this.#missedColumns);
    this.#missedColumns = false;
  }

  /** Of the slot; null before `prepare`. */
  get slot(): string | null {
    return this.#setup?.slot ?? null;
  }

  async start(): Promise<string> {
    return await firstPlace(this.#options, this.#prepared());
  }

  encode(place: WalPlace, ahead: readonly WalPlace[]): string {
    return writePlace(this.#prepared().server.system, place, ahead);
  }

  async decode(checkpoint: string): Promise<Checkpoint<WalSegment>> {
    const written = readPlace(checkpoint);
    const { place, switchLsn } = await this.#presentPlace(null, written.place, written.system);
    // What was read beyond the point of a promotion never happened: other rows stand at those places now.
    const isPast = ({ segment }: WalPlace) => switchLsn === null || segment.lsn < switchLsn;
    return { place, ahead: written.ahead.filter(isPast) };
  }

  async open({ heads }: PassRequest<WalSegment>): Promise<LogPass<WalSegment>> {
    const head = heads.get(0);
    if (head === undefined) return EMPTY_PASS;
    const stream = this.#stream;
    if (stream === null || stream.failure !== null || !isSamePlace(stream.given, head)) {
      await this.rest();
      this.#given.rewind(head);
      this.#stream = await this.#connect(head);
    }
    return new WalPass(this.#stream!, {
      onGiven: (rows) => this.#given.add(rows),
      currentLsn: () => this.#currentLsn(),
      errorOf: (failure) => this.#errorOf(failure),
    });
  }

  async probe({ heads }: PassRequest<WalSegment>): Promise<boolean> {
    if (!heads.has(0)) return false;
    const stream = this.#stream;
    if (stream === null || stream.failure !== null) return true;
    stream.touch();
    if (stream.buffered > 0 || stream.isBehind) return true;
    await this.#guard();
    return stream.receivedLsn - stream.given.segment.lsn > IDLE_BYTES_MAX;
  }

  async backlog({ heads }: PassRequest<WalSegment>, max: number): Promise<LogBacklog> {
    const stream = this.#stream;
    if (!heads.has(0) || stream === null || stream.failure !== null) {
      return { pending: 0, isEstimate: true, oldestAgeMs: null };
    }
    const { currentLsn, nowMs } = await this.#clock();
    await stream.settleDown(currentLsn, 200);
    const oldestCommitMs = this.#given.oldestCommitMs(heads.get(0)!) ?? stream.oldestCommitMs;
    const unread = stream.estimateUnread(currentLsn);
    const given = this.#given.countAfter(heads.get(0)!);
    return {
      pending: Math.min(max, given + stream.buffered + unread),
      isEstimate: unread > 0,
      oldestAgeMs: oldestCommitMs === null ? null : Math.max(0, nowMs - oldestCommitMs),
    };
  }

  untaken(
    rules: readonly (readonly TypeRule[])[],
  ): Promise<readonly { readonly type: string; readonly count: number }[]> {
    return Promise.resolve(this.#untaken.count(rules));
  }

  orderOf({ mark, segment }: LogPlace<WalSegment>): bigint {
    return orderOf({ mark, segment });
  }

  settled(places: readonly WalPlace[]): void {
    for (const place of places) {
      this.#given.forget(place);
      this.#stream?.settle(place.segment);
    }
  }

  /** A slot forgets by itself what is settled; rows of the table are its owner's. */
  prune(): Promise<number> {
    return Promise.resolve(0);
  }

  /** Calls back when rows have come in. */
  readonly watch = (onNews: () => void) => {
    this.#watchers.add(onNews);
    return () => {
      this.#watchers.delete(onNews);
    };
  };

  /** Lets the slot go, so that another instance can read it; the next pass takes it again. */
  async rest(): Promise<void> {
    const stream = this.#stream;
    this.#stream = null;
    await stream?.close();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.rest();
  }

  #prepared(): WalSetup {
    if (this.#setup === null) throw new RelayError("LOG_LOST", "The write-ahead log was not looked at yet");
    return this.#setup;
  }

  async #connect(head: WalPlace): Promise<WalStream> {
    const { database, messages } = this.#options;
    const { content, publication, slot } = this.#prepared();
    // Once: the next time that a column is gone, the reading has to stop again.
    if (content.table?.readsFormerNames) {
      this.#setup = {
        ...this.#prepared(),
        content: { ...content, table: { ...content.table, readsFormerNames: false } },
      };
    }
    let link: ReplicationLink | null = null;
    let stream: WalStream | null = null;
    try {
      link = await ReplicationLink.connect(database);
      const [settings] = await link.rows(
        "select setting from pg_catalog.pg_settings where name = 'wal_sender_timeout'",
      );
      const { place: from } = await this.#presentPlace(link, head, null);
      stream = new WalStream(link, {
        content,
        from,
        given: head,
        takes: this.#takes,
        onUntaken: (event) => this.#untaken.note(event),
        onNews: () => this.#onNews(),
        senderTimeoutMs: Number(settings?.[0]),
        confirmAfterMs: this.#options.confirmAfterMs ?? CONFIRM_AFTER_MS,
        idleMaxMs: IDLE_MAX_MS,
      });
      await startReplication(database, link, stream, {
        slot,
        publication,
        lsn: from.segment.lsn,
        hasMessages: messages !== null,
      });
      if (this.#isClosed) throw new Error("Connection terminated: the source was closed");
      return stream;
    } catch (error) {
      await (stream === null ? link?.end() : stream.close());
      throw this.#errorOf(error);
    }
  }

  /** The place in the server's present history, if the slot still has it. Throws LOG_LOST and SLOT_LOST. */
  async #presentPlace(link: ReplicationLink | null, place: WalPlace, system: string | null): Promise<PresentPlace> {
    const { database } = this.#options;
    const { server, slot } = this.#prepared();
    const found = link === null ? server.system : (await identify(link)).system;
    if (found !== (system ?? server.system)) {
      const what = `The checkpoint ${printLsn(place.segment.lsn)} is of another server (system ${system ?? server.system}, this is ${found})`;
      throw new RelayError("LOG_LOST", what);
    }
    const health = await requireSlot(database, slot);
    const present = await placeOn(database, place, health.timeline);
    const { lsn } = present.place.segment;
    if (health.confirmedLsn !== null && health.confirmedLsn > lsn) {
      const what = `The slot ${slot} begins at ${printLsn(health.confirmedLsn)}, behind the checkpoint ${printLsn(lsn)}: somebody else advanced it, or the checkpoint was set back`;
      throw new RelayError("LOG_LOST", what);
    }
    if (lsn > health.currentLsn) {
      const what = `The checkpoint ${printLsn(lsn)} lies ahead of the log, which ends at ${printLsn(health.currentLsn)}: the database was set back`;
      throw new RelayError("LOG_LOST", what);
    }
    return present;
  }

  /** While nothing comes, the reason may be that nothing can come any more. */
  async #guard(): Promise<void> {
    if (performance.now() - this.#guardedAtMs < GUARD_MS) return;
    const { content, publication, slot } = this.#prepared();
    await requireSlot(this.#options.database, slot);
    await requirePublication(this.#options.database, wantedPublication(publication, content.table));
    this.#guardedAtMs = performance.now();
  }

  async #currentLsn(): Promise<bigint> {
    return (await this.#clock()).currentLsn;
  }

  async #clock(): Promise<{ readonly currentLsn: bigint; readonly nowMs: number }> {
    const { database } = this.#options;
    const [row] = await glance(
      database.pool,
      database.errorContext("asking for the end of the log"),
      database.timeouts.readMs,
      "select pg_catalog.pg_current_wal_flush_lsn(), extract(epoch from pg_catalog.clock_timestamp()) * 1000",
    );
    return { currentLsn: parseLsn(row?.[0] ?? ""), nowMs: Number(row?.[1]) };
  }

  #errorOf(error: unknown): RelayError {
    if (isRelayError(error, "COLUMN_MISSING")) this.#missedColumns = true;
    if (isRelayError(error)) return error;
    return replicationError(error, this.#options.database, "reading the write-ahead log", this.#setup?.slot ?? "");
  }

  #onNews(): void {
    for (const watcher of this.#watchers) watcher();
  }
}
