// The sink: stands for a broker and its consumers in tests. Started as `node sink-process.ts <port> <log file>`.
// It logs every event BEFORE it answers it, so whatever a client was told has arrived is in the log, even after kill -9.
import { once } from "node:events";
import { writeSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { answerFor, createFaultBook, type Fault } from "./sink-faults.ts";
import { formatAttempt, openLog } from "./sink-log.ts";
import { createFrameReader, decodeBatch, encodeAnswers, type Frame, type IndexedAnswer } from "./sink-wire.ts";

/** From the test process; `done` with the same number comes back when the order is in force. */
export type SinkOrder = { readonly seq: number; readonly order: Fault | "clear" };

type Connection = { readonly socket: Socket; dead: boolean };

const port = Number(process.argv[2]);
const log = openLog(String(process.argv[3]));
const faults = createFaultBook();
const connections = new Set<Connection>();
const server = createServer({ noDelay: true }, serve);

function serve(socket: Socket): void {
  const connection: Connection = { socket, dead: false };
  connections.add(connection);
  const read = createFrameReader((frame) => receive(connection, frame));
  let chunks: Buffer[] = [];
  const readAll = (): void => {
    const ready = chunks;
    chunks = [];
    for (const chunk of ready) read(chunk);
  };
  socket.on("data", (chunk) => {
    chunks.push(chunk);
    // Two turns of the event loop later, because a client that gives up resets its connection, and the kernel hands out
    // the bytes before the reset. After a pause of this process, abandoned events would take effect otherwise.
    if (chunks.length === 1) setImmediate(() => setImmediate(readAll));
  });
  socket.on("error", () => {
    connection.dead = true;
  });
  socket.on("close", () => connections.delete(connection));
}

function receive(connection: Connection, frame: Frame): void {
  if (connection.dead) return;
  const { batchId, events } = decodeBatch(frame);
  const atMs = Date.now();
  const answers: IndexedAnswer[] = [];
  let lines = "";
  let dropped = false;
  for (const [index, event] of events.entries()) {
    const fault = faults.strike(event);
    lines += formatAttempt(event, atMs, fault?.kind ?? null);
    const answer = answerFor(fault);
    if (fault?.kind === "delay") setTimeout(() => reply(connection, batchId, [index]), fault.ms);
    else if (answer) answers.push(answer.kind === "ok" ? index : [index, answer]);
    dropped = fault?.kind === "drop-after-effect";
    if (dropped) break;
  }
  writeSync(log, lines);
  reply(connection, batchId, answers);
  if (dropped) {
    connection.dead = true;
    connection.socket.destroySoon(); // the answers to earlier events of the batch still leave
  }
}

function reply(connection: Connection, batchId: number, answers: readonly IndexedAnswer[]): void {
  if (answers.length > 0 && connection.socket.writable) connection.socket.write(encodeAnswers(batchId, answers));
}

async function obey(order: Fault | "clear"): Promise<void> {
  if (order === "clear") {
    faults.clear();
    await listen();
  } else if (order.kind === "refuse") {
    server.close();
    for (const connection of connections) {
      connection.dead = true;
      connection.socket.destroy();
    }
  } else {
    faults.add(order);
  }
}

async function listen(): Promise<void> {
  if (server.listening) return;
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
}

process.on("message", async ({ seq, order }: SinkOrder) => {
  await obey(order);
  process.send?.({ done: seq });
});
process.on("disconnect", () => process.exit());
await listen();
process.send?.({ done: 0 });
