import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { command, flag } from "./command.ts";

test("G4 a copied command does what the button does, whatever characters a name holds", () => {
  assert.equal(
    command("pause", "shop.outbox", ...flag("reason", "it's slow"), ...flag("by", "")),
    "outbox-relay pause shop.outbox --reason 'it'\\''s slow'",
  );
  for (const name of ["$(reboot)", "`id`", "a b", "';--", "a\nb", "-x", "*", "shop.outbox->kafka"]) {
    const line = command(name).replace("outbox-relay ", "printf %s ");
    // printf, not the shell, would read a name that begins with a dash as an option.
    if (name !== "-x") assert.equal(execFileSync("sh", ["-c", line], { encoding: "utf8" }), name);
  }
});
