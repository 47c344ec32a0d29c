import { RelayError } from "../core/errors.ts";
import type { Unmarked } from "../core/hold.ts";
import type { PipelineContext } from "./context.ts";
import type { HoldBook } from "./hold-book.ts";
import type { LaneHost } from "./lane-host.ts";

/** From so many on a lane sends nothing new: whatever it sends could not be marked either. */
const STOP_AT = 10;
const EXAMPLES = 3;

/**
 * Delivered events of one lane whose rows the source does not let anybody mark. They are held, so that nobody sends them
 * again, and the source counts as broken until all of them are marked or gone.
 */
export class UnmarkedRows {
  readonly #context: PipelineContext;
  readonly #lane: number;
  readonly #holds: HoldBook;
  readonly #host: Pick<LaneHost, "unmarked">;
  #refused: readonly string[] = [];

  constructor(context: PipelineContext, lane: number, holds: HoldBook, host: Pick<LaneHost, "unmarked">) {
    this.#context = context;
    this.#lane = lane;
    this.#holds = holds;
    this.#host = host;
    this.review();
  }

  /** True when there are so many that the lane must not send any more. */
  get areTooMany(): boolean {
    return this.#refused.length >= STOP_AT;
  }

  /** A settle could not mark these. */
  found(unmarked: ReadonlyMap<string, Unmarked> | undefined): void {
    if (unmarked === undefined || unmarked.size === 0) return;
    const rest = {
      dead: true,
      parks: false,
      attempts: 0,
      crashes: 0,
      dueAtMs: 0,
      silentSinceMs: null,
      waitsFor: null,
    };
    for (const [id, kind] of unmarked) this.#holds.put({ id, key: null, ...rest, unmarked: kind });
    this.review();
  }

  /** The holds are new: tells what is still so, or that it is over. */
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
      "the update that marks them changes no row or is undone.",
      "Usual causes: a trigger on UPDATE that returns NULL or resets the column, row-level security without an UPDATE policy for the relay's role.",
      this.areTooMany ? `Lane ${this.#lane} sends nothing new until they are marked.` : "Other events are delivered.",
      // Last, where the health can cut them off.
      `Ids: ${examples}`,
    ];
    return new RelayError("ROW_UNMARKED", what.join(" "));
  }
}
