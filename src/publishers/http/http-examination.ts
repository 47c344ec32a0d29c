import { withinTime } from "../../core/within-time.ts";
import type { Obstacle } from "../../ports/publisher.ts";
import type { HttpSettings } from "./http-config.ts";
import { outcomeOf, UNKNOWN } from "./http-errors.ts";
import { connectTo } from "./http-origins.ts";

/**
 * Checks the connection, with TLS if the address says so, but sends no request: some receivers treat any request as an
 * event. So a wrong login or path shows only with the first event. If the events name the host, there is nothing to
 * check.
 */
export async function examineHttp(settings: HttpSettings, signal: AbortSignal): Promise<readonly Obstacle[]> {
  const { clock, requestTimeoutMs, retryAfterMsMax, target } = settings;
  const { origin } = target;
  if (origin === null) return [];
  const late = () => new Error(`no connection within ${requestTimeoutMs} ms`);
  try {
    (await withinTime(connectTo(settings, new URL(origin)), requestTimeoutMs, signal, late)).destroy();
    return [];
  } catch (error) {
    const circumstances = {
      scope: "destination",
      shown: origin,
      said: "",
      wallMs: clock.wallMs(),
      retryAfterMsMax,
    } as const;
    const outcome = outcomeOf({ kind: "failed", error: error as Error, wasSent: false }, circumstances);
    return outcome === UNKNOWN || !("reason" in outcome) ? [] : [{ severity: "error", reason: outcome.reason }];
  }
}
