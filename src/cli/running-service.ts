import type { AccessConfig } from "../config/access-config.ts";
import type { OverviewFaces } from "../http/overview-routes.ts";
import type { ProbeFaces } from "../http/probe-routes.ts";
import type { ServiceFaces } from "../http/service-routes.ts";
import type { OperationTarget } from "../operations/event-source.ts";

export interface OnceResult {
  readonly code: number;
  /** For a person. */
  readonly line: string;
}

/** What `run` runs, whatever it reads from. */
export interface RunningService {
  readonly view: ProbeFaces &
    OverviewFaces &
    Pick<ServiceFaces, "findings" | "logs"> & {
      /** Takes this service's secrets out. */
      redact(text: string): string;
    };
  readonly access: AccessConfig;
  /** Delivers until stopped. Rejects when only a person can help. */
  run(): Promise<void>;
  /** Delivers what is there, and tells what is left. */
  once(): Promise<OnceResult>;
  /** Hands everything over in good order. Legal at any time, also twice. */
  stop(): Promise<void>;
  /** Where the API works. Throws where it has nothing to work on. */
  operations(): OperationTarget;
}
