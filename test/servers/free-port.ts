import { randomInt } from "node:crypto";
import { createServer } from "node:net";

// Below the kernel's range for outgoing connections (from 32768). Inside it, a client could be given the port of a
// server that is down for a moment, or even connect to itself while it retries, and the restart would find it taken.
const portMin = 10_000;
const portMax = 30_000;

/** A port on 127.0.0.1 that nobody listens on and that stays free while its server is down between kill and restart. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(portMin, portMax);
    if (await canListen(port)) return port;
  }
  throw new Error(`no free port between ${portMin} and ${portMax}`);
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
