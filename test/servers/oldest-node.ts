import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cached } from "../../src/dev/embedded-postgres.ts";

/** Of the oldest line that `engines` allows. The tests themselves run on the newest. */
export const OLDEST_NODE = "22.23.3";

/** The program. No dependency of the project: its command would have the name of the present one's. */
export async function oldestNode(): Promise<string> {
  const name = `node-${process.platform}-${process.arch}`;
  const folder = await cached(`${name}-${OLDEST_NODE}`, async (draft) => {
    console.log(`fetching Node ${OLDEST_NODE} with npm, once per machine`);
    await mkdir(draft);
    const options = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts"];
    await promisify(execFile)("npm", ["install", "--prefix", draft, ...options, `${name}@${OLDEST_NODE}`]);
  });
  return join(folder, "node_modules", name, "bin/node");
}
