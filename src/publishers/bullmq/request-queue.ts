import { RelayError } from "../../core/errors.ts";
import { LinkPool } from "../../core/link-pool.ts";
import { answerIn } from "../../core/redis-errors.ts";
import type { RequestBatch, RequestGroup, RequestLease, RequestQueue } from "../../ports/request-queue.ts";
import { RELEASE, RENEW } from "../../requests/lease-scripts.ts";
import { BullmqLink, loadBullmq } from "./bullmq-client.ts";
import { type BullmqPublisherOptions, type BullmqSettings, bullmqSettings } from "./bullmq-config.ts";
import { connectionReason } from "./bullmq-errors.ts";
import { dispatch } from "./request-dispatch.ts";
import { groupKeys } from "./request-keys.ts";
import { ACQUIRE } from "./request-scripts.ts";
import { deadRequests, discard, memoryFaults, seek, standing } from "./request-standing.ts";

/** A queue of request references in BullMQ, with markers, leases and positions in the same Redis. */
export function bullmqRequestQueue(options: BullmqPublisherOptions): RequestQueue {
  const settings = bullmqSettings(options);
  const { removeOnComplete, removeOnFail } = settings.jobOptions;
  const links = new Links(settings);
  return {
    async acquire(group, owner, leaseMs) {
      const { lease, leaseCount, position } = groupKeys(group);
      const won = await links.use(({ client }) => client.eval(ACQUIRE, 3, lease, leaseCount, position, owner, leaseMs));
      if (won === null) return null;
      const [token, stored] = won as [string, string | null];
      return { token, position: stored ?? null };
    },
    position: (group) => links.use(({ client }) => client.get(groupKeys(group).position)),
    async renew(group, { token }, leaseMs) {
      const { lease } = groupKeys(group);
      if ((await links.use(({ client }) => client.eval(RENEW, 1, lease, token, leaseMs))) === 1) return;
      throw new RelayError(
        "FENCED",
        `The lease of ${group.context}.${group.aggregate} expired, or another relay took it.`,
      );
    },
    async release(group, { token }) {
      await links.use(({ client }) => client.eval(RELEASE, 1, groupKeys(group).lease, token));
    },
    dispatch: (group: RequestGroup, lease: RequestLease, batch: RequestBatch, sent?: () => void) =>
      links.use((link) => dispatch(link, group, lease, batch, { removeOnComplete, removeOnFail, sent })),
    standing: (group) => links.use((link) => standing(link, group)),
    seek: (group, position) => links.use(({ client }) => seek(client, group, position)),
    deadRequests: (group, max) => links.use(({ client }) => deadRequests(client, group, max)),
    async revive(group, jobs) {
      const batch = { jobs, dead: [], after: null, position: "" };
      const ids = jobs.map(({ eventId }) => eventId);
      return await links.use(async (link) => {
        const { isNew } = await dispatch(link, group, null, batch, { removeOnComplete, removeOnFail });
        await discard(link.client, group, ids);
        return isNew;
      });
    },
    discard: (group, ids) => links.use(({ client }) => discard(client, group, ids)),
    memory: () => links.use(({ client }) => memoryFaults(client)),
    async ping() {
      await links.use(({ client }) => client.ping());
    },
    close: () => links.close(),
  };
}

/** Connections, each used by one call at a time, because WATCH applies to a whole connection. */
class Links {
  readonly #settings: BullmqSettings;
  readonly #closed = new AbortController();
  #pool: Promise<LinkPool<BullmqLink>> | null = null;

  constructor(settings: BullmqSettings) {
    this.#settings = settings;
  }

  /** Translates errors to RelayError. Destroys the connection if there is no answer in time. */
  async use<T>(work: (link: BullmqLink) => Promise<T>): Promise<T> {
    const { requestTimeoutMs } = this.#settings;
    this.#pool ??= loadBullmq().then((library) => new LinkPool(() => new BullmqLink(library, this.#settings)));
    const pool = await this.#pool;
    const link = await pool.take(this.#closed.signal);
    if (link === null) throw new RelayError("DESTINATION_UNREACHABLE", "The queue was closed.");
    const { promise: timedOut, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      link.destroy();
      reject(new Error(`no answer within ${requestTimeoutMs} ms`));
    }, requestTimeoutMs);
    try {
      return await Promise.race([link.open().then(() => work(link)), timedOut]);
    } catch (error) {
      // The connection's watched keys, queued commands and loaded scripts are unknown after an error, so it is not
      // reused.
      link.destroy();
      throw this.#explained(link, error);
    } finally {
      clearTimeout(timer);
      pool.giveBack(link);
    }
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await (await this.#pool?.catch(() => null))?.close();
  }

  #explained(link: BullmqLink, error: unknown): RelayError {
    if (error instanceof RelayError) return error;
    const said = answerIn(error);
    // A refused transaction has the error of the command at fault in `previousErrors`.
    const [first] = (error as { readonly previousErrors?: readonly Error[] }).previousErrors ?? [];
    const reason = connectionReason(this.#settings, said === null ? link.explained(error) : (first ?? error));
    return new RelayError("DESTINATION_UNREACHABLE", reason, { cause: error });
  }
}
