import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { after, test } from "node:test";
import { createScratch } from "../servers/scratch.ts";
import { commandsOf, fileOf, isLike, missingTests, type Page, ROOT, readPage } from "./page.ts";
import { Servers } from "./servers.ts";
import type { Shop } from "./shop.ts";
import { Walk } from "./walk.ts";

const scratch = createScratch("pages", "memory");
after(() => scratch.remove());

function pageOf(...lines: readonly string[]): Page {
  const file = join(scratch.path, "page.md");
  writeFileSync(file, `${lines.join("\n")}\n`);
  return readPage(relative(ROOT, file));
}

async function follow(...lines: readonly string[]): Promise<void> {
  const page = pageOf(...lines);
  await using walk = await Walk.open(page, new Servers(), {} as Shop, null);
  await walk.follow(page.blocks);
}

test("A21 a block that cannot be run, and whose page does not say why, fails its page", async () => {
  await assert.rejects(follow("```python", "print(1)", "```"), /page\.md:1 .*no way to run it/);
  await assert.rejects(follow("", "```ts", "const a = 1;", "```"), /page\.md:2 .*name its file/);
  await follow("<!-- not run: needs Python -->", "```python", "print(1)", "```");
});

test("A21 a reason that names a test which is not there fails its page", async () => {
  const mark = (file: string) => ["<!-- not run: see", `${file} -->`, "   ```sh", "   kubectl apply", "   ```"];
  await follow(...mark("test/containers.test.ts"));
  await assert.rejects(follow(...mark("test/gone.test.ts")), /names tests that do not exist/);
  assert.deepEqual(pageOf(...mark("test/gone.test.ts")).blocks.flatMap(missingTests), ["test/gone.test.ts"]);
});

test("A21 a command that fails, or prints something else than its page shows, fails its page", async () => {
  await assert.rejects(follow("```sh", "export A=1", "test $A = 2", "```"), /page\.md:1 does not work as written/);
  await assert.rejects(follow("```sh", "npx outbox-relay --help", "```"), /No such file|not found/);
  await follow("```sh", "export A=1", "```", "```sh", "echo $A", "```", "```text", "1", "```");
  await assert.rejects(follow("```sh", "echo 1", "```", "```text", "2", "```"), /the page shows\n2\n/);
});

test("A21 only the packages that a page installs are there, in the version that the tests run with", async () => {
  await follow("```sh", "npm install outbox-relay ioredis@6", "ls node_modules/ioredis/package.json", "```");
  await assert.rejects(follow("```sh", "npm install ioredis@5.0.0", "```"), /ioredis@5\.0\.0: the tests run with 6/);
});

test("A21 commands that run until they are stopped are told from those that end", () => {
  const { blocks } = pageOf(
    ...[
      "```sh",
      "# a remark",
      "A='b c' npx outbox-relay run",
      "npx outbox-relay run --once",
      "npx outbox-relay \\",
      "  status",
    ],
    ...["node relay.ts   # until Ctrl-C", "```", "", "```yaml", "# a/b.yaml", "c: 1", "```"],
  );
  assert.deepEqual(
    blocks.slice(0, 1).flatMap((block) => commandsOf(block).map(({ isService }) => isService)),
    [true, false, false, true],
  );
  assert.deepEqual(blocks.map(fileOf), [null, "a/b.yaml"]);
});

test("A21 shown output may leave out what differs from run to run, and nothing else", () => {
  assert.ok(isLike("delivered after 12 ms: event 7\n", "delivered after ... ms: event ...\n"));
  assert.ok(isLike("first\na\nb\nlast\n", "first\n...\nlast\n"));
  assert.ok(!isLike("delivered after 12 ms\nand more\n", "delivered after ... ms\n"));
  assert.ok(!isLike("a+b", "aab"));
});
