import { join } from "node:path";
import { pythonPackage } from "./python-package.ts";

/** How schemathesis is called, which asks an API all that its document allows and forbids. */
export async function schemathesisCommand(): Promise<readonly [program: string, ...args: string[]]> {
  // Its own script knows only the folder in which it was made.
  return [join(await pythonPackage("schemathesis", "4.32.5"), "python"), "-m", "schemathesis.cli"];
}
