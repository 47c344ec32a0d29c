import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { mavenClassPath } from "./maven-jars.ts";

const VERSION = "1.7.3";
const GROOVY = "4.0.24";

/** A filter and a record, as JSON. */
export interface RuledCase {
  readonly pattern: unknown;
  readonly event: unknown;
}

/** What the engine that AWS publishes says of each: whether the record matches, or why the filter is refused. */
export async function ruledByAws(cases: readonly RuledCase[]): Promise<readonly (boolean | string)[]> {
  const path = await mavenClassPath("event-ruler", VERSION, [
    ["software.amazon.event.ruler", "event-ruler", VERSION],
    // It runs a script without a compiler on the machine.
    ["org.apache.groovy", "groovy", GROOVY],
  ]);
  const script = join(import.meta.dirname, "event-ruler.groovy");
  const child = spawn("java", ["-cp", path, "groovy.ui.GroovyMain", script], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.end(cases.map((it) => `${JSON.stringify(it)}\n`).join(""));
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (code !== 0) throw new Error(`the engine ended with ${code}`);
  const lines = said.trimEnd().split("\n");
  return lines.map((line) => (line === "true" ? true : line === "false" ? false : line));
}
