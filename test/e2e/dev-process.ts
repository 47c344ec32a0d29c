import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { createScratch, markedProcesses, type Scratch } from "../servers/scratch.ts";
import { until } from "../servers/until.ts";
import { OF_THE_RUN } from "./service-process.ts";

const OUTPUT_SHOWN = 4_000;
const root = fileURLToPath(new URL("../..", import.meta.url));

/** What `npm start` runs, without npm in between. */
function startScript(): readonly string[] {
  const { scripts } = JSON.parse(readFileSync(`${root}/package.json`, "utf8")) as { scripts: { start: string } };
  const [program, ...args] = scripts.start.split(" ");
  if (program !== "node") throw new Error(`npm start is expected to run node, not ${program}`);
  return args;
}

interface DevState {
  /** The first, and one that can be switched on. */
  readonly relays: readonly { readonly state: string; readonly pid: number | null; readonly lanes: number }[];
  readonly destination: {
    readonly arrived: number;
    readonly lost: number;
    readonly repeated: number;
    readonly outstanding: number;
    readonly outOfOrder: number;
    readonly circuit: string | null;
    readonly broker: string | null;
  };
  readonly flow: { readonly waiting: number; readonly lagMs: number; readonly delivered: number } | null;
  readonly tour: { readonly deadLetters: number; readonly plansDone: number };
}

export interface DevProcess extends AsyncDisposable {
  readonly startedMs: number;
  readonly output: () => string;
  /** As it is printed; waits for it. */
  address(): Promise<string>;
  /** Asks the demo. When it has ended by itself, the error shows what it printed. */
  get(path: string): Promise<Response>;
  state(): Promise<DevState>;
  /** Ids of all processes that belong to it, itself excluded. */
  companions(): number[];
  readonly scratch: Scratch;
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** The dev face in a folder for temporary files of its own, so that whatever it leaves behind is found. */
export function startDev(
  port: number,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): DevProcess {
  const scratch = createScratch("dev-test", "disk");
  const startedMs = performance.now();
  const { HOME = "/root" } = process.env;
  const child = spawn(process.execPath, [...startScript(), ...args], {
    cwd: root,
    env: {
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      HOME,
      PORT: String(port),
      TMPDIR: scratch.path,
      ...OF_THE_RUN,
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const ended = once(child, "close").then(([code]) => code as number | null);
  const address = () =>
    until("the address is printed", () => /http:\/\/localhost:\d+/.exec(output)?.[0] ?? stillRuns(child, output));
  const get = async (path: string) => {
    const url = `${await address()}${path}`;
    return await fetch(url).catch((error: unknown) => {
      stillRuns(child, output);
      throw error;
    });
  };
  return {
    startedMs,
    output: () => output,
    address,
    get,
    state: async () => (await (await get("/dev/state")).json()) as DevState,
    companions: () => markedProcesses(scratch.mark),
    scratch,
    end: async (signal) => {
      child.kill(signal);
      return await ended;
    },
    [Symbol.asyncDispose]: async () => {
      const isLeftOver = child.exitCode === null && child.signalCode === null;
      if (isLeftOver) child.kill("SIGKILL");
      await ended;
      // The runner shows it if the test failed.
      if (isLeftOver) console.log(`the end of what the demo printed:\n${output.slice(-OUTPUT_SHOWN)}`);
      await until("the guard has ended", () => markedProcesses(scratch.mark).length === 0);
      await scratch.remove();
    },
  };
}

function stillRuns(child: ChildProcess, output: string): false {
  if (child.exitCode === null && child.signalCode === null) return false;
  throw new Error(`the dev face has ended with ${child.exitCode ?? child.signalCode}:\n${output}`);
}
