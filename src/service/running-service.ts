import type { AccessConfig } from "../config/access-config.ts";
import type { OverviewFaces } from "../http/routes/overview-routes.ts";
import type { ProbeFaces } from "../http/routes/probe-routes.ts";
import type { ServiceFaces } from "../http/routes/service-routes.ts";
import type { OperationTarget } from "../operations/events/event-source.ts";

/** The result of a run that ends by itself. */
export interface OnceResult {
  readonly code: number;
  /** The closing line for the terminal. */
  readonly line: string;
}

/** A service that `run` runs, whatever it reads from. */
export interface RunningService {
  readonly view: ProbeFaces &
    OverviewFaces &
    Pick<ServiceFaces, "findings" | "logs"> & {
      /** Removes this service's secrets from a text. */
      redact(text: string): string;
    };
  readonly access: AccessConfig;
  /** Delivers until stopped. Rejects on errors that only an operator can fix. */
  run(): Promise<void>;
  /** Delivers the current backlog and reports what is left. */
  once(): Promise<OnceResult>;
  /** Finishes or returns all claims, and closes. Legal at any time, also twice. */
  stop(): Promise<void>;
  /** The database that the API works on. Throws when there is none. */
  operations(): OperationTarget;
}
