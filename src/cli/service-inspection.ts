import type { ServiceConfig } from "../config/service-config.ts";
import { systemClock } from "../core/clock.ts";
import { isRelayError, RelayError } from "../core/errors.ts";
import type { Health } from "../http/health.ts";
import { findingsOf } from "../http/overview.ts";
import type { Finding } from "../operations/doctor/finding.ts";
import type { OperationTarget } from "../operations/event-source.ts";
import { type ListedLog, listLogs } from "../operations/log-list.ts";
import { Remembered } from "../telemetry/remembered.ts";
import { examineService } from "./examine-service.ts";

interface InspectionOptions {
  readonly config: ServiceConfig;
  readonly target: () => OperationTarget;
  readonly health: () => Promise<Health>;
}

const LOGS_CACHED_MS = 2_000;
const LOGS_PATIENCE_MS = 10_000;
const FINDINGS_CACHED_MS = 10_000;
/** A person waits for it; what takes longer is found by whoever asks next. */
const FINDINGS_PATIENCE_MS = 20_000;

/** Looks at what a service leans on, once at a time however many ask. */
export class ServiceInspection {
  readonly #options: InspectionOptions;
  readonly #logs: Remembered<readonly ListedLog[]>;
  readonly #findings: Remembered<readonly Finding[]>;

  constructor(options: InspectionOptions) {
    this.#options = options;
    const { config, target } = options;
    this.#logs = new Remembered(systemClock, LOGS_CACHED_MS, () => listLogs(target(), config.retentionMs));
    this.#findings = new Remembered(systemClock, FINDINGS_CACHED_MS, () => this.#examine());
  }

  async logs(): Promise<readonly ListedLog[]> {
    if (this.#options.config.store !== null) return [];
    const { isLate, known, problem } = await this.#logs.answer(LOGS_PATIENCE_MS);
    if (isLate) throw new RelayError("DATABASE_BUSY", "The logs could not be looked at in time");
    if (problem !== null) throw problem;
    return known?.value ?? [];
  }

  async findings(): Promise<readonly Finding[]> {
    const { isLate, known, problem } = await this.#findings.answer(FINDINGS_PATIENCE_MS);
    if (isLate) return [STILL_LOOKING];
    if (problem !== null) throw problem;
    return known?.value ?? [];
  }

  async #examine(): Promise<readonly Finding[]> {
    const { config, health, target } = this.#options;
    if (config.store !== null) return findingsOf(await health());
    try {
      return (await examineService(config, target().database)).findings;
    } catch (error) {
      const told = isRelayError(error, "DATABASE_UNREACHABLE") ? findingsOf(await health()) : [];
      if (told.length === 0) throw error;
      return told;
    }
  }
}

const STILL_LOOKING: Finding = {
  severity: "warning",
  check: "doctor",
  what: `The examination takes longer than ${FINDINGS_PATIENCE_MS / 1_000} s, and goes on`,
  fix: "Ask again in a minute, or run `outbox-relay doctor`.",
};
