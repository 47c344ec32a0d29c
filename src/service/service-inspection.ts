import type { ServiceConfig } from "../config/service-config.ts";
import { systemClock } from "../core/clock.ts";
import { isRelayError, RelayError } from "../core/errors.ts";
import type { Health } from "../http/health/health.ts";
import { findingsOf } from "../http/overview.ts";
import type { Finding } from "../operations/doctor/finding.ts";
import type { OperationTarget } from "../operations/events/event-source.ts";
import { type ListedLog, listLogs } from "../operations/logs/log-list.ts";
import { CachedQuery } from "../telemetry/cached-query.ts";
import { examineRedisStore, examineService } from "./examine-service.ts";

interface InspectionOptions {
  readonly config: ServiceConfig;
  readonly target: () => OperationTarget;
  readonly health: () => Promise<Health>;
}

const LOGS_CACHED_MS = 2_000;
const LOGS_TIMEOUT_MS = 10_000;
const FINDINGS_CACHED_MS = 10_000;
/** A person waits for it. A slower examination continues, and the next request gets its result. */
const FINDINGS_TIMEOUT_MS = 20_000;

/** Examines what a service depends on; concurrent requests share one examination. */
export class ServiceInspection {
  readonly #options: InspectionOptions;
  readonly #logs: CachedQuery<readonly ListedLog[]>;
  readonly #findings: CachedQuery<readonly Finding[]>;

  constructor(options: InspectionOptions) {
    this.#options = options;
    const { config, target } = options;
    this.#logs = new CachedQuery(systemClock, LOGS_CACHED_MS, () => listLogs(target(), config.retentionMs));
    this.#findings = new CachedQuery(systemClock, FINDINGS_CACHED_MS, () => this.#examine());
  }

  async logs(): Promise<readonly ListedLog[]> {
    if (this.#options.config.store !== null) return [];
    const { isLate, known, problem } = await this.#logs.answer(LOGS_TIMEOUT_MS);
    if (isLate) throw new RelayError("DATABASE_BUSY", "The database did not return the list of logs in time; retry");
    if (problem !== null) throw problem;
    return known?.value ?? [];
  }

  async findings(): Promise<readonly Finding[]> {
    const { isLate, known, problem } = await this.#findings.answer(FINDINGS_TIMEOUT_MS);
    if (isLate) return [STILL_LOOKING];
    if (problem !== null) throw problem;
    return known?.value ?? [];
  }

  async #examine(): Promise<readonly Finding[]> {
    const { config, health, target } = this.#options;
    if (config.store !== null) return await examineRedisStore(config, config.store);
    try {
      return (await examineService(config, target().database)).findings;
    } catch (error) {
      const findings = isRelayError(error, "DATABASE_UNREACHABLE") ? findingsOf(await health()) : [];
      if (findings.length === 0) throw error;
      return findings;
    }
  }
}

const STILL_LOOKING: Finding = {
  severity: "warning",
  check: "doctor",
  what: `The examination takes longer than ${FINDINGS_TIMEOUT_MS / 1_000} s and is still running`,
  fix: "Retry in a minute, or run `outbox-relay doctor`.",
};
