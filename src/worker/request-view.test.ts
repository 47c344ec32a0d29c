import assert from "node:assert/strict";
import { test } from "node:test";
import type { LoggedEvent } from "../ports/event-log.ts";
import { idempotencyKey, type OutcomeTypes, viewOf } from "./request-view.ts";

const TYPES: OutcomeTypes = { completed: "Completed.v1", failed: "Failed.v1", ended: ["Cancelled.v1"] };

/** `[id, type, causationId, final]`, one per revision. */
type Written = readonly [string, string, string?, (boolean | undefined)?];

function stream(...written: readonly Written[]): LoggedEvent[] {
  return written.map(([id, type, causationId, final], index) => ({
    id,
    type,
    stream: "s",
    revision: BigInt(index),
    createdMs: 0,
    data: { id: "r", ...(final === undefined ? {} : { final }) },
    metadata: causationId === undefined ? {} : { causationId },
  }));
}

const look = (asking: string, ...written: readonly Written[]) => viewOf(stream(...written), asking, TYPES);

test("E6 attempts and the provider's key come from the chain of failures that ask for a retry", () => {
  const events: readonly Written[] = [
    ["a", "Created.v1", "command"],
    ["note", "NoteAdded.v1"],
    ["f1", "Failed.v1", "a", false],
    ["f2", "Failed.v1", "f1", true],
    ["b", "Queued.v1", "command-2"],
    ["f3", "Failed.v1", "b", false],
  ];
  const chain = (asking: string) => {
    const view = look(asking, ...events)!;
    return [view.first.id, view.attempt, idempotencyKey("core", "r", view)];
  };
  assert.deepEqual(chain("a"), ["a", 1, "core:r:0"]);
  assert.deepEqual(chain("f1"), ["a", 2, "core:r:0"]);
  assert.deepEqual(chain("b"), ["b", 1, "core:r:4"]);
  assert.deepEqual(chain("f3"), ["b", 2, "core:r:4"]);
});

test("E6 the outcome of a job is the one that names its event, wherever it stands behind it", () => {
  const events: readonly Written[] = [
    ["a", "Created.v1"],
    ["b", "Queued.v1"],
    ["note", "NoteAdded.v1", "a"],
    ["f", "Failed.v1", "a", false],
    ["c", "Completed.v1", "b"],
  ];
  assert.equal(look("a", ...events)!.recorded!.id, "f");
  assert.equal(look("b", ...events)!.recorded!.id, "c");
  assert.equal(look("f", ...events)!.recorded, null);
  assert.equal(look("f", ...events)!.endedBy!.id, "c");
  assert.equal(look("c", ...events)!.endedBy, null, "what the domain asks for behind an end is wanted");
});

test("E6 a completion, a final failure or an end of the domain makes earlier wishes void, a mere failure does not", () => {
  const after = (type: string, final?: boolean) =>
    look("a", ["a", "Created.v1"], ["x", type, "another", final])!.endedBy?.id;
  assert.deepEqual([after("Completed.v1"), after("Failed.v1", true), after("Cancelled.v1")], ["x", "x", "x"]);
  assert.deepEqual(
    [after("Failed.v1", false), after("Failed.v1"), after("NoteAdded.v1")],
    [undefined, undefined, undefined],
  );
});

test("E6 odd streams: no asking event, a failure without a cause, one that causes itself", () => {
  assert.equal(look("a"), null);
  assert.equal(look("a", ["b", "Created.v1"]), null);
  assert.equal(look("f", ["f", "Failed.v1", "gone", false])!.attempt, 1);
  assert.equal(look("f", ["f", "Failed.v1", "f", false])!.attempt, 1);
  assert.equal(look("f", ["f", "Failed.v1"])!.first.id, "f");
});
