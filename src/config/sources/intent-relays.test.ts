import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { ConfigProblems } from "../reading/config-problems.ts";
import { loadIntentRelays } from "./intent-relays.ts";

let place: string;
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "outbox-relay-intents-"));
  mkdirSync(join(place, "relays"));
});
afterEach(() => rmSync(place, { recursive: true }));

const write = (file: string, text: string) => writeFileSync(join(place, "relays", file), text);

function writeRelay(file: string, type: string, target = '{ url: "stdout:" }'): void {
  write(file, `export default { type: "${type}", target: ${target}, translate: () => ({ body: {} }) };\n`);
}

async function problemsOf(named?: string): Promise<readonly string[]> {
  try {
    await loadIntentRelays(named, [place]);
  } catch (error) {
    assert.ok(error instanceof ConfigProblems);
    return error.problems;
  }
  return assert.fail("the relays were accepted");
}

test("D1 every <intent>-relay file of the folder is a relay; tests and other files are not", async () => {
  writeRelay("notify-user-relay.ts", "NotifyUser");
  writeRelay("sync_payroll-relay.mjs", "SyncPayroll");
  for (const file of ["notify-user-relay.test.ts", "notify-user-relay.d.ts", "money.ts", "README.md"]) {
    write(file, "throw new Error('it was loaded');");
  }
  const found = await loadIntentRelays(undefined, [join(place, "nowhere"), place]);
  assert.deepEqual(
    found.map(({ name, file, relay }) => [name, file, relay.type]),
    [
      ["notify-user", "relays/notify-user-relay.ts", "NotifyUser"],
      ["sync_payroll", "relays/sync_payroll-relay.mjs", "SyncPayroll"],
    ],
  );
});

test("D1 a folder relays without intent relays is ignored; one that the settings name must contain some", async () => {
  write("money.ts", "");
  assert.deepEqual(await loadIntentRelays(undefined, [place]), []);
  assert.deepEqual(await problemsOf("relays"), ["OUTBOX_INTENTS: relays contains no file <intent>-relay.ts"]);
  assert.match((await problemsOf("elsewhere")).join(), /^OUTBOX_INTENTS: elsewhere is not a folder$/);
});

test("D1 two relays for one type, or under one name, are an error that names both files", async () => {
  writeRelay("notify-relay.ts", "Notify");
  writeRelay("tell-relay.ts", "Notify");
  assert.deepEqual(await problemsOf(), [
    'relays/notify-relay.ts and relays/tell-relay.ts both relay "Notify": keep one of them',
  ]);
  writeRelay("tell-relay.ts", "Tell");
  writeRelay("tell-relay.js", "TellAll");
  assert.deepEqual(await problemsOf(), [
    "relays/tell-relay.js and relays/tell-relay.ts are both named tell: rename one of them",
  ]);
});

test("D1 all problems are reported at once, each with its file", async () => {
  writeRelay("good-relay.ts", "Good");
  writeRelay("NotifyUser_Relay.ts", "NotifyUser");
  writeRelay("all-relay.ts", "*");
  write("empty-relay.ts", "export const relay = 1;\n");
  write("broken-relay.ts", "export default {\n");
  write("throwing-relay.ts", "throw new Error('no such variable');\n");
  writeRelay("unset-relay.ts", "Unset", "{ url: process.env.NO_SUCH_VARIABLE_AT_ALL }");
  const problems = await problemsOf();
  assert.equal(problems.length, 6, problems.join("\n"));
  const all = problems.join("\n");
  for (const expected of [
    /^relays\/NotifyUser_Relay\.ts is not a valid name of an intent relay: rename it to notify-user-relay\.ts$/m,
    /^relays\/all-relay\.ts: The type "\*" of an intent relay is a pattern/m,
    /^relays\/empty-relay\.ts: it has no default export: write export default defineIntentRelay/m,
    /^relays\/broken-relay\.ts: /m,
    /^relays\/throwing-relay\.ts: no such variable$/m,
    /^relays\/unset-relay\.ts: The relay of "Unset" needs one target.*is an environment variable empty/m,
  ]) {
    assert.match(all, expected);
  }
});

test("a changed relay is loaded again", async () => {
  writeRelay("a-relay.ts", "A");
  assert.equal((await loadIntentRelays(undefined, [place]))[0]?.relay.type, "A");
  writeRelay("a-relay.ts", "B");
  assert.equal((await loadIntentRelays(undefined, [place]))[0]?.relay.type, "B");
});
