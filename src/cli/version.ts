import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Two folders up, from the sources as well as from what is built of them. */
const manifest = join(import.meta.dirname, "..", "..", "package.json");

export const VERSION = (JSON.parse(readFileSync(manifest, "utf8")) as { readonly version: string }).version;
