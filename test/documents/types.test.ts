import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { generatePrismaClient } from "../servers/prisma-client.ts";
import { createScratch } from "../servers/scratch.ts";
import { type Block, fileOf, ROOT, readPage } from "./page.ts";

/** What the names of the package stand for in the clone. */
function sources(): Readonly<Record<string, readonly string[]>> {
  const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, { readonly default: string }>>;
  };
  const sourceOf = (file: string) => join(ROOT, file.replace("./dist/", "src/").replace(/\.js$/, ".ts"));
  return Object.fromEntries(
    Object.entries(exports).map(([name, { default: file }]) => [name.replace(".", "outbox-relay"), [sourceOf(file)]]),
  );
}

function write(folder: string, block: Block): void {
  const file = join(folder, fileOf(block) ?? "unnamed.ts");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, block.text);
}

/** The files of its page that it loads, and those that they load. */
function importedBy(block: Block, blocks: readonly Block[]): Block[] {
  const direct = blocks.filter((it) => block.text.includes(`from "./${fileOf(it)}"`));
  return direct.flatMap((it) => [it, ...importedBy(it, blocks)]);
}

/** Parts of the example, which has settings of its own for its decorators. */
const isOfNest = ({ notRun }: Block) => notRun?.includes("test/examples/nestjs.test.ts") ?? false;

const PRISMA_CLIENT = "./generated/prisma/client.ts";

async function generatePrisma(folder: string, blocks: readonly Block[]): Promise<void> {
  for (const block of blocks.filter(({ language }) => language === "prisma")) {
    write(folder, block);
    await generatePrismaClient(join(folder, fileOf(block) ?? ""), join(folder, dirname(PRISMA_CLIENT)));
  }
}

test("A21 the TypeScript of the start pages and recipes has no fault of types, as strict as this project", async () => {
  const scratch = createScratch("types", "memory");
  try {
    const pages = globSync("docs/{start,recipes}/*.md", { cwd: ROOT }).map((path) => readPage(path).blocks);
    const programs = pages.flatMap((blocks) => blocks.filter((block) => block.language === "ts" && !isOfNest(block)));
    // Beside each of them the files of its page, or of all pages, that one of them imports.
    for (const [number, block] of programs.entries()) {
      const folder = join(scratch.path, String(number));
      const ofPage = pages.find((blocks) => blocks.includes(block)) ?? [];
      for (const other of programs) if (fileOf(other)?.startsWith("relays/")) write(folder, other);
      for (const other of importedBy(block, ofPage)) write(folder, other);
      if (block.text.includes(PRISMA_CLIENT)) await generatePrisma(folder, ofPage);
      write(folder, block);
    }
    writeFileSync(join(scratch.path, "package.json"), '{ "type": "module" }');
    symlinkSync(join(ROOT, "node_modules"), join(scratch.path, "node_modules"));
    const settings = {
      extends: join(ROOT, "tsconfig.json"),
      compilerOptions: { paths: sources() },
      include: ["*/**/*.ts"],
    };
    writeFileSync(join(scratch.path, "tsconfig.json"), JSON.stringify(settings));
    const { status, stdout } = spawnSync(join(ROOT, "node_modules/.bin/tsc"), ["-p", scratch.path], {
      encoding: "utf8",
    });
    assert.deepEqual([status, stdout], [0, ""]);
    assert.ok(programs.length > 0);
  } finally {
    await scratch.remove();
  }
});
