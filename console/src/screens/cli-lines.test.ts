import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { editLine, eventsListLine, eventsTailLine, keyLine, lettersLine, planLine, planVerbLine } from "./cli-lines.ts";

const HOSTILE = `'; touch /tmp/x #"$(id)\`id\` \\ \n *`;

/** The arguments that a program gets when a shell runs the line. */
function wordsOf(line: string): string[] {
  const program = `show() { printf '%s\\0' "$@"; }; ${line.replace(/^outbox-relay/, "show")}`;
  return execFileSync("/bin/sh", ["-c", program], { encoding: "utf8" }).split("\0").slice(0, -1);
}

test("G4 a shell parses a copied line as intended, whatever values it holds", () => {
  assert.deepEqual(wordsOf(eventsListLine(HOSTILE)), ["events", "list", HOSTILE]);
  assert.deepEqual(wordsOf(lettersLine("")), ["dlq", "list"]);
  assert.deepEqual(wordsOf(eventsTailLine("--all")), ["events", "tail", "--", "--all"]);
  assert.deepEqual(wordsOf(keyLine("skip", [{ pipeline: "a->b", key: "-1" }], HOSTILE)), [
    ...["keys", "skip", "--reason", HOSTILE, "--", "a->b", "-1"],
  ]);
  assert.deepEqual(wordsOf(editLine("a b", "shop.outbox", "")), [
    ...["dlq", "edit", "--source", "shop.outbox", "--payload-file", "payload", "--reason", "why", "a b"],
  ]);
  assert.deepEqual(wordsOf(planVerbLine("run", "7d9f", "why not")), ["replay", "run", "--reason", "why not", "7d9f"]);
});

test("G4 the line of a plan selects exactly what the button selects", () => {
  const wish = { action: "discard", subject: "dead", q: "source:shop.outbox", ids: ["a b", "c"] } as const;
  assert.deepEqual(wordsOf(planLine(wish, "", "")), [
    ...["replay", "plan", "--discard", "--reason", "why", 'id:"a b" id:c source:shop.outbox'],
  ]);
  const again = { action: "replay", subject: "delivered", q: "since:1d", pipeline: "p" } as const;
  assert.deepEqual(wordsOf(planLine(again, "lost", "50")), [
    ...["replay", "plan", "--delivered", "--pipeline", "p", "--rate", "50", "--reason", "lost", "since:1d"],
  ]);
});
