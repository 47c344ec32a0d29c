// Every command as a program reads it: one JSON document on success, one JSON error otherwise, and the documented code.
import assert from "node:assert/strict";
import { type ChildProcess, execFile, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import type { Command } from "commander";
import { commands } from "../../src/cli/main.ts";
import type { AnswerTimes } from "../../src/cli/top/answer-times.ts";
import { EXIT } from "../../src/service/exit.ts";
import { freePort } from "../servers/free-port.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { createScratch } from "../servers/scratch.ts";
import { until, untilEqual } from "../servers/until.ts";
import type { Told } from "./command-caller.ts";
import { ORDERS } from "./outbox-tables.ts";
import { COMMAND, OF_THE_RUN, runCommand, startService } from "./service-process.ts";
import { openStage, type Stage } from "./stage.ts";

const PIPELINE = "orders.outbox->stdout";
const UNKNOWN_PLAN = "00000000-0000-4000-8000-000000000000";

/** A call of each command, and how it ends. One that is missing here fails the test. */
const CALLS: Readonly<Record<string, { readonly args: readonly string[]; readonly code: number }>> = {
  run: { args: ["--only", ""], code: EXIT.usage },
  migrate: { args: ["status"], code: EXIT.ok },
  adopt: { args: [], code: EXIT.usage },
  status: { args: [], code: EXIT.ok },
  top: { args: [], code: EXIT.ok },
  audit: { args: [], code: EXIT.ok },
  pause: { args: [PIPELINE], code: EXIT.ok },
  resume: { args: ["--all"], code: EXIT.ok },
  limit: { args: [PIPELINE, "100/s"], code: EXIT.ok },
  prune: { args: ["--table", "orders.outbox", "--delivered-age", "7d"], code: EXIT.usage },
  "lanes list": { args: [], code: EXIT.ok },
  "lanes set": { args: [PIPELINE, "none"], code: EXIT.usage },
  "log list": { args: [], code: EXIT.ok },
  "log seek": { args: ["nothing", "--to", "now"], code: EXIT.notFound },
  "log reset": { args: ["nothing"], code: EXIT.notFound },
  "pipeline forget": { args: [PIPELINE, "--dry-run"], code: EXIT.ok },
  doctor: { args: [], code: EXIT.unhealthy },
  grants: { args: ["relay"], code: EXIT.ok },
  smoke: { args: ["--table", "orders.outbox", "--timeout", "1s"], code: EXIT.usage },
  completion: { args: ["bash"], code: EXIT.usage },
  "events list": { args: [], code: EXIT.ok },
  "events export": { args: [], code: EXIT.ok },
  "events show": { args: ["nothing"], code: EXIT.notFound },
  "events tail": { args: ["--since", "nonsense"], code: EXIT.usage },
  "dlq list": { args: [], code: EXIT.ok },
  "dlq groups": { args: [], code: EXIT.ok },
  "dlq show": { args: ["nothing"], code: EXIT.notFound },
  "dlq replay": { args: ["--all", "--yes"], code: EXIT.notFound },
  "dlq discard": { args: ["--all"], code: EXIT.usage },
  "dlq edit": { args: ["nothing", "--payload-file", "missing", "--reason", "test"], code: EXIT.usage },
  "replay now": { args: ["--all"], code: EXIT.usage },
  "replay plan": { args: ["--all"], code: EXIT.notFound },
  "replay run": { args: [UNKNOWN_PLAN], code: EXIT.notFound },
  "replay list": { args: [], code: EXIT.ok },
  "replay show": { args: [UNKNOWN_PLAN], code: EXIT.notFound },
  "replay items": { args: [UNKNOWN_PLAN], code: EXIT.notFound },
  "replay pause": { args: [UNKNOWN_PLAN], code: EXIT.notFound },
  "replay cancel": { args: [UNKNOWN_PLAN], code: EXIT.notFound },
  "keys list": { args: [], code: EXIT.ok },
  "keys retry": { args: [PIPELINE, "a"], code: EXIT.notFound },
  "keys skip": { args: [PIPELINE, "a", "--reason", "test"], code: EXIT.notFound },
  "keys resume": { args: [PIPELINE, "a"], code: EXIT.notFound },
  "keys discard": { args: [PIPELINE, "a", "b"], code: EXIT.usage },
  "requests list": { args: [], code: EXIT.usage },
  "requests seek": { args: ["a.b", "--to", "now"], code: EXIT.usage },
  "requests dead": { args: ["a.b"], code: EXIT.usage },
  "requests replay": { args: ["a.b"], code: EXIT.usage },
  "requests discard": { args: ["a.b", "1"], code: EXIT.usage },
  "dynamodb run": { args: [], code: EXIT.usage },
  "dynamodb create": { args: ["--set", "DYNAMODB_TABLE="], code: EXIT.usage },
  "dynamodb list": { args: ["--limit", "0"], code: EXIT.usage },
  "dynamodb recover": { args: [], code: EXIT.usage },
  "dynamodb dlq list": { args: ["--limit", "0"], code: EXIT.usage },
  "dynamodb dlq replay": { args: [], code: EXIT.usage },
  "config print": { args: [], code: EXIT.ok },
  "config validate": { args: [], code: EXIT.ok },
  "config schema": { args: [], code: EXIT.ok },
  init: { args: [], code: EXIT.ok },
  dev: { args: [], code: EXIT.usage },
};

const leavesOf = (command: Command, path: string): string[] =>
  command.commands.length === 0
    ? [path]
    : command.commands
        .filter((child) => child.name() !== "help")
        .flatMap((child) => leavesOf(child, `${path} ${child.name()}`.trim()));

const scratch = createScratch("command-output", "memory");
let server: PostgresServer;
let stage: Stage;
let caller: ChildProcess;
let env: Record<string, string> = {};

before(async () => {
  server = await startPostgres({ version: 18 });
  stage = await openStage(server, { database: "command_output", tables: [ORDERS] });
  env = { DATABASE_URL: stage.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: "stdout:" };
  const here = { cwd: scratch.path, env: { ...OF_THE_RUN, PATH: process.env.PATH, ...env } };
  caller = fork(join(import.meta.dirname, "command-caller.ts"), [scratch.mark], here);
});
after(async () => {
  caller.kill();
  await server[Symbol.asyncDispose]();
  await scratch.remove();
});

async function call(args: readonly string[]): Promise<Told> {
  caller.send(args);
  const [told] = (await once(caller, "message")) as [Told];
  return told;
}

interface JsonError {
  readonly error: { readonly code: string; readonly message: string; readonly exitCode: number };
}

describe("the output of every command", () => {
  test("G6 run --once tells its end as JSON", async () => {
    const { code, stderr } = await runCommand(["run", "--once", "--migrate", "-o", "json"], env);
    assert.equal(code, EXIT.ok, stderr);
    // Beside it is the log: the standard output belongs to the events.
    const lines = stderr.trim().split("\n");
    assert.deepEqual(JSON.parse(lines.find((line) => line.includes("exitCode")) ?? ""), {
      exitCode: 0,
      result: "0 events delivered",
    });
  });

  test("G6 the calls below are all commands that there are", () => {
    assert.deepEqual(
      leavesOf(
        commands(() => {}),
        "",
      ).sort(),
      Object.keys(CALLS).sort(),
    );
  });

  for (const [path, { args, code: expected }] of Object.entries(CALLS)) {
    test(`G6 ${path} -o json is JSON and nothing else, errors too`, async () => {
      const { code, stderr, stdout } = await call([...path.split(" "), ...args, "-o", "json"]);
      assert.equal(code, expected, stdout + stderr);
      if (stderr === "") {
        assert.equal(typeof JSON.parse(stdout), "object");
        return;
      }
      assert.equal(stdout, "");
      const { error } = JSON.parse(stderr) as JsonError;
      assert.equal(error.exitCode, code);
      assert.match(error.code, /^[A-Z][A-Z_]+$/);
      assert.notEqual(error.message, "");
    });
  }
});

test("A14 grants, doctor and config validate work before a destination is set", async () => {
  const { OUTBOX_DESTINATION: _, ...without } = env;
  const codes = { "config validate": EXIT.ok, "grants relay": EXIT.ok, doctor: EXIT.unhealthy };
  for (const [line, expected] of Object.entries(codes)) {
    const { code, stderr, stdout } = await runCommand([...line.split(" "), "-o", "json"], without);
    assert.equal(code, expected, stderr);
    assert.equal(typeof JSON.parse(stdout), "object");
  }
});

test("H1 top asks running relays how long their destinations take to answer, and names those that say nothing", async () => {
  await using service = startService(["run"], { ...env, PORT: String(await freePort()) });
  await service.becomes("healthy");
  const url = String((await service.logged("listening", ({ message }) => message === "listening")).address);
  await stage.sql("insert into orders.outbox (aggregate_id, event_type, payload) values ('k', 'order.placed', '{}')");
  await until("the event is delivered", () => service.stdout().includes("order.placed"));
  const dead = `http://127.0.0.1:${await freePort()}`;
  const top = async () => {
    const { code, stderr, stdout } = await runCommand(["top", "-o", "json", "--url", url, dead], env);
    assert.equal(code, EXIT.ok, stderr);
    return JSON.parse(stdout) as AnswerTimes;
  };
  const told = ({ destinations }: AnswerTimes) =>
    destinations.map(({ answers, destination }) => [destination, answers.lastFiveMinutes.requests, answers.slow]);
  await untilEqual("the answer is counted", async () => told(await top()), [["stdout", 1, null]]);
  const { destinations, problems } = await top();
  assert.equal(typeof destinations[0]?.answers.lastFiveMinutes.p99Ms, "number");
  assert.match(problems.join(), new RegExp(`No answer times from the relay at ${new URL(dead).host}`));
});

describe("errors", () => {
  const faults = [
    ["an unknown command", ["nonsense"], "USAGE"],
    ["an unknown option", ["status", "--nonsense"], "USAGE"],
    ["a missing argument", ["grants"], "USAGE"],
    ["a command that is only begun", ["dlq"], "USAGE"],
    ["a setting that cannot be used", ["status", "--set", "DATABASE_URL=nonsense"], "CONFIG_INVALID"],
    ["something that is not there", ["dlq", "show", "nothing"], "NOT_FOUND"],
  ] as const;
  for (const [what, args, code] of faults) {
    test(`G6 ${what} is told with the prefix, or as JSON with a code`, async () => {
      const asText = await call(args);
      assert.match(asText.stderr, /^outbox-relay: /m);
      assert.doesNotMatch(asText.stderr, /^error:/m);
      const asJson = await call([...args, "-o", "json"]);
      assert.equal(asJson.code, asText.code);
      assert.equal((JSON.parse(asJson.stderr) as JsonError).error.code, code);
    });
  }

  test("G6 what has no JSON says so", async () => {
    for (const args of [["dev"], ["completion", "bash"]]) {
      const { stderr } = await call([...args, "-o", "json"]);
      assert.match((JSON.parse(stderr) as JsonError).error.message, /has no JSON output: omit -o json/);
    }
  });
});

/** Shown by a terminal, whatever the exit code. */
async function inTerminal(args: string, more: Readonly<Record<string, string>>): Promise<string> {
  const line = `${process.execPath} ${COMMAND} ${args}`;
  const options = { env: { PATH: process.env.PATH, TERM: "xterm-256color", ...more } };
  const { stdout } = await promisify(execFile)("script", ["-qc", line, "/dev/null"], options);
  return stdout;
}

describe("colours", () => {
  const hasColours = (text: string) => text.includes("\u001b[");

  test("G6 there are none in a pipe, but where FORCE_COLOR asks for them; NO_COLOR forbids them", async () => {
    for (const args of [["migrate", "status"], ["status"], ["dlq", "show", "nothing"]]) {
      const { stderr, stdout } = await runCommand(args, env);
      assert.equal(hasColours(stdout + stderr), false);
    }
    const forced = await runCommand(["dlq", "show", "nothing"], { ...env, FORCE_COLOR: "1" });
    assert.equal(forced.stderr.startsWith("\u001b[31moutbox-relay:\u001b[39m no dead letter with id"), true);
    const table = await runCommand(["lanes", "list"], { ...env, FORCE_COLOR: "1" });
    assert.equal(table.stdout.startsWith("\u001b[2mPIPELINE"), true, table.stdout);
    const json = await runCommand(["status", "-o", "json"], { ...env, FORCE_COLOR: "1" });
    assert.equal(hasColours(json.stdout), false);
  });

  test("G6 a terminal gets colours, and with NO_COLOR none", async () => {
    const coloured = await inTerminal("dlq show nothing", env);
    assert.equal(hasColours(coloured), true);
    assert.equal(hasColours(await inTerminal("dlq show nothing", { ...env, NO_COLOR: "1" })), false);
  });
});
