import { connect as dial } from "node:net";
import type { Authenticator, ConnectionOptions, NatsConnection } from "@nats-io/transport-node";
import { optionalClient } from "../../core/optional-client.ts";
import type { NatsLogin, NatsServerAddress, NatsSettings } from "./nats-config.ts";

/** The client library. */
export type Nats = typeof import("@nats-io/transport-node");

export const loadNats: () => Promise<Nats> = optionalClient(
  "the NATS client",
  "@nats-io/transport-node@3",
  () => import("@nats-io/transport-node"),
);

/** Connects to the first server that answers, starting at this index. */
export async function connectAny(
  nats: Nats,
  settings: NatsSettings,
  first: number,
  signal: AbortSignal,
): Promise<NatsConnection> {
  const { servers } = settings;
  let failure: unknown;
  for (let tried = 0; tried < servers.length && !signal.aborted; tried++) {
    const server = servers[(first + tried) % servers.length]!;
    try {
      // The client never closes the socket of a server that sends no greeting, so check for the greeting first.
      await awaitGreeting(server, settings.connectTimeoutMs, signal);
      return await nats.connect(connectionOptions(nats, settings, server));
    } catch (error) {
      failure = error;
    }
  }
  throw failure ?? signal.reason;
}

/** Resolves when the server sends its greeting; a NATS server always speaks first. */
function awaitGreeting({ host, port }: NatsServerAddress, timeoutMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (error?: unknown): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      socket.destroy();
      if (error === undefined) resolve();
      else reject(error);
    };
    const abort = () => end(signal.reason);
    const timer = setTimeout(
      () => end(new Error(`no greeting within ${timeoutMs} ms: this may not be a NATS server`)),
      timeoutMs,
    );
    const socket = dial({ host, port });
    socket.on("error", end);
    socket.on("close", () => end(new Error("the server closed the connection without a greeting")));
    socket.once("data", (bytes) => {
      const isNats = bytes.subarray(0, 5).toString("latin1") === "INFO ";
      end(isNats ? undefined : new Error("the server that answers there is not NATS: check host and port"));
    });
    signal.addEventListener("abort", abort, { once: true });
  });
}

function connectionOptions(nats: Nats, settings: NatsSettings, { host, port }: NatsServerAddress): ConnectionOptions {
  const authenticator = authenticatorOf(nats, settings.login);
  return {
    servers: `${host.includes(":") ? `[${host}]` : host}:${port}`,
    name: settings.service,
    timeout: settings.connectTimeoutMs,
    // A reconnect would resend buffered messages; only the engine knows whether they must still be sent.
    reconnect: false,
    ignoreClusterUpdates: true,
    noAsyncTraces: true,
    ...(settings.tls === null ? {} : { tls: settings.tls }),
    ...(authenticator === null ? {} : { authenticator }),
  };
}

function authenticatorOf(nats: Nats, login: NatsLogin): Authenticator | null {
  if (login.kind === "user") return nats.usernamePasswordAuthenticator(login.user, login.password);
  if (login.kind === "token") return nats.tokenAuthenticator(login.token);
  if (login.kind === "credentials") return nats.credsAuthenticator(Buffer.from(login.credentials));
  return null;
}
