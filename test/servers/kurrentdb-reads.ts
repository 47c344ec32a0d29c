import { randomUUID } from "node:crypto";
import { type Feed, feedOf, type ReadOptions } from "./kurrentdb-feed.ts";
import type { KurrentDbLog } from "./kurrentdb-log.ts";
import { positionOf } from "./kurrentdb-record.ts";
import { type Call, failure, frameOf, streamIdentifier, streamsPb, Timestamp } from "./kurrentdb-wire.ts";

type ReadCall = Call<{ getOptions(): ReadOptions | undefined }>;

const COUNT_PER_WRITE = 256;
/** How many events the server looks at between two checkpoints, times the client's multiplier. */
const SEARCH_WINDOW = 32;
const BACKWARDS = 1;

export class KurrentDbReads {
  readonly #log: KurrentDbLog;
  readonly #subscriptions = new Set<ReadCall>();
  /** How many events were given to connections, whether they have arrived or not. */
  sent = 0;

  constructor(log: KurrentDbLog) {
    this.#log = log;
  }

  get subscriptionCount(): number {
    return this.#subscriptions.size;
  }

  /** Ends all subscriptions as a server does that goes down in order, or as if there were nothing more to say. */
  drop(how: "error" | "end", countMax: number): void {
    for (const call of [...this.#subscriptions].slice(0, countMax)) {
      this.#subscriptions.delete(call);
      if (how === "end") call.end();
      else call.emit("error", failure("UNAVAILABLE", "the server is shutting down"));
    }
  }

  async read(call: ReadCall): Promise<void> {
    const options = call.request.getOptions();
    if (options === undefined) return void call.emit("error", failure("INVALID_ARGUMENT", "no options"));
    const feed = feedOf(this.#log, options);
    if (options.hasSubscription()) return await this.#subscribe(call, feed, options);
    if (feed.state() === "deleted") {
      const trailers = { exception: "stream-deleted", "stream-name": feed.name };
      return void call.emit(
        "error",
        failure("FAILED_PRECONDITION", `Event stream '${feed.name}' is deleted.`, trailers),
      );
    }
    if (feed.state() === "missing") return await sendAll(call, [notFound(feed.name)]).then(() => call.end());
    const backwards = options.getReadDirection() === BACKWARDS;
    await sendAll(call, this.#frames(feed, backwards, Number(options.getCount())));
    call.end();
  }

  *#frames(feed: Feed, backwards: boolean, countMax: number): Iterable<Buffer> {
    const step = backwards ? -1 : 1;
    let count = 0;
    for (let index = feed.readFrom(backwards); count < countMax && index >= 0 && index < feed.length(); index += step) {
      const frame = feed.frame(index);
      if (frame === null) continue;
      count += 1;
      yield frame;
    }
  }

  async #subscribe(call: ReadCall, feed: Feed, options: ReadOptions): Promise<void> {
    this.#subscriptions.add(call);
    const waiting = new Waiting(this.#log, call);
    call.on("cancelled", () => this.#subscriptions.delete(call));
    const confirmation = new streamsPb.ReadResp.SubscriptionConfirmation();
    confirmation.setSubscriptionId(randomUUID());
    const response = new streamsPb.ReadResp();
    response.setConfirmation(confirmation);
    await sendAll(call, [frameOf(response)]);
    const window = SEARCH_WINDOW * (options.getFilter()?.getCheckpointintervalmultiplier() ?? 0);
    let next = feed.subscribeFrom();
    for (let live = false; this.#subscriptions.has(call); ) {
      const end = feed.length();
      await sendAll(call, this.#caughtUpTo(feed, next, end, window), () => this.#subscriptions.has(call));
      next = Math.max(next, end);
      if (!live && this.#subscriptions.has(call)) {
        if (window > 0 && next > 0) call.write(checkpoint(next - 1));
        call.write(caughtUp(feed.name, next - 1));
        live = true;
      }
      await waiting.forMoreThan(end, () => feed.length());
    }
    waiting.stop();
  }

  *#caughtUpTo(feed: Feed, from: number, end: number, window: number): Iterable<Buffer> {
    for (let index = from; index < end; index += 1) {
      const frame = feed.frame(index);
      if (frame !== null) {
        this.sent += 1;
        yield frame;
      }
      if (window > 0 && (index + 1) % window === 0) yield checkpoint(index);
    }
  }
}

/** Wakes a subscription when the log has grown or its client has gone. */
class Waiting {
  readonly #stop: () => void;
  #wake: () => void = () => {};
  #isOver = false;

  constructor(log: KurrentDbLog, call: ReadCall) {
    this.#stop = log.onAppend(() => this.#wake());
    call.on("cancelled", () => this.stop());
    call.on("error", () => this.stop());
  }

  async forMoreThan(count: number, length: () => number): Promise<void> {
    while (!this.#isOver && length() <= count) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  stop(): void {
    this.#isOver = true;
    this.#stop();
    this.#wake();
  }
}

/** Waits for the reader after every few, however fast the frames can be made. */
async function sendAll(call: ReadCall, frames: Iterable<Buffer>, goOn: () => boolean = () => true): Promise<void> {
  let sinceWait = 0;
  let isFull = false;
  for (const frame of frames) {
    if (call.cancelled || !goOn()) return;
    isFull = !call.write(frame);
    sinceWait += 1;
    if (!isFull || sinceWait < COUNT_PER_WRITE) continue;
    await drained(call);
    sinceWait = 0;
  }
}

async function drained(call: ReadCall): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = () => {
      call.off("drain", done);
      call.off("cancelled", done);
      resolve();
    };
    call.once("drain", done);
    call.once("cancelled", done);
  });
}

function notFound(name: string): Buffer {
  const missing = new streamsPb.ReadResp.StreamNotFound();
  missing.setStreamIdentifier(streamIdentifier(name));
  const response = new streamsPb.ReadResp();
  response.setStreamNotFound(missing);
  return frameOf(response);
}

function checkpoint(index: number): Buffer {
  const message = new streamsPb.ReadResp.Checkpoint();
  message.setCommitPosition(String(positionOf(index)));
  message.setPreparePosition(String(positionOf(index)));
  const response = new streamsPb.ReadResp();
  response.setCheckpoint(message);
  return frameOf(response);
}

/** With the place to go on from, unless there is none yet. */
function caughtUp(name: string, index: number): Buffer {
  const message = new streamsPb.ReadResp.CaughtUp();
  message.setTimestamp(Timestamp.fromDate(new Date()));
  if (index >= 0 && name !== "$all") message.setStreamRevision(String(index));
  else if (index >= 0) {
    const position = new streamsPb.ReadResp.Position();
    position.setCommitPosition(String(positionOf(index)));
    position.setPreparePosition(String(positionOf(index)));
    message.setPosition(position);
  }
  const response = new streamsPb.ReadResp();
  response.setCaughtUp(message);
  return frameOf(response);
}
