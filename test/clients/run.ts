// Runs the suites of each adapter with the oldest and the newest clients, and writes docs/reference/compatibility.md.
// Words pick the clients whose name contains one of them; the rows of the others stay.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { packPackages } from "../packages/pack.ts";
import { createScratch } from "../servers/scratch.ts";
import { CLIENTS } from "./pairs.ts";
import { tryPair } from "./scratch-app.ts";
import { compatibilityDocument, rowOf, rowsIn } from "./table.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const DOCUMENT = join(ROOT, "docs/reference/compatibility.md");

const words = process.argv.slice(2).map((word) => word.toLowerCase());
const picked = CLIENTS.filter(({ name }) => words.length === 0 || words.some((it) => name.toLowerCase().includes(it)));
const scratch = createScratch("clients", "disk");
const rows = new Map(existsSync(DOCUMENT) ? rowsIn(readFileSync(DOCUMENT, "utf8")) : []);
const { peerDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
let failed = 0;

const { relay } = await packPackages(scratch.path);
for (const client of picked) {
  for (const [at, pair] of client.pairs.entries()) {
    const folder = join(scratch.path, `${client.name.split(" ")[0]}-${at}`);
    const outcome = await tryPair(folder, relay.tarball, client, pair);
    if (!outcome.isGood) failed += 1;
    console.log(
      `${outcome.isGood ? "ok    " : "FAILED"} ${client.name}: ${outcome.installed.join(", ")}: ${outcome.result}`,
    );
    rows.set(...rowOf(client, pair, outcome));
    writeFileSync(DOCUMENT, compatibilityDocument(CLIENTS, rows, peerDependencies));
  }
}
await scratch.remove();
process.exitCode = failed === 0 ? 0 : 1;
