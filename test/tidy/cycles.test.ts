import assert from "node:assert/strict";
import { test } from "node:test";
import { importCycles } from "./cycles.ts";
import { repositoryOf } from "./repository.ts";

test("files that import each other are found, also through others; types and tests may", () => {
  const found = importCycles(
    repositoryOf({
      "src/a.ts": 'import { b } from "./b.ts";\nimport { c } from "./c.ts";',
      "src/b.ts": 'import { c } from "./c.ts";',
      "src/c.ts": 'import { e } from "./e.ts";\nexport { a } from "./a.ts";',
      "src/d.ts": 'import type { E } from "./e.ts";',
      "src/e.ts": 'import { d } from "./d.ts";',
      "src/e.test.ts": 'import { e } from "./e.ts";\nimport "./f.ts";',
      "src/f.ts": 'const { g } = await import("./g.ts");',
      "src/g.ts": 'import "./f.ts";',
    }),
  );
  assert.deepEqual(
    found.map(({ file, line, what }) => `${file}:${line} ${what}`),
    [
      "src/c.ts:2 closes a cycle: src/a.ts -> src/b.ts -> src/c.ts -> src/a.ts",
      "src/g.ts:1 closes a cycle: src/f.ts -> src/g.ts -> src/f.ts",
    ],
  );
});
