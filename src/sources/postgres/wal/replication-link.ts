import pg from "pg";
import type { Database } from "../../../postgres/pool.ts";
import type { Row } from "../../../postgres/session.ts";
import { fixSessionSql } from "../../../postgres/session-settings.ts";
import { READER_SUFFIX } from "./slot.ts";

/** The receiver of a link's messages. Buffers are reused as soon as a call returns. */
export interface LinkListener {
  /** A message of the log; it begins at `at`. */
  onChange(buffer: Buffer, at: number): void;
  /** A keepalive: the server has sent everything for this slot up to `endLsn`. */
  onAlive(endLsn: bigint, wantsReply: boolean): void;
  /** The link cannot be used any more. Called once, and not after `end`. */
  onFailure(error: unknown): void;
}

/** The positions of a standby status update. */
interface StandbyStatus {
  /** Everything before it has arrived here. */
  readonly receivedLsn: bigint;
  /**
   * Everything before it is settled for good: the server can remove it. A position must never be reported before its
   * checkpoint is stored, or a crash loses events.
   */
  readonly settledLsn: bigint;
}

const CHANGE = 119; // w
const CHANGE_HEAD_BYTES = 25;
const ALIVE = 107; // k
const CLOSE_MS = 1_000;
const TERMINATE = Buffer.from([0x58, 0, 0, 0, 4]);
const EPOCH_MS = 946_684_800_000;

/** The type definitions do not know that a connection can send to a COPY. */
type CopyConnection = pg.Connection & { sendCopyFromChunk(chunk: Buffer): void };

/** One connection to the server's replication protocol, through the driver. */
export class ReplicationLink {
  readonly #client: pg.Client;
  #connection: CopyConnection | null = null;
  #listener: LinkListener | null = null;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  /** Errors are the driver's. */
  static async connect(database: Database, suffix = READER_SUFFIX): Promise<ReplicationLink> {
    const { options } = database.pool;
    const config = {
      ...options,
      // The pool hides the password from a copy of its options.
      password: options.password,
      application_name: `${options.application_name}${suffix}`,
      replication: "database",
    };
    const client = new pg.Client(config as pg.ClientConfig);
    const link = new ReplicationLink(client);
    client.on("error", (error) => link.#fail(error));
    client.on("end", () => link.#fail(new Error("Connection terminated")));
    await client.connect();
    // Rows are printed under this connection's settings, which no other code changes.
    await link.rows(fixSessionSql());
    return link;
  }

  /** Runs a statement before the reading begins: SQL or a replication command. */
  async rows(text: string): Promise<readonly Row[]> {
    const { rows } = await this.#client.query<(string | null)[]>({ text, rowMode: "array" });
    return rows;
  }

  /** Resolves when the server has begun to send. */
  async start(command: string, listener: LinkListener): Promise<void> {
    this.#listener = listener;
    await new Promise<void>((resolve, reject) => {
      let hasBegun = false;
      const begun = (connection: CopyConnection) => {
        this.#connection = connection;
        hasBegun = true;
        resolve();
      };
      const failed = (error: unknown) => {
        if (hasBegun) this.#fail(error);
        else reject(error);
      };
      this.#client.query(new ReplicationQuery(command, listener, begun, failed));
    });
  }

  pause(): void {
    this.#connection?.stream.pause();
  }

  resume(): void {
    this.#connection?.stream.resume();
  }

  /**
   * Sends a standby status update. Even a server that is blocked in sending reads it, since it checks for replies while
   * it waits.
   */
  sendStatus({ receivedLsn, settledLsn }: StandbyStatus, wantsReply: boolean): void {
    const status = Buffer.allocUnsafe(34);
    status.write("r", 0, "latin1");
    status.writeBigUInt64BE(receivedLsn, 1);
    status.writeBigUInt64BE(settledLsn, 9);
    status.writeBigUInt64BE(settledLsn, 17);
    status.writeBigInt64BE(BigInt(Date.now() - EPOCH_MS) * 1000n, 25);
    status.writeUInt8(wantsReply ? 1 : 0, 33);
    this.#connection?.sendCopyFromChunk(status);
  }

  /**
   * Closes the connection properly, so that the slot is free for the next reader at once. Safe to repeat; never throws.
   */
  async end(): Promise<void> {
    this.#listener = null;
    const stream = this.#connection?.stream;
    this.#connection = null;
    if (stream !== undefined && !stream.destroyed) {
      await new Promise<void>((resolve) => {
        const late = setTimeout(resolve, CLOSE_MS);
        stream.once("close", () => {
          clearTimeout(late);
          resolve();
        });
        stream.end(TERMINATE);
        stream.resume();
      });
    }
    await this.#client.end().catch(() => {});
  }

  #fail(error: unknown): void {
    const listener = this.#listener;
    this.#listener = null;
    listener?.onFailure(error);
  }
}

/** A query of the driver that never ends: the driver passes it whatever the server sends. */
class ReplicationQuery {
  readonly #command: string;
  readonly #listener: LinkListener;
  readonly #begun: (connection: CopyConnection) => void;
  readonly #failed: (error: unknown) => void;
  #connection: pg.Connection | null = null;
  #onStart = (): void => {};

  constructor(
    command: string,
    listener: LinkListener,
    begun: (connection: CopyConnection) => void,
    failed: (error: unknown) => void,
  ) {
    this.#command = command;
    this.#listener = listener;
    this.#begun = begun;
    this.#failed = failed;
  }

  submit(connection: pg.Connection): void {
    this.#onStart = () => this.#begun(connection as CopyConnection);
    this.#connection = connection;
    connection.once("replicationStart", this.#onStart);
    connection.query(this.#command);
  }

  handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    if (chunk[0] === CHANGE) this.#listener.onChange(chunk, CHANGE_HEAD_BYTES);
    else if (chunk[0] === ALIVE) this.#listener.onAlive(chunk.readBigUInt64BE(1), chunk[17] === 1);
  }

  handleError(error: unknown): void {
    this.#connection?.off("replicationStart", this.#onStart);
    this.#failed(error);
  }

  handleCommandComplete(): void {
    this.#failed(new Error("Connection terminated: the server ended the replication"));
  }

  handleReadyForQuery(): void {}
}
