import { spawn } from "node:child_process";
import { once } from "node:events";

export interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Runs the demo of an installed package without a terminal. Once it says that it is ready, it is ended as by Ctrl-C. */
export async function runDemo(program: string, folder: string, args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [program, "dev", ...args], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (/^ready in/m.test(text)) child.kill("SIGINT");
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}
