import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Claim, InFlightSet } from "./in-flight.ts";

const LANE = {};

function claim(id: string, run: number, key: string | null = "key"): Claim {
  return { run, owner: LANE, event: { id, key } };
}

test("an id that an earlier run claimed is excluded while it is in flight and until the open run ends", () => {
  const set = new InFlightSet();
  const a = claim("a", 1);
  set.add(a);
  set.beginRun(2);
  assert.equal(set.has("a"), true);
  set.remove(a);
  assert.equal(set.excludes("a"), true);
  assert.equal(set.has("a"), false, "it is no longer in flight");
  set.endRun();
  assert.equal(set.excludes("a"), false);
});

test("an id that the open run claimed itself is forgotten at its settle", () => {
  const set = new InFlightSet();
  set.beginRun(1);
  const a = claim("a", 1);
  set.add(a);
  assert.equal(set.excludes("a"), true);
  set.remove(a);
  assert.equal(set.excludes("a"), false);
  assert.equal(set.size, 0);
});

test("A3 an excluded id is reused when its event has another key, in flight or until the open run ends", () => {
  const set = new InFlightSet();
  const a = claim("a", 1, "before");
  set.add(a);
  set.beginRun(2);
  const isReused = (key: string, lane = LANE) => set.isReused("a", key, lane);
  assert.deepEqual([isReused("before"), isReused("after")], [false, true]);
  assert.equal(isReused("before", {}), true, "another lane has it in flight");
  set.remove(a);
  assert.deepEqual([isReused("before"), isReused("after")], [false, true]);
});

/** The rule as the comment of the class states it, kept as a history instead of two collections. */
class Model {
  readonly inFlight = new Map<string, number>();
  /** All ids that were in flight at any moment since the open run began. */
  seenSinceBegin = new Map<string, number>();
  openRun: number | null = null;
  runs = 0;
}

type Step = { readonly kind: "begin" | "end" } | { readonly kind: "claim" | "head" | "settle"; readonly id: string };

const id = fc.constantFrom("a", "b", "c", "d");
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.constant<Step>({ kind: "begin" }),
  fc.constant<Step>({ kind: "end" }),
  fc.record({ kind: fc.constantFrom("claim", "head", "settle"), id }) as fc.Arbitrary<Step>,
);

function apply(model: Model, set: InFlightSet, it: Step): void {
  if (it.kind === "begin" && model.openRun === null) {
    model.runs += 1;
    model.openRun = model.runs;
    model.seenSinceBegin = new Map(model.inFlight);
    set.beginRun(model.runs);
  } else if (it.kind === "end" && model.openRun !== null) {
    model.openRun = null;
    model.seenSinceBegin.clear();
    set.endRun();
  } else if (it.kind === "settle") {
    model.inFlight.delete(it.id);
    const claimed = set.get(it.id);
    if (claimed !== undefined) set.remove(claimed);
  } else if ((it.kind === "claim" || it.kind === "head") && !set.excludes(it.id)) {
    // Heads are read by id, not by a run.
    const run = it.kind === "claim" ? model.openRun : 0;
    if (run === null) return;
    model.inFlight.set(it.id, run);
    if (model.openRun !== null) model.seenSinceBegin.set(it.id, run);
    set.add(claim(it.id, run));
  }
}

test("an id that was in flight at any moment since the run began is dropped from its pages, except the run's own", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const model = new Model();
      const set = new InFlightSet();
      for (const it of steps) {
        apply(model, set, it);
        assert.equal(set.size, model.inFlight.size);
        for (const known of ["a", "b", "c", "d"]) {
          const run = model.seenSinceBegin.get(known);
          const lingers = run !== undefined && run !== model.openRun;
          assert.equal(
            set.excludes(known),
            model.inFlight.has(known) || lingers,
            `${known} after ${JSON.stringify(it)}`,
          );
        }
      }
    }),
    { numRuns: 500 },
  );
});
