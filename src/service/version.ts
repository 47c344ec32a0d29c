import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Two folders up from here, in the sources and in the build. */
const manifest = join(import.meta.dirname, "..", "..", "package.json");

/** The version in package.json. */
export const VERSION = (JSON.parse(readFileSync(manifest, "utf8")) as { readonly version: string }).version;
