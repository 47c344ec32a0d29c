import type { ServiceConfig } from "../config/service-config.ts";
import { systemClock } from "../core/clock.ts";
import type { Logger } from "../telemetry/logs/logger.ts";
import type { NoticeState } from "../telemetry/push/webhook-notice.ts";
import { WebhookNotifier } from "../telemetry/push/webhook-notifier.ts";
import type { PushTally } from "../telemetry/push-tally.ts";

interface NotifierParts {
  readonly config: ServiceConfig;
  readonly logger: Logger;
  readonly pushes: PushTally;
  readonly once: boolean;
}

/** The webhook notifier; null when none is configured, and for a run that ends by itself. */
export function openNotifier(parts: NotifierParts, look: () => Promise<NoticeState>): WebhookNotifier | null {
  const { config, logger, once, pushes: tally } = parts;
  const { notify } = config.telemetry;
  if (notify === null || once) return null;
  const { instanceName: instance, service } = config;
  const consoleUrl = config.access.publicOrigin;
  return new WebhookNotifier({ ...notify, service, instance, consoleUrl, look, tally, logger, clock: systemClock });
}
