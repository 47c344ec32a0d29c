// KurrentDB is a fake here, written after its protocol and source: no real server can be had where these tests run.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type KurrentDb, startKurrentDb } from "../../../test/servers/kurrentdb.ts";
import { RelayError } from "../../core/errors.ts";
import type { EventLog } from "../../ports/event-log.ts";
import { CheckpointStream } from "./kurrentdb-checkpoint.ts";
import { kurrentdbLog } from "./kurrentdb-source.ts";

let server: KurrentDb;
let log: EventLog;

before(async () => {
  server = await startKurrentDb();
  log = kurrentdbLog({ url: server.url });
});

after(async () => {
  await log.close();
  await server[Symbol.asyncDispose]();
});

test("E5 a checkpoint in the event store is read back, and its stream keeps the last one only, on a fake server", async () => {
  const stream = "shop.order.relay.checkpoint";
  const writer = new CheckpointStream(log, stream);
  assert.equal(await writer.read(), null);
  for (const position of ["100/100", "200/200", "300/300"]) await writer.write(position);
  assert.equal(await new CheckpointStream(log, stream).read(), "300/300");
  const kept = await log.read(stream, 0n, 10);
  assert.deepEqual(
    kept.map(({ revision, data }) => [revision, data]),
    [[2n, { position: "300/300" }]],
  );
});

test("E5 a second writer of a checkpoint is found out, even when it writes the same place, on a fake server", async () => {
  const stream = "shop.two.relay.checkpoint";
  const [former, successor] = [new CheckpointStream(log, stream), new CheckpointStream(log, stream)];
  await former.write("100/100");
  await successor.write("200/200");
  await assert.rejects(former.write("200/200"), { code: "FENCED" });
  await former.read();
  await former.write("300/300");
  await assert.rejects(successor.write("300/300"), { code: "FENCED" });
  await successor.write("400/400");
  assert.equal(await former.read(), "400/400");
});

test("E5 a checkpoint whose write got no response is written once, and no writer is fenced for it, on a fake server", async () => {
  const stream = "shop.lost.relay.checkpoint";
  let loses: "answer" | "request" | null = null;
  const lossy = {
    readLast: (stream: string) => log.readLast(stream),
    append: async (...append: Parameters<EventLog["append"]>) => {
      const result = loses === "request" ? 0n : await log.append(...append);
      if (loses !== null) throw new RelayError("LOG_UNREACHABLE", "cut");
      return result;
    },
  };
  const writer = new CheckpointStream(lossy, stream);
  await writer.write("1/1");
  for (const lost of ["answer", "request"] as const) {
    loses = lost;
    await assert.rejects(writer.write(`${lost}/1`), { code: "LOG_UNREACHABLE" });
    loses = null;
    await writer.write(`${lost}/2`);
    assert.equal(await new CheckpointStream(log, stream).read(), `${lost}/2`);
  }
  loses = "answer";
  await assert.rejects(writer.write("3/1"), { code: "LOG_UNREACHABLE" });
  loses = null;
  await new CheckpointStream(log, stream).write("4/4");
  await assert.rejects(writer.write("3/2"), { code: "FENCED" });
});

test("E5 a stream that holds something else is no checkpoint, on a fake server", async () => {
  await server.seed([{ stream: "shop.odd.relay.checkpoint", type: "X", data: { at: 1 }, metadata: {} }]);
  await assert.rejects(new CheckpointStream(log, "shop.odd.relay.checkpoint").read(), { code: "LOG_LOST" });
});
