import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { cached } from "../../src/dev/embedded-postgres.ts";

const run = promisify(execFile);
const VERSION = "4.32.5";

/** How schemathesis is called, which asks an API all that its document allows and forbids; fetched once per machine. */
export async function schemathesisCommand(): Promise<readonly [program: string, ...args: string[]]> {
  const pack = `schemathesis==${VERSION}`;
  const folder = await cached(`schemathesis-${VERSION}`, async (draft) => {
    await run("python3", ["-m", "venv", draft]);
    await run(join(draft, "bin/python"), ["-m", "pip", "install", "--quiet", pack]);
  }).catch((cause: unknown) => {
    throw new Error(`schemathesis is missing and the API is not fuzzed without it: pip install ${pack}`, { cause });
  });
  // Its own script knows only the folder in which it was made.
  return [join(folder, "bin/python"), "-m", "schemathesis.cli"];
}
