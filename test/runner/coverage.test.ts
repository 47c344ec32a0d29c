import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Coverage } from "./coverage.ts";

const root = mkdtempSync(join(tmpdir(), "outbox-relay-covered-"));
after(() => rmSync(root, { recursive: true }));
mkdirSync(join(root, "src"));
writeFileSync(join(root, "package.json"), '{"type":"module"}');
const even = (name: string) => `export function ${name}(n: number): boolean {\n  return n % 2 === 0;\n}\n`;
writeFileSync(join(root, "src/used.ts"), even("used"));

function run(coverage: Coverage, program: string): void {
  const env = { NODE_V8_COVERAGE: coverage.folder };
  execFileSync(process.execPath, ["--input-type=module", "-e", program], { cwd: root, env });
}

const useIt = 'import { used } from "./src/used.ts"; used(1);';

test("A22 what the tests run of the sources is enough", async () => {
  using coverage = new Coverage(root);
  run(coverage, useIt);
  const printed: string[] = [];
  assert.equal(await coverage.check((text) => void printed.push(text)), null);
  assert.match(printed.join(""), /Lines +: 100%/);
});

test("A22 a source that no test loads counts as not run, and too little is told with its limit", async () => {
  using coverage = new Coverage(root);
  run(coverage, useIt);
  writeFileSync(join(root, "src/unused.ts"), even("unused"));
  assert.match((await coverage.check(() => {})) ?? "", /Coverage for lines \(50%\) does not meet .*80%/);
});

test("A22 tests that leave no trace are no coverage", async () => {
  using coverage = new Coverage(root);
  assert.match((await coverage.check(() => {})) ?? "", /no process has written/);
});
