import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { after, before, test } from "node:test";
import { installPrograms } from "../servers/debian-programs.ts";
import { type Block, ROOT, readPage } from "./page.ts";
import { PROOFS } from "./proofs.ts";
import { Servers } from "./servers.ts";
import { Shop } from "./shop.ts";
import { Walk } from "./walk.ts";

const servers = new Servers();
before(() => installPrograms("the pages", { psql: "postgresql-client", curl: "curl", openssl: "openssl" }));
after(async () => {
  await (await prepared)?.[Symbol.asyncDispose]();
  await servers[Symbol.asyncDispose]();
});

/** The page that others begin with, and its last step that they share. */
const BEGINNING = { page: "docs/start/your-database.md", steps: 3 };
const isBeginning = ({ heading }: Block) => Number(/^(\d)\. /.exec(heading)?.[1] ?? Number.NaN) <= BEGINNING.steps;

let prepared: Promise<Walk> | undefined;

/** Follows these steps once, and keeps the database and the folder for all pages that start from there. */
function prepare(): Promise<Walk> {
  prepared ??= (async () => {
    const page = readPage(BEGINNING.page);
    const shop = await Shop.open(await servers.postgres(), false);
    const walk = await Walk.open(page, servers, shop, null);
    await walk.follow(page.blocks.filter(isBeginning));
    await shop.keep();
    await shop.close();
    return walk;
  })();
  return prepared;
}

for (const path of globSync(["docs/start/*.md", "docs/recipes/*.md"], { cwd: ROOT }).sort()) {
  test(`A17 A21 ${path} works as it is written, command by command, with the printed grants alone`, async () => {
    const page = readPage(path);
    if (page.first !== null) assert.deepEqual(page.first, BEGINNING);
    const earlier = page.first !== null || path === BEGINNING.page ? await prepare() : null;
    const shop = await Shop.open(await servers.postgres(), earlier !== null);
    try {
      await using walk = await Walk.open(page, servers, shop, earlier);
      await followToTheEnd(walk).catch((cause: unknown) => {
        throw new Error(`${String(cause)}\nThe service printed:\n${walk.serviceOutput()}`, { cause });
      });
    } finally {
      await shop.close();
    }
  });
}

async function followToTheEnd(walk: Walk): Promise<void> {
  const { blocks, path } = walk.page;
  const { before, at = {}, after } = PROOFS[path] ?? {};
  await before?.(walk);
  const isOpen = (block: Block) => path !== BEGINNING.page || !isBeginning(block);
  await walk.follow(blocks.filter(isOpen), async (heading) => at[heading]?.(walk));
  await after?.(walk);
  await walk.stop();
}
