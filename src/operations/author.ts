/** From where an action came. `relay`: by itself. */
export type Via = "api" | "console" | "cli" | "relay";

/** Who changes something, and why. It stands in the audit, and with the dead letter. */
export interface Author {
  readonly by: string;
  readonly reason?: string | undefined;
  /** The command line, unless something else is said. */
  readonly via?: Via;
}
