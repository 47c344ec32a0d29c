import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { markedProcesses } from "../test/servers/scratch.ts";
import { type Figure, measured } from "./figure.ts";

/** The unit of /proc/PID/stat on every Linux: USER_HZ is 100. */
const TICK_MS = 10;
/** The fields of /proc/PID/stat behind the name in brackets: utime, stime, and the same of children that ended. */
const TIMES_AT = 11;
const TIMES = 4;

interface Server {
  readonly folder: string;
}

/** What a measurement cost, in milliseconds of CPU. */
export interface CpuTimes {
  readonly relayMs: number;
  readonly databaseMs: number;
  readonly brokerMs: number;
}

/** Starts to count the CPU time of the servers; the returned function gives what they have used since. */
export function countCpu(
  database: Server,
  broker: Server,
): (relay: { readonly cpuPercent: number; readonly ms: number }) => CpuTimes {
  const before = [usedMs(database), usedMs(broker)] as const;
  return ({ cpuPercent, ms }) => ({
    relayMs: (cpuPercent / 100) * ms,
    databaseMs: usedMs(database) - before[0],
    brokerMs: usedMs(broker) - before[1],
  });
}

/** Steadier than events per second where other programs share the machine. */
export function cpuFigures(name: string, { relayMs, databaseMs, brokerMs }: CpuTimes, events: number): Figure[] {
  const parts = { relay: relayMs, database: databaseMs, broker: brokerMs };
  return Object.entries(parts).map(([part, ms]) =>
    measured(`${name}, CPU of the ${part}`, (ms * 1_000) / events, "us/event"),
  );
}

/** The CPU time of all processes of a server, and of those that have ended. */
function usedMs({ folder }: Server): number {
  return markedProcesses(basename(folder)).reduce((sum, pid) => sum + ticksOf(pid) * TICK_MS, 0);
}

function ticksOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields.slice(TIMES_AT, TIMES_AT + TIMES).reduce((sum, field) => sum + Number(field), 0);
  } catch {
    return 0; // it ended in between, and its parent counts it from now on
  }
}
