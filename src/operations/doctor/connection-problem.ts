import { connect } from "node:net";
import { connectionCause } from "../../core/connection-cause.ts";

const CHECKED = { address: "host and port", trust: "the certificates" };

/** Why `host:port`, also `[::1]:port`, accepts no TCP connection in time; null when it does. Sends nothing. */
export function connectionProblem(address: string, timeoutMs: number): Promise<string | null> {
  const at = address.lastIndexOf(":");
  const host = address.slice(0, at).replace(/^\[(.*)\]$/, "$1");
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(address.slice(at + 1)), timeout: timeoutMs });
    const end = (problem: string | null) => {
      socket.destroy();
      resolve(problem);
    };
    socket.once("connect", () => end(null));
    socket.once("timeout", () => end(`no answer within ${timeoutMs / 1_000} s`));
    socket.once("error", (error) => end(connectionCause(error, CHECKED) ?? error.message));
  });
}
