import type { NatsConnection } from "@nats-io/transport-node";
import { reasonOf } from "../../core/errors.ts";
import type { Obstacle } from "../../ports/publisher.ts";
import { connectAny, loadNats, type Nats } from "./nats-client.ts";
import { describeServers, type NatsSettings } from "./nats-config.ts";
import { connectionReason } from "./nats-errors.ts";

interface ApiAnswer {
  readonly error?: { readonly code?: number; readonly description?: string };
}

/** Logs in at one of the servers and checks JetStream and the stream. */
export async function examineNats(settings: NatsSettings, signal: AbortSignal): Promise<readonly Obstacle[]> {
  const nats = await loadNats();
  let connection: NatsConnection;
  try {
    connection = await connectAny(nats, settings, 0, signal);
  } catch (error) {
    return [{ severity: "error", reason: connectionReason(settings, error) }];
  }
  try {
    const reason = await streamFault(nats, connection, settings);
    return reason === null ? [] : [{ severity: "error", reason }];
  } finally {
    await connection.close();
  }
}

async function streamFault(nats: Nats, connection: NatsConnection, settings: NatsSettings): Promise<string | null> {
  const { connectTimeoutMs: timeout, servers, stream } = settings;
  const where = `NATS at ${describeServers(servers)}`;
  try {
    const subject = stream === null ? "$JS.API.INFO" : `$JS.API.STREAM.INFO.${stream}`;
    const { error } = (await connection.request(subject, "", { timeout })).json<ApiAnswer>();
    if (error === undefined) return null;
    if (error.code === 404 && stream !== null) return `${where}: the stream "${stream}" does not exist: create it`;
    return `${where}: ${error.description ?? "JetStream returned an error"}`;
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    // A user may be allowed to publish but not to query: then only a publish can show a fault.
    if (cause instanceof nats.PermissionViolationError || error instanceof nats.PermissionViolationError) return null;
    if (hasNoResponders(nats, error, cause)) return `${where}: JetStream is not enabled: enable it on the server`;
    return `${where}: JetStream does not answer: ${reasonOf(error)}`;
  }
}

function hasNoResponders(nats: Nats, ...errors: readonly unknown[]): boolean {
  return errors.some((error) => error instanceof nats.NoRespondersError);
}
