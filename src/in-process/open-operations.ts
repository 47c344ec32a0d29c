import { randomUUID } from "node:crypto";
import type { ReplayPlan } from "../client/api-types.ts";
import { clientOf, type RelayClient, type WaitOptions } from "../client/relay-client.ts";
import type { Identity } from "../http/identity.ts";
import { operationRoutes } from "../http/routes/operation-routes.ts";
import type { OperationTarget } from "../operations/events/event-source.ts";
import { runPlan } from "../operations/replay/replay-runner.ts";
import type { ColumnNames } from "../postgres/column-names.ts";
import type { Database } from "../postgres/pool.ts";
import { callRoute } from "./call-route.ts";

/** Options of `openOperations`. */
export interface OperationsOptions {
  /** Better with connections of its own: an operation must not wait for one that a delivery uses. It stays open. */
  readonly database: Database;
  /** Who acts, for the audit. */
  readonly by: string;
  /** Column names of your tables that differ from the usual ones. */
  readonly columns?: ColumnNames;
}

/** The face of `createRelayClient`, without a service and without HTTP. */
export interface RelayOperations extends RelayClient, AsyncDisposable {
  /** Leaves the plans that it carries out where they are, for `waitForReplay` of the next process or for a service. */
  close(): Promise<void>;
}

/** The pause between two looks at a plan, which cost one query each. */
const LOOK_MS = 200;

/**
 * Asks and steers the relays of a database from any process that reaches it, with all rights. Plans that it starts are carried
 * out in this process.
 */
export function openOperations({ by, columns = {}, database }: OperationsOptions): RelayOperations {
  const target: OperationTarget = { database, columns };
  const identity: Identity = { name: by, role: "admin", maySeePayloads: true, via: "api" };
  const routes = new Map(operationRoutes(() => target).map((route) => [route.id, route]));
  const runners = new PlanRunners(target);
  const client = clientOf(async (operation, request, options) => {
    const route = routes.get(operation);
    if (route === undefined) throw new TypeError(`There is no operation ${operation}`);
    const answer = await callRoute(route, request, { ...options, identity });
    const { replay = answer } = Object(answer) as { readonly replay?: unknown };
    if (route.method === "POST" && isRunning(replay)) runners.run(replay.id);
    return answer;
  });
  const close = () => runners.stop();
  return {
    ...client,
    waitForReplay: (id, options) =>
      runners.waitFor(id, (more) => client.waitForReplay(id, { ...options, ...more }), options),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function isRunning(answer: unknown): answer is ReplayPlan {
  const { id, state } = Object(answer) as Partial<ReplayPlan>;
  return typeof id === "string" && state === "running";
}

/** The plans that this process carries out. */
class PlanRunners {
  readonly #target: OperationTarget;
  readonly #stopping = new AbortController();
  readonly #running = new Map<string, Promise<void>>();

  constructor(target: OperationTarget) {
    this.#target = target;
  }

  /** Returns at once; a plan that another process carries out is left to it. */
  run(id: string): void {
    if (this.#running.has(id) || this.#stopping.signal.aborted) return;
    const work = runPlan(this.#target, id, { runner: randomUUID(), signal: this.#stopping.signal });
    this.#running.set(id, work);
    // The caller that waits for the plan gets the error.
    work.then(() => this.#running.delete(id)).catch(() => {});
  }

  /** Waits for the end of a plan, and takes it up when no process works on it. Rejects when this process cannot. */
  async waitFor(
    id: string,
    wait: (options: WaitOptions) => Promise<ReplayPlan>,
    { everyMs = LOOK_MS, onProgress, signal }: WaitOptions = {},
  ): Promise<ReplayPlan> {
    const failed = Promise.withResolvers<never>();
    const over = new AbortController();
    const look = (plan: ReplayPlan) => {
      if (plan.state === "running" && !plan.isServed) this.run(id);
      this.#running.get(id)?.catch(failed.reject);
      onProgress?.(plan);
    };
    const ends = [over.signal, this.#stopping.signal, ...(signal === undefined ? [] : [signal])];
    try {
      return await Promise.race([wait({ everyMs, onProgress: look, signal: AbortSignal.any(ends) }), failed.promise]);
    } finally {
      over.abort();
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.allSettled(this.#running.values());
  }
}
