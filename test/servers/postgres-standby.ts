import { type PostgresServer, startPostgres } from "./postgres.ts";
import type { PostgresVersion } from "./postgres-binaries.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";
import { until } from "./until.ts";

/** A primary with one asynchronous streaming standby, and a stable address in front of whichever is the primary. */
export type ReplicatedPostgres = AsyncDisposable & {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  /** What a client connects to. It leads to the first primary until it is retargeted. */
  readonly proxy: TcpProxy;
  /** A superuser's connection string through the proxy. */
  databaseUrl(name?: string, user?: string, password?: string): string;
  /** From its return on, no further commit reaches the standby, so that a promotion loses all later commits. */
  pauseReplication(): void;
  resumeReplication(): void;
  /** Returns when the standby has replayed everything that the primary had committed at the time of the call. */
  caughtUp(): Promise<void>;
  /** Makes the standby a primary. The proxy is left alone. */
  promote(): Promise<void>;
  /** kill -9 of the primary. */
  kill(): Promise<void>;
  /** The whole thing: kills the primary, promotes the standby and points the proxy to it. */
  failover(): Promise<void>;
};

export async function startReplicated(options: {
  readonly version: PostgresVersion;
  readonly flags?: readonly string[];
}): Promise<ReplicatedPostgres> {
  await using started = new AsyncDisposableStack();
  // Enough WAL is kept for the standby to catch up after a long pause.
  const flags = ["-c", "wal_keep_size=1GB", "-c", "wal_retrieve_retry_interval=100ms", ...(options.flags ?? [])];
  const primary = started.use(await startPostgres({ ...options, flags }));
  // The stream has a proxy of its own. Freezing the standby's receiver would not do: what the kernel has received by
  // then, and what the receiver has written, would still be replayed at the promotion.
  const stream = started.use(await startTcpProxy(primary.port));
  const standby = started.use(await startPostgres({ ...options, flags, standbyOfPort: stream.port }));
  const proxy = started.use(await startTcpProxy(primary.port));
  const owned = started.move();

  const promote = async (): Promise<void> => {
    await standby.query("SELECT pg_promote(true, 60)");
    await until("the standby is a primary", async () => {
      const { rows } = await standby.query<{ following: boolean }>("SELECT pg_is_in_recovery() AS following");
      return rows[0]?.following === false;
    });
  };
  const replicated: ReplicatedPostgres = {
    primary,
    standby,
    proxy,
    databaseUrl: (name, user, password) =>
      primary.databaseUrl(name, user, password).replace(`:${primary.port}/`, `:${proxy.port}/`),
    pauseReplication() {
      stream.refuse(true);
      stream.cut();
    },
    resumeReplication: () => stream.refuse(false),
    caughtUp: () => catchUp(primary, standby),
    promote,
    kill: () => primary.kill(),
    async failover() {
      await primary.kill();
      await promote();
      proxy.retarget(standby.port);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
  await replicated.caughtUp();
  return replicated;
}

async function catchUp(primary: PostgresServer, standby: PostgresServer): Promise<void> {
  const { rows } = await primary.query<{ lsn: string }>("SELECT pg_current_wal_insert_lsn() AS lsn");
  await until("the standby has caught up", async () => {
    const replayed = await standby.query<{ done: boolean }>("SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn AS done", [
      rows[0]?.lsn,
    ]);
    return replayed.rows[0]?.done;
  });
}
