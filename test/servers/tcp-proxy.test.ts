import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { startTcpProxy } from "./tcp-proxy.ts";
import { until } from "./until.ts";

test("passes bytes both ways, later when told so, and in order when the latency changes", async () => {
  await using echo = await startEcho();
  await using proxy = await startTcpProxy(echo.port);
  const client = await open(proxy.port);
  const started = performance.now();
  proxy.latencyMs = 20;
  client.socket.write("a");
  await until("the echo", () => client.received() === "a");
  assert.ok(performance.now() - started >= 39);

  const chunks = Array.from({ length: 200 }, (_, n) => ` ${n}`);
  for (const [n, chunk] of chunks.entries()) {
    proxy.latencyMs = n % 7;
    client.socket.write(chunk);
    await new Promise(setImmediate);
  }
  await until("the rest", () => client.received() === `a${chunks.join("")}`);
  client.socket.destroy();
  await until("the proxy sees the end", () => proxy.connectionCount === 0);
});

test("holds everything back as a black hole and loses nothing of it", async () => {
  await using echo = await startEcho();
  await using proxy = await startTcpProxy(echo.port);
  const client = await open(proxy.port);
  client.socket.write("a");
  await until("the first echo", () => client.received() === "a");
  proxy.blackhole(true);
  client.socket.write("b");
  const witness = await open(echo.port);
  witness.socket.write("w");
  await until("the witness's echo", () => witness.received() === "w");
  assert.equal(client.received(), "a");
  proxy.blackhole(false);
  await until("the rest", () => client.received() === "ab");
  client.socket.destroy();
  witness.socket.destroy();
});

test("cuts connections, refuses new ones and leads to another server when told so", async () => {
  await using one = await startEcho("1");
  await using two = await startEcho("2");
  await using proxy = await startTcpProxy(one.port);
  const first = await open(proxy.port);
  await until("the first server's greeting", () => first.received() === "1");
  proxy.retarget(two.port);
  await until("the first connection is lost", () => first.socket.destroyed);
  const second = await open(proxy.port);
  await until("the second server's greeting", () => second.received() === "2");
  proxy.refuse(true);
  const refused = connect(proxy.port, "127.0.0.1");
  await assert.rejects(once(refused, "end"), { code: "ECONNRESET" });
  assert.equal(second.socket.destroyed, false);
  proxy.cut();
  await until("the second connection is lost", () => second.socket.destroyed);
});

async function startEcho(greeting = "") {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.write(greeting);
    socket.pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as { port: number }).port,
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function open(port: number) {
  let text = "";
  const socket = connect(port, "127.0.0.1");
  socket.on("data", (chunk) => {
    text += chunk;
  });
  socket.on("error", () => {});
  await once(socket, "connect");
  return { socket, received: () => text };
}
