import { connect } from "node:net";

/** Whether `host:port`, also `[::1]:port`, accepts a TCP connection in time. Sends nothing. */
export function canConnect(address: string, timeoutMs: number): Promise<boolean> {
  const at = address.lastIndexOf(":");
  const host = address.slice(0, at).replace(/^\[(.*)\]$/, "$1");
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(address.slice(at + 1)), timeout: timeoutMs });
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => end(true));
    socket.once("timeout", () => end(false));
    socket.once("error", () => end(false));
  });
}
