// Calls one command line after the other in a process of its own, whose output is nobody else's: a process for each would
// take a minute. Started by command-output.test.ts.
import { runCommandLine } from "../../src/cli/main.ts";

export interface Told {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function call(args: readonly string[]): Promise<Told> {
  const told = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    process[name].write = ((chunk: string | Uint8Array, ...rest: unknown[]) => {
      told[name] += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
      const done = rest.find((it) => typeof it === "function") as (() => void) | undefined;
      done?.();
      return true;
    }) as typeof process.stdout.write;
  }
  const code = await runCommandLine(args);
  return { code, ...told };
}

process.on("message", async (args: string[]) => {
  process.send?.(await call(args));
});
