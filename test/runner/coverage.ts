import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** In percent of all that ships (A22). */
const LIMITS = { lines: 80, functions: 80, statements: 80, branches: 75 } as const;
const C8 = fileURLToPath(new URL("../../node_modules/c8/bin/c8.js", import.meta.url));

/**
 * What the processes of the tests run of the sources. The programs that tests start as processes of their own do not
 * count: they are compiled, and measuring a thousand of them doubled the time of the run for a few percent. V8 counts, and
 * types are stripped in place, so that its positions are those of the source.
 */
export class Coverage implements Disposable {
  /** Where processes write what they ran, by their variable NODE_V8_COVERAGE. */
  readonly folder = mkdtempSync(join(tmpdir(), "outbox-relay-coverage-"));
  readonly #root: string;

  /** Of the sources in `src` of this folder. */
  constructor(root: string) {
    this.#root = root;
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Prints the sums; returns what is wrong with them, null when nothing is. */
  async check(print: (text: string) => void): Promise<string | null> {
    try {
      if (readdirSync(this.folder).length === 0) return "no process has written down what it ran";
      const limits = Object.entries(LIMITS).flatMap(([kind, percent]) => [`--${kind}`, String(percent)]);
      const places = ["--temp-directory", this.folder, "--all", "--src", "src", "--include", "src/**/*.ts"];
      const left = ["--exclude", "**/*.test.ts"];
      const form = ["--reporter", "text-summary", "--check-coverage", ...limits];
      const args = [C8, "report", ...places, ...left, ...form];
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: this.#root, env: {} });
      print(stdout);
      return null;
    } catch (error) {
      const { stdout = "", stderr = "" } = error as { readonly stdout?: string; readonly stderr?: string };
      return `${stdout}${stderr}`.trim() || String(error);
    }
  }
}
