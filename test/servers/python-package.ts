import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { cached } from "../../src/dev/embedded-postgres.ts";

const run = promisify(execFile);

/** The `bin` folder of an environment that holds this package. Fetched once per machine with Python's installer. */
export async function pythonPackage(name: string, version: string): Promise<string> {
  const folder = await cached(`${name}-${version}`, async (draft) => {
    console.log(`fetching ${name} ${version} with pip, once per machine`);
    await run("python3", ["-m", "venv", draft]);
    await run(join(draft, "bin/python"), ["-m", "pip", "install", "--quiet", `${name}==${version}`]);
  }).catch((cause: unknown) => {
    throw new Error(`The tests do not run without ${name}: pip install ${name}==${version}`, { cause });
  });
  return join(folder, "bin");
}
