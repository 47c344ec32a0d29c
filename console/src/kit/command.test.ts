import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { command, flag } from "./command.ts";

test("G4 a copied command means what the button means, whatever is in a name", () => {
  assert.equal(
    command("pause", "shop.outbox", ...flag("reason", "it's slow"), ...flag("by", "")),
    "outbox-relay pause shop.outbox --reason 'it'\\''s slow'",
  );
  for (const name of ["$(reboot)", "`id`", "a b", "';--", "a\nb", "-x", "*", "shop.outbox->kafka"]) {
    const line = command(name).replace("outbox-relay ", "printf %s ");
    // A name that begins like an option is printf's to misread, not the shell's.
    if (name !== "-x") assert.equal(execFileSync("sh", ["-c", line], { encoding: "utf8" }), name);
  }
});
