import type {
  ClaimedEvent,
  Grant,
  QueueSource,
  QueueStore,
  Run,
  RunRequest,
  Settlement,
} from "../ports/queue-store.ts";

/** Hears how a source answers. */
export interface StoreWatch {
  /** A look for events succeeded: whether there are any, or the first page of a run. */
  polled(durationMs: number): void;
  /** Any question was answered. */
  answered(): void;
}

/** The same source, with every store that it gives out being watched. `watch` is told each pipeline and its store. */
export function watchedSource(
  source: QueueSource,
  watch: (pipeline: string, store: QueueStore) => StoreWatch,
): QueueSource {
  return {
    name: source.name,
    membership: source.membership,
    pipeline: (spec) => {
      const store = source.pipeline(spec);
      return new WatchedStore(store, watch(spec.name, store));
    },
    close: () => source.close(),
  };
}

/** A relay that owns no lane, or whose destination is down, asks for nothing but the lanes: that is a sign of life too. */
class WatchedStore implements QueueStore {
  readonly #inner: QueueStore;
  readonly #watch: StoreWatch;
  /** Absent where the inner store has none: callers tell by that. */
  readonly watch?: NonNullable<QueueStore["watch"]>;
  readonly livingHolds?: NonNullable<QueueStore["livingHolds"]>;
  readonly warnings?: NonNullable<QueueStore["warnings"]>;

  constructor(inner: QueueStore, watch: StoreWatch) {
    this.#inner = inner;
    this.#watch = watch;
    if (inner.watch !== undefined) this.watch = (onNews) => inner.watch!(onNews);
    if (inner.livingHolds !== undefined) this.livingHolds = (grant) => this.#answer(inner.livingHolds!(grant));
    if (inner.warnings !== undefined) this.warnings = () => this.#answer(inner.warnings!());
  }

  get durableClaims() {
    return this.#inner.durableClaims;
  }

  prepare() {
    return this.#answer(this.#inner.prepare());
  }

  lookAt(ids: readonly string[]) {
    return this.#answer(this.#inner.lookAt(ids));
  }

  identity() {
    return this.#answer(this.#inner.identity());
  }

  survey() {
    return this.#answer(this.#inner.survey());
  }

  takeOver(owner: string, lanes: readonly number[]) {
    return this.#answer(this.#inner.takeOver(owner, lanes));
  }

  release(grant: Grant, suspects: readonly string[] = []) {
    return this.#answer(this.#inner.release(grant, suspects));
  }

  async probe(grants: readonly Grant[]): Promise<boolean> {
    const startedMs = performance.now();
    const found = await this.#answer(this.#inner.probe(grants));
    this.#watch.polled(performance.now() - startedMs);
    return found;
  }

  async begin(request: RunRequest): Promise<Run> {
    const startedMs = performance.now();
    return new WatchedRun(await this.#answer(this.#inner.begin(request)), this.#watch, startedMs);
  }

  claimHeads(grant: Grant, ids: readonly string[]) {
    return this.#answer(this.#inner.claimHeads(grant, ids));
  }

  settle(settlement: Settlement) {
    return this.#answer(this.#inner.settle(settlement));
  }

  reviewHolds(grant: Grant) {
    return this.#answer(this.#inner.reviewHolds(grant));
  }

  unrouted() {
    return this.#answer(this.#inner.unrouted());
  }

  backlog() {
    return this.#answer(this.#inner.backlog());
  }

  prune(olderThanMs: number, rows: number) {
    return this.#answer(this.#inner.prune(olderThanMs, rows));
  }

  async #answer<T>(answer: Promise<T>): Promise<T> {
    const result = await answer;
    this.#watch.answered();
    return result;
  }
}

class WatchedRun implements Run {
  readonly lanes: Run["lanes"];
  readonly #inner: Run;
  readonly #watch: StoreWatch;
  #startedMs: number | null;

  constructor(inner: Run, watch: StoreWatch, startedMs: number) {
    this.lanes = inner.lanes;
    this.#inner = inner;
    this.#watch = watch;
    this.#startedMs = startedMs;
  }

  get isAwaited(): boolean {
    return this.#inner.isAwaited ?? false;
  }

  async next(...asked: Parameters<Run["next"]>): Promise<readonly ClaimedEvent[]> {
    const page = await this.#inner.next(...asked);
    this.#watch.answered();
    if (this.#startedMs !== null) this.#watch.polled(performance.now() - this.#startedMs);
    this.#startedMs = null;
    return page;
  }

  end(): Promise<void> {
    return this.#inner.end();
  }
}
