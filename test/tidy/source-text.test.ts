import assert from "node:assert/strict";
import { resolve } from "node:path";
import { test } from "node:test";
import { parseModule } from "./module.ts";
import { openRepository } from "./repository.ts";
import { functionsIn } from "./sizes.ts";
import { splitSource } from "./source-text.ts";

function spans(text: string): string[] {
  const { code } = splitSource(text);
  return functionsIn(code).map(({ start, end }) => text.slice(start, end + 1));
}

test("strings, comments and regular expressions are blank in the code", () => {
  const text = 'a("{x}"); // {\nb(/[/"{]\\/+/g); /* { \n */ c(1 / 2 / 3);';
  const { code } = splitSource(text);
  assert.equal(code.length, text.length);
  assert.equal(code.includes("{"), false);
  assert.equal(code.split("\n").length, text.split("\n").length);
  assert.match(code, /c\(1 \/ 2 \/ 3\);$/);
});

test("expressions inside a template stay code, its text does not", () => {
  const { code, literals } = splitSource(`x(\`{ \${f({ a: \`}\${b}\` })} "\`); y("z")`);
  assert.match(code, /x\(`\s+\$\{f\(\{ a: `\s*\$\{b\}` \}\)\}\s+`\); y\("\s"\)/);
  assert.equal(literals.get(2), '{  "');
});

test("an escaped quote and a slash after a value end nothing", () => {
  const { code } = splitSource("const a = 'it\\'s {'; const b = (c) / d; const e = list[0] / 2; // '\nf();");
  assert.equal(code.includes("{"), false);
  assert.match(code, /\(c\) \/ d; const e = list\[0\] \/ 2;\s+\nf\(\);$/);
});

test("a regular expression may follow a word like return", () => {
  const { code } = splitSource("return /[{]'/.test(x); const y = 1;");
  assert.match(code, /\.test\(x\); const y = 1;$/);
  assert.equal(code.includes("{"), false);
});

test("lines are counted from one", () => {
  const { lineAt } = splitSource("a\nbc\n\nd");
  assert.deepEqual([0, 1, 2, 4, 5, 6].map(lineAt), [1, 1, 2, 2, 3, 4]);
});

test("functions, methods and arrows are found, control flow is not", () => {
  assert.deepEqual(spans("function f(a: string): void { g(a); }"), ["(a: string): void { g(a); }"]);
  assert.deepEqual(spans("class A { async m<T>(x: T) { if (x) { y(); } } }"), ["(x: T) { if (x) { y(); } }"]);
  assert.deepEqual(spans("const f = (a) => ({ a });"), ["(a) => ({ a })"]);
  assert.deepEqual(spans("for (const a of b) { while (c) { } } switch (d) { } try { } catch (e) { }"), []);
});

test("return types with braces, arrows and generics do not hide the body", () => {
  assert.deepEqual(spans("function f(): { a: number } { b; }"), ["(): { a: number } { b; }"]);
  assert.deepEqual(spans("function f(): Map<string, () => { a: 1 }> | undefined { b; }"), [
    "(): Map<string, () => { a: 1 }> | undefined { b; }",
    "() => { a: 1 }",
  ]);
  assert.deepEqual(spans("const f = (x): x is Y => { b; };"), ["(x): x is Y => { b; }"]);
  assert.deepEqual(spans('const a = b ? (c) : { d: "e" }; g();'), []);
});

test("the callback of describe is a chapter", () => {
  const { code } = splitSource('describe("a", () => { test("b", () => { c(); }); });');
  assert.deepEqual(
    functionsIn(code).map(({ isChapter }) => isChapter),
    [true, false],
  );
});

test("imports and exports are read in all their forms", () => {
  const { imports, exports } = parseModule(
    "src/a/b.ts",
    `import x, { type y as z } from "../c.ts";
     import * as all from "pkg/sub";
     import "./side.ts";
     const lazy = await import("./lazy.ts");
     new Worker(new URL("./work.ts", import.meta.url));
     export { p as q } from "./p.ts";
     export * from "./every.ts";
     export async function f() {}
     export interface I {}
     const k = 1;
     export { k, type I as J };
     export default k;`,
  );
  assert.deepEqual(
    imports.map(({ target, specifier, names }) => [target ?? specifier, ...names]),
    [
      ["src/c.ts", "y", "default"],
      ["pkg/sub", "*"],
      ["src/a/p.ts", "p"],
      ["src/a/every.ts", "*"],
      ["src/a/side.ts", "*"],
      ["src/a/lazy.ts", "*"],
      ["src/a/work.ts", "*"],
    ],
  );
  assert.deepEqual(
    exports.map(({ name, kind }) => `${kind} ${name}`),
    ["value q", "value *", "value f", "type I", "value k", "type J", "value default"],
  );
});

test("the brackets of every TypeScript file here pair up", () => {
  const modules = openRepository(resolve(import.meta.dirname, "../..")).modules();
  for (const { path, code } of modules) {
    const count = (bracket: string): number => code.split(bracket).length;
    for (const [open, close] of ["()", "[]", "{}"].map((pair) => pair.split(""))) {
      assert.equal(count(open ?? ""), count(close ?? ""), `${path}: the scanner misread ${open}${close}`);
    }
  }
});
