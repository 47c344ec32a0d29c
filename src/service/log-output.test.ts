import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const MODULE = new URL("./log-output.ts", import.meta.url).href;
const PROGRAM = `
const { logOutput } = await import(${JSON.stringify(MODULE)});
const output = logOutput(1).stream;
process.send("ready");
process.once("message", () => {
  for (let line = 0; line < 1_000; line += 1) output.write(JSON.stringify({ line, text: "x".repeat(500) }) + "\\n");
  process.exit(7);
});
`;

/** Runs a process that writes a thousand lines and exits at once; returns its exit and its output. */
async function ending(reader: "reads" | "is gone"): Promise<{ code: number | null; lines: number }> {
  const stdio = ["ignore", "pipe", "inherit", "ipc"] as const;
  const child = spawn(process.execPath, ["--input-type=module", "-e", PROGRAM], { stdio: [...stdio] });
  let text = "";
  if (reader === "reads") {
    child.stdout!.setEncoding("utf8").on("data", (some: string) => {
      text += some;
    });
  }
  await once(child, "message");
  if (reader === "is gone") child.stdout!.destroy();
  const ended = once(child, reader === "reads" ? "close" : "exit");
  child.send("write");
  const [code] = (await ended) as [number | null];
  return { code, lines: text.split("\n").filter((line) => line !== "").length };
}

test("G5 the rest of the log is written at the end of the process", { timeout: 120_000 }, async () => {
  assert.deepEqual(await ending("reads"), { code: 7, lines: 1_000 });
});

/** Runs it with a full pipe as its output, whose reader is alive but reads nothing. */
async function endingInto(folder: string): Promise<number | null> {
  const fifo = join(folder, "log");
  execFileSync("mkfifo", [fifo]);
  const pipe = openSync(fifo, constants.O_RDWR);
  try {
    const stdio = ["ignore", pipe, "inherit", "ipc"] as const;
    const child = spawn(process.execPath, ["--input-type=module", "-e", PROGRAM], { stdio: [...stdio] });
    await once(child, "message");
    const ended = once(child, "exit");
    child.send("write");
    const [code] = (await ended) as [number | null];
    return code;
  } finally {
    closeSync(pipe);
  }
}

test("H1 G5 a stalled reader of the log does not keep the process from ending", {
  timeout: 120_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "log-output-"));
  try {
    assert.equal(await endingInto(folder), 7);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("G5 a reader of the log that is gone does not keep the process from ending", { timeout: 120_000 }, async () => {
  assert.equal((await ending("is gone")).code, 7);
});
