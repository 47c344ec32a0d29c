import type { Obstacle } from "../../ports/publisher.ts";
import { loadAmqp } from "./rabbitmq-client.ts";
import type { RabbitSettings } from "./rabbitmq-config.ts";
import { connectionReason, isMissing } from "./rabbitmq-errors.ts";
import { RabbitLinkPool } from "./rabbitmq-link-pool.ts";

/** Logs in at one of the hosts and checks the exchange. Declares nothing. */
export async function examineRabbit(settings: RabbitSettings, signal: AbortSignal): Promise<readonly Obstacle[]> {
  const pool = new RabbitLinkPool(await loadAmqp(), { ...settings, isDeclared: false });
  try {
    const link = await pool.take(signal);
    if (link !== null) pool.giveBack(link);
    return [];
  } catch (error) {
    // The first publish declares it.
    if (settings.isDeclared && isMissing(error)) return [];
    return [{ severity: "error", reason: connectionReason(settings, error) }];
  } finally {
    await pool.close();
  }
}
