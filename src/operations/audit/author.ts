/** Where an action came from. `relay`: the relay itself. */
export type Via = "api" | "console" | "cli" | "relay";

/** Who changes something, and why. Recorded in the audit and with the dead letter. */
export interface Author {
  readonly by: string;
  readonly reason?: string | undefined;
  /** Absent: the command line. */
  readonly via?: Via;
}
