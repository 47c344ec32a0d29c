import { withinTime } from "../../core/within-time.ts";
import type { Obstacle } from "../../ports/publisher.ts";
import { apiOf, destroyClient, explained, loadKafka, openClient } from "./kafka-client.ts";
import type { KafkaSettings } from "./kafka-config.ts";
import { connectionReason } from "./kafka-errors.ts";

/** Logs in at one of the brokers and requests its API versions. */
export async function examineKafka(settings: KafkaSettings, signal: AbortSignal): Promise<readonly Obstacle[]> {
  const kafka = await loadKafka();
  const client = openClient(kafka, settings);
  // The connection timeout of each broker, and one request.
  const timeoutMs = settings.connectTimeoutMs * settings.brokers.length + settings.requestTimeoutMs;
  try {
    await withinTime(apiOf(kafka, client, "Produce"), timeoutMs, signal, () => new Error("the request timed out"));
    return [];
  } catch (error) {
    return [{ severity: "error", reason: connectionReason(settings, explained(client, error)) }];
  } finally {
    await destroyClient(client);
  }
}
