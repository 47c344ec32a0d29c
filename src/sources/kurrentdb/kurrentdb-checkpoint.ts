import { createHash, randomUUID } from "node:crypto";
import { isRelayError, RelayError } from "../../core/errors.ts";
import type { EventLog, LoggedEvent } from "../../ports/event-log.ts";

const TYPE = "RelayCheckpoint.v1";

/** What a checkpoint needs of an event log. */
export type CheckpointLog = Pick<EventLog, "append" | "readLast">;

/**
 * A checkpoint in the event store itself, in its own stream that keeps only the last one. Each write names the revision
 * that this process last saw, so a second writer is detected.
 */
export class CheckpointStream {
  readonly #log: CheckpointLog;
  readonly #stream: string;
  /** A different id in each process: two processes that write the same position are still two writers. */
  readonly #writer = randomUUID();
  /** The last revision; null when there is none, undefined before the first read. */
  #last: bigint | null | undefined;
  #isSure = true;

  /** By convention `<context>.<aggregate>.relay.checkpoint`. */
  constructor(log: CheckpointLog, stream: string) {
    this.#log = log;
    this.#stream = stream;
  }

  /** Returns null when there is none yet. A new owner reads first, and is the only writer from then on. */
  async read(): Promise<string | null> {
    const last = await this.#log.readLast(this.#stream);
    this.#last = last?.revision ?? null;
    this.#isSure = true;
    return last === null ? null : positionIn(last);
  }

  /**
   * Throws FENCED when another process has written meanwhile. After that, and before the first write, it reads the
   * stream again.
   */
  async write(position: string): Promise<void> {
    if (this.#last === undefined) await this.read();
    else if (!this.#isSure) await this.#lookBack(this.#last);
    const last = this.#last ?? null;
    if (last === null) await keepLastOnly(this.#log, this.#stream);
    const id = uuidOf(`${this.#stream}\n${this.#writer}\n${last ?? ""}\n${position}`);
    const event = { id, type: TYPE, data: { position }, metadata: { writer: this.#writer } };
    try {
      this.#isSure = false;
      this.#last = await this.#log.append(this.#stream, last, [event]);
      this.#isSure = true;
    } catch (error) {
      if (isRelayError(error, "WRONG_REVISION")) throw this.#fenced(error);
      throw error;
    }
  }

  /** After a write without a response: checks whether it took effect, and that no other process wrote. */
  async #lookBack(known: bigint | null): Promise<void> {
    const found = await this.#log.readLast(this.#stream);
    const revision = found?.revision ?? null;
    const isOwn = revision === (known ?? -1n) + 1n && found?.metadata?.writer === this.#writer;
    if (revision !== known && !isOwn) throw this.#fenced();
    this.#last = revision;
    this.#isSure = true;
  }

  #fenced(cause?: unknown): RelayError {
    this.#last = undefined;
    return new RelayError("FENCED", `Another relay has written the checkpoint ${this.#stream}.`, { cause });
  }
}

function positionIn({ data, revision, stream }: LoggedEvent): string {
  const position = (data as { readonly position?: unknown } | null | undefined)?.position;
  if (typeof position === "string") return position;
  throw new RelayError("LOG_LOST", `The event ${revision} of ${stream} is not a checkpoint.`);
}

/** An existing setting wins: an earlier process or an operator has chosen how many to keep. */
async function keepLastOnly(log: CheckpointLog, stream: string): Promise<void> {
  const id = randomUUID();
  try {
    await log.append(`$$${stream}`, null, [{ id, type: "$metadata", data: { $maxCount: 1 }, metadata: {} }]);
  } catch (error) {
    if (!isRelayError(error, "WRONG_REVISION")) throw error;
  }
}

/** Derives the same UUID from the same text, so that a repeated append is idempotent. */
function uuidOf(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
