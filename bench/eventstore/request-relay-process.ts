import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePort } from "../../test/servers/free-port.ts";
import { contextAt } from "./bench-requests.ts";

/** The compiled program, as it ships: stripping types at run time costs memory of its own. */
const PROGRAM = fileURLToPath(new URL("../../dist/cli/outbox-relay.js", import.meta.url));

export async function compileProgram(): Promise<void> {
  const project = fileURLToPath(new URL("../../tsconfig.build.json", import.meta.url));
  const compiler = fileURLToPath(new URL("../../node_modules/.bin/tsc", import.meta.url));
  await promisify(execFile)(compiler, ["-p", project]);
}

export interface RequestRelayRun {
  readonly storeUrl: string;
  readonly redisPort: number;
  readonly contexts: number;
  /** Of a server; its log goes there. */
  readonly folder: string;
}

export interface RequestRelayProcess extends AsyncDisposable {
  /** By the system's clock, when the first context was about to be read; null before. */
  runningSinceMs(): number | null;
  /** The most memory that it ever had. */
  peakRssMb(): number;
}

/** `outbox-relay run` with its defaults; its log goes to a file, as a supervisor's would. */
export async function startRequestRelay(run: RequestRelayRun): Promise<RequestRelayProcess> {
  const path = join(run.folder, `relay-${process.hrtime.bigint()}.log`);
  const log = openSync(path, "a");
  // By the folder's name it is found and ended if the bench is killed.
  const child = spawn(process.execPath, [`--title=${basename(run.folder)}`, PROGRAM, "run"], {
    cwd: run.folder,
    env: {
      PATH: process.env.PATH,
      KURRENTDB_URL: run.storeUrl,
      OUTBOX_CONTEXTS: Array.from({ length: run.contexts }, (_, number) => contextAt(number)).join(),
      OUTBOX_DESTINATION: `bullmq+redis://127.0.0.1:${run.redisPort}/0`,
      PORT: String(await freePort()),
    },
    stdio: ["ignore", log, "inherit"],
  });
  closeSync(log);
  const ended = once(child, "exit");
  return {
    runningSinceMs: () => {
      if (child.exitCode !== null)
        throw new Error(`the relay ended with ${child.exitCode}: ${readFileSync(path, "utf8")}`);
      const line = readFileSync(path, "utf8").match(/^.*"state":"running".*$/m)?.[0];
      return line === undefined ? null : Date.parse((JSON.parse(line) as { readonly time: string }).time);
    },
    peakRssMb: () => {
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
      return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await ended;
    },
  };
}
