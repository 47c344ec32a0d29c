import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cached } from "../../src/dev/embedded-postgres.ts";

/** The README states it. With 5.6 the types of pg's own protocol do not compile. */
export const OLDEST_TYPESCRIPT = "5.7";

/** The compiler's script. No dependency of the project: its command would have the name of the present compiler's. */
export async function oldestTypeScript(): Promise<string> {
  const folder = await cached(`typescript-${OLDEST_TYPESCRIPT}`, async (draft) => {
    console.log(`fetching TypeScript ${OLDEST_TYPESCRIPT} with npm, once per machine`);
    await mkdir(draft);
    const which = `typescript@~${OLDEST_TYPESCRIPT}.0`;
    await promisify(execFile)("npm", ["install", "--prefix", draft, "--no-save", "--no-audit", "--no-fund", which]);
  });
  return join(folder, "node_modules/typescript/bin/tsc");
}
