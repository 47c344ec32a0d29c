import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { EDGES } from "./state.ts";

test("B3 the diagram in ARCHITECTURE.md and the code have the same edges", async () => {
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
    EDGES.map(({ from, to, transition }) => `${from} --> ${to}: ${transition}`).sort(),
  );
});
