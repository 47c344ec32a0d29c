import { RelayError } from "../core/errors.ts";
import type { Unmarked } from "../core/hold.ts";
import type { PipelineContext } from "./context.ts";
import type { LaneHolds } from "./lane-holds.ts";
import type { LaneHost } from "./lane-host.ts";

/** With this many unmarked rows a lane sends nothing new: those rows could probably not be marked either. */
const STOP_AT = 10;
const EXAMPLES = 3;

/**
 * Delivered events of one lane whose rows cannot be marked. They are held, so that no instance sends them again, and
 * the source counts as broken until all of them are marked or gone.
 */
export class UnmarkedRows {
  readonly #context: PipelineContext;
  readonly #lane: number;
  readonly #holds: LaneHolds;
  readonly #host: Pick<LaneHost, "unmarked">;
  #refused: readonly string[] = [];
  /** What the database said of the last row that it refused. */
  #refusal: string | undefined;

  constructor(context: PipelineContext, lane: number, holds: LaneHolds, host: Pick<LaneHost, "unmarked">) {
    this.#context = context;
    this.#lane = lane;
    this.#holds = holds;
    this.#host = host;
    this.review();
  }

  /** True when there are so many that the lane must stop sending. */
  get areTooMany(): boolean {
    return this.#refused.length >= STOP_AT;
  }

  /** A settle could not mark these. */
  found(unmarked: ReadonlyMap<string, Unmarked> | undefined, refusal?: string): void {
    if (unmarked === undefined || unmarked.size === 0) return;
    this.#refusal = refusal;
    const rest = {
      dead: true,
      parks: false,
      attempts: 0,
      crashes: 0,
      dueAtMs: 0,
      unansweredSinceMs: null,
      waitsFor: null,
    };
    for (const [id, kind] of unmarked) this.#holds.put({ id, key: null, ...rest, unmarked: kind });
    this.review();
  }

  /** Called after the holds have changed: reports the rows that are still unmarked, or that there are none left. */
  review(): void {
    const before = this.#refused.length;
    this.#refused = this.#holds.refusedMarks();
    if (this.#refused.length > 0) this.#host.unmarked(this.#lane, this.#error());
    else if (before > 0) this.#host.unmarked(this.#lane, null);
  }

  #error(): RelayError {
    const { name } = this.#context;
    const count = this.#refused.length;
    const examples = this.#refused.slice(0, EXAMPLES).join(", ");
    const what = [
      `${count} delivered ${count === 1 ? "event" : "events"} of ${name} cannot be marked in the table:`,
      "the update that marks them fails, changes no row or is undone.",
      "Usual causes: a trigger on UPDATE that raises an error, returns NULL or resets the column, a constraint, row-level security without an UPDATE policy for the relay's role.",
      this.areTooMany ? `Lane ${this.#lane} sends nothing new until they are marked.` : "Other events are delivered.",
      // The ids and the database's words come last, where the health can cut them off.
      `Ids: ${examples}${this.#refusal === undefined ? "" : `. The database: ${this.#refusal}`}`,
    ];
    return new RelayError("ROW_UNMARKED", what.join(" "));
  }
}
