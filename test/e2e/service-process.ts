import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { COMPILED_FOLDER, programPath } from "../servers/program-path.ts";
import { until } from "../servers/until.ts";

/** The command as users start it, with nothing but these variables in its environment. */
export const COMMAND = programPath(fileURLToPath(new URL("../../bin/outbox-relay.js", import.meta.url)));

/** Of the test run: programs are compiled once for all processes. */
export const OF_THE_RUN: Readonly<Record<string, string>> = Object.fromEntries(
  ["NODE_COMPILE_CACHE", COMPILED_FOLDER].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  }),
);

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const OUTPUT_SHOWN = 4_000;

type LogLine = Readonly<Record<string, unknown>>;

export interface ServiceProcess extends AsyncDisposable {
  readonly pid: number;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** The JSON lines of the log, wherever they went. */
  logs(fits?: (line: LogLine) => boolean): LogLine[];
  /** Waits for a line of the log. */
  logged(what: string, fits: (line: LogLine) => boolean): Promise<LogLine>;
  get(path: string): Promise<{ status: number; body: string; json: () => Record<string, unknown> }>;
  /** Waits until it says so of itself. */
  becomes(status: "healthy" | "degraded" | "unhealthy"): Promise<Record<string, unknown>>;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<Ended>;
}

/** A command that ends by itself. */
export async function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd?: string,
): Promise<Ended> {
  await using service = startService(args, env, COMMAND, cwd);
  return await service.ended;
}

/** Behind a shell that does not pass signals on, as npm starts it. Then the process is the shell. */
export function startBehindShell(env: Readonly<Record<string, string>>): ServiceProcess {
  return startService(["-c", `'${COMMAND}' run; exit $?`], { npm_command: "exec", ...env }, "/bin/sh");
}

export function startService(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  command: string = COMMAND,
  cwd?: string,
): ServiceProcess {
  const child = spawn(command, [...args], {
    cwd,
    env: { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, ...OF_THE_RUN, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      output[name] += text;
    });
  }
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, ...output }));
  const logs = (fits: (line: LogLine) => boolean = () => true) => logLines(output.stdout + output.stderr).filter(fits);
  const get = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${env.PORT}${path}`);
    const body = await response.text();
    return { status: response.status, body, json: () => JSON.parse(body) as Record<string, unknown> };
  };
  return {
    pid: child.pid!,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    logs,
    logged: (what, fits) => until(`the log says ${what}`, () => logs(fits)[0] ?? stillRuns(child, output)),
    get,
    becomes: (status) =>
      until(`the service is ${status}`, async () => {
        const health = await get("/health").then(
          ({ json }) => json(),
          () => null,
        );
        return health?.status === status ? health : stillRuns(child, output);
      }),
    kill: (signal) => void child.kill(signal),
    ended,
    [Symbol.asyncDispose]: async () => {
      const isLeftOver = child.exitCode === null && child.signalCode === null;
      if (isLeftOver) child.kill("SIGKILL");
      await ended;
      // The runner shows it if the test failed.
      if (isLeftOver)
        console.log(
          `the end of what ${args.join(" ")} wrote:\n${(output.stderr + output.stdout).slice(-OUTPUT_SHOWN)}`,
        );
    },
  };
}

function stillRuns(child: ChildProcess, output: { stdout: string; stderr: string }): false {
  if (child.exitCode === null && child.signalCode === null) return false;
  throw new Error(
    `the service has ended with ${child.exitCode ?? child.signalCode}:\n${output.stderr}${output.stdout}`,
  );
}

/** Only whole lines that are ours: events on standard output are JSON too. */
function logLines(text: string): LogLine[] {
  return text.split("\n").flatMap((line) => {
    if (!line.startsWith('{"level":') || !line.endsWith("}")) return [];
    return [JSON.parse(line) as LogLine];
  });
}
