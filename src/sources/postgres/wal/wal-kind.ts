import { isRelayError, RelayError } from "../../../core/errors.ts";
import { typeMatcher } from "../../../core/type-filter.ts";
import type { ClaimedEvent, TypeRule } from "../../../ports/queue-store.ts";
import { glance } from "../../../postgres/transaction.ts";
import type { Checkpoint, LogBacklog, LogKind, LogPass, LogPosition, PassRequest } from "../log/log-kind.ts";
import { requirePublication } from "./publication.ts";
import { type CurrentPosition, identify, positionOn, replicationError, startReplication } from "./replication.ts";
import { ReplicationLink } from "./replication-link.ts";
import { ReturnedRows } from "./returned-rows.ts";
import { requireSlot } from "./slot.ts";
import { UnroutedEvents } from "./unrouted-events.ts";
import { EMPTY_PASS, WalPass } from "./wal-pass.ts";
import {
  isSamePosition,
  orderOf,
  parseLsn,
  printLsn,
  readPosition,
  type WalPosition,
  type WalSegment,
  writePosition,
} from "./wal-position.ts";
import {
  CONFIRM_AFTER_MS,
  firstPosition,
  setUp,
  type WalOptions,
  type WalSetup,
  wantedPublication,
} from "./wal-setup.ts";
import { WalStream } from "./wal-stream.ts";

/** The checkpoint follows an idle log once it lags by this much: each write of it makes the log itself longer. */
const IDLE_BYTES_MAX = 1024n * 1024n;
/** How often slot and publication are checked while nothing arrives: a dropped table or slot looks like an idle one. */
const GUARD_MS = 10_000;
/** After this long without a request the slot is released: the lane's new owner may be waiting for it. */
const IDLE_MAX_MS = 60_000;

/** Opens the server's write-ahead log as a source of events. */
export function walKind(options: WalOptions): WalKind {
  return new WalKind(options);
}

/**
 * The server's write-ahead log, read through a slot with the plugin pgoutput. One connection stays open from pass to
 * pass. The server removes only what `settled` has confirmed.
 */
export class WalKind implements LogKind<WalSegment> {
  readonly lanesMax = 1;
  readonly readsInOrder = true;
  readonly #options: WalOptions;
  readonly #takes: (event: ClaimedEvent) => boolean;
  readonly #unrouted = new UnroutedEvents();
  readonly #given = new ReturnedRows();
  readonly #watchers = new Set<() => void>();
  #setup: WalSetup | null = null;
  #stream: WalStream | null = null;
  #guardedAtMs = Number.NEGATIVE_INFINITY;
  /** A pass ended at a row that lacked a column; the next look at the table shows whether the column is back. */
  #missedColumns = false;
  #isClosed = false;

  constructor(options: WalOptions) {
    if (options.table === null && options.messages === null) {
      throw new RelayError("CONFIG_INVALID", "A write-ahead log source needs a table, a message prefix, or both");
    }
    this.#options = options;
    this.#takes = typeMatcher(options.spec.types);
  }

  async prepare(): Promise<void> {
    const before = this.#setup?.content.table?.parts;
    this.#setup = await setUp(this.#options, before, this.#missedColumns);
    this.#missedColumns = false;
  }

  /** The slot's name; null before `prepare`. */
  get slot(): string | null {
    return this.#setup?.slot ?? null;
  }

