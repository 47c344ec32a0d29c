import { connect as dial } from "node:net";
import type { Authenticator, ConnectionOptions, NatsConnection } from "@nats-io/transport-node";
import { RelayError } from "../../core/errors.ts";
import type { NatsLogin, NatsServerAddress, NatsSettings } from "./nats-config.ts";

export type Nats = typeof import("@nats-io/transport-node");

const INSTALL = "npm install @nats-io/transport-node@3.4.0";

let loading: Promise<Nats> | undefined;

/** The client is an optional peer dependency: without it the error says what to install. */
export function loadNats(): Promise<Nats> {
  loading ??= import("@nats-io/transport-node").catch((cause: unknown) => {
    throw new RelayError("CONFIG_INVALID", `the NATS client is missing, install it: ${INSTALL}.`, { cause });
  });
  return loading;
}

/** Connects to the first server that answers, beginning with the one at this index. */
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
      // The client keeps the socket of a server that never says hello; so that one is found out without it.
      await awaitGreeting(server, settings.connectTimeoutMs, signal);
      return await nats.connect(connectionOptions(nats, settings, server));
    } catch (error) {
      failure = error;
    }
  }
  throw failure ?? signal.reason;
}

/** A NATS server speaks first. Resolves when it does. */
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
    const timer = setTimeout(() => end(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    const socket = dial({ host, port });
    socket.on("error", end);
    socket.on("close", () => end(new Error("the server closed the connection without a greeting")));
    socket.once("data", (bytes) => {
      const isNats = bytes.subarray(0, 5).toString("latin1") === "INFO ";
      end(isNats ? undefined : new Error("what answers there is no NATS server"));
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
    // It would send again what it buffered; only the engine knows whether that is still wanted.
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
