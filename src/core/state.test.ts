import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { type Edge, type EventState, edges, next, type Transition } from "./state.ts";

const STATES: readonly EventState[] = ["PENDING", "DELIVERING", "DELIVERED", "DEAD"];
const TRANSITIONS: readonly Transition[] = [
  "claim",
  "hand back",
  "deliver",
  "fail",
  "reap",
  "exhaust",
  "reject",
  "replay",
];

const DOCUMENTED = [
  "DEAD --> PENDING: replay",
  "DELIVERED --> PENDING: replay",
  "DELIVERING --> DEAD: exhaust",
  "DELIVERING --> DEAD: reject",
  "DELIVERING --> DELIVERED: deliver",
  "DELIVERING --> PENDING: fail",
  "DELIVERING --> PENDING: hand back",
  "DELIVERING --> PENDING: reap",
  "PENDING --> DELIVERING: claim",
];

function show({ from, to, transition }: Edge): string {
  return `${from} --> ${to}: ${transition}`;
}

test("B3 an event has exactly the documented transitions", () => {
  assert.deepEqual(edges().map(show).sort(), DOCUMENTED);
});

test("B3 the function allows what the edges list and nothing else", () => {
  const allowed = STATES.flatMap((from) =>
    TRANSITIONS.flatMap((transition) => {
      const to = next(from, transition);
      return to === undefined ? [] : [show({ from, transition, to })];
    }),
  );
  assert.deepEqual(allowed.sort(), DOCUMENTED);
});

test("B3 the diagram and the function have the same edges", async () => {
  const text = await readFile(join(import.meta.dirname, "..", "..", "ARCHITECTURE.md"), "utf8");
  const diagram = /```mermaid\s+stateDiagram-v2([\s\S]*?)```/.exec(text)?.[1];
  assert.ok(diagram !== undefined, "ARCHITECTURE.md has no state diagram");
  const drawn = [...diagram.matchAll(/^\s*(\S+)\s*-->\s*(\S+?)\s*(?::\s*(.+?))?\s*$/gm)].map(
    ([, from, to, transition]) => ({ from, to, transition }),
  );
  assert.deepEqual(
    drawn.filter(({ from }) => from === "[*]").map(({ to, transition }) => `${to}: ${transition}`),
    ["PENDING: write"],
  );
  const inner = drawn.filter(({ from, to }) => from !== "[*]" && to !== "[*]");
  assert.deepEqual(
    inner.map(({ from, to, transition }) => `${from} --> ${to}: ${transition}`).sort(),
    edges().map(show).sort(),
  );
});