  async start(): Promise<string> {
    return await firstPosition(this.#options, this.#prepared());
  }

  encode(place: WalPosition, ahead: readonly WalPosition[]): string {
    return writePosition(this.#prepared().server.system, place, ahead);
  }

  async decode(checkpoint: string): Promise<Checkpoint<WalSegment>> {
    const written = readPosition(checkpoint);
    const { place, switchLsn } = await this.#currentPosition(null, written.place, written.system);
    // Rows read beyond the point of a promotion never happened: those positions hold other rows now.
    const isPast = ({ segment }: WalPosition) => switchLsn === null || segment.lsn < switchLsn;
    return { place, ahead: written.ahead.filter(isPast) };
  }

  async open({ heads }: PassRequest<WalSegment>): Promise<LogPass<WalSegment>> {
    const head = heads.get(0);
    if (head === undefined) return EMPTY_PASS;
    const stream = this.#stream;
    if (stream === null || stream.failure !== null || !isSamePosition(stream.given, head)) {
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

  unrouted(
    rules: readonly (readonly TypeRule[])[],
  ): Promise<readonly { readonly type: string; readonly count: number }[]> {
    return Promise.resolve(this.#unrouted.count(rules));
  }

  orderOf({ mark, segment }: LogPosition<WalSegment>): bigint {
    return orderOf({ mark, segment });
  }

  settled(places: readonly WalPosition[]): void {
    for (const place of places) {
      this.#given.forget(place);
      this.#stream?.settle(place.segment);
    }
  }

  /** The server itself removes settled parts of the log; the application owns the rows of the table. */
  prune(): Promise<number> {
    return Promise.resolve(0);
  }

  /** Calls back when rows have arrived. */
  readonly watch = (onNews: () => void) => {
    this.#watchers.add(onNews);
    return () => {
      this.#watchers.delete(onNews);
    };
  };

  /** Releases the slot, so that another instance can read it; the next pass takes it again. */
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
    if (this.#setup === null) throw new RelayError("LOG_LOST", "The write-ahead log has not been prepared");
    return this.#setup;
  }

  async #connect(head: WalPosition): Promise<WalStream> {
    const { database, messages } = this.#options;
    const { content, publication, slot } = this.#prepared();
    // Only once: the next time that a column is gone, the reading must stop again.
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
      const { place: from } = await this.#currentPosition(link, head, null);
      stream = new WalStream(link, {
        content,
        from,
        given: head,
        takes: this.#takes,
        onUnrouted: (event) => this.#unrouted.note(event),
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
      throw await this.#errorOf(error);
    }
  }

  /** The position in the server's current timeline, if the slot still has it. Throws LOG_LOST and SLOT_LOST. */
  async #currentPosition(
    link: ReplicationLink | null,
    place: WalPosition,
    system: string | null,
  ): Promise<CurrentPosition> {
    const { database } = this.#options;
    const { server, slot } = this.#prepared();
    const found = link === null ? server.system : (await identify(link)).system;
    if (found !== (system ?? server.system)) {
      const what = `The checkpoint ${printLsn(place.segment.lsn)} belongs to another server (system ${system ?? server.system}, this is ${found})`;
      throw new RelayError("LOG_LOST", what);
    }
    const health = await requireSlot(database, slot);
    const present = await positionOn(database, place, health.timeline);
    const { lsn } = present.place.segment;
    if (health.confirmedLsn !== null && health.confirmedLsn > lsn) {
      const what = `The slot ${slot} begins at ${printLsn(health.confirmedLsn)}, after the checkpoint ${printLsn(lsn)}: another reader advanced it, or the checkpoint was moved back`;
      throw new RelayError("LOG_LOST", what);
    }
    if (lsn > health.currentLsn) {
      const what = `The checkpoint ${printLsn(lsn)} lies ahead of the log, which ends at ${printLsn(health.currentLsn)}: the database was restored from an older copy`;
      throw new RelayError("LOG_LOST", what);
    }
    return present;
  }

  /** While nothing arrives, checks that the slot and the publication still exist. */
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
      database.errorContext("reading the end of the log"),
      database.timeouts.readMs,
      "select pg_catalog.pg_current_wal_flush_lsn(), extract(epoch from pg_catalog.clock_timestamp()) * 1000",
    );
    return { currentLsn: parseLsn(row?.[0] ?? ""), nowMs: Number(row?.[1]) };
  }

  async #errorOf(error: unknown): Promise<RelayError> {
    if (isRelayError(error, "COLUMN_MISSING")) this.#missedColumns = true;
    if (isRelayError(error)) return error;
    return await replicationError(error, this.#options.database, "reading the write-ahead log", this.slot);
  }

  #onNews(): void {
    for (const watcher of this.#watchers) watcher();
  }
}
