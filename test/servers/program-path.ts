import { existsSync } from "node:fs";
import { join, relative, resolve } from "node:path";

/** Names the folder in which the test runner has compiled programs, if it has. */
export const COMPILED_FOLDER = "TEST_COMPILED_FOLDER";

const ROOT = resolve(import.meta.dirname, "../..");

/** What to start for a program of this project: its compiled form where the runner has made one, else the source. */
export function programPath(source: string): string {
  const folder = process.env[COMPILED_FOLDER];
  if (folder === undefined) return source;
  const compiled = join(folder, relative(ROOT, source).replace(/\.ts$/, ".js"));
  return existsSync(compiled) ? compiled : source;
}
