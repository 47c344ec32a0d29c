import assert from "node:assert/strict";
import { test } from "node:test";
import { dropView, savedViews, saveView } from "./saved-views.ts";
import { readViews } from "./stored-views.ts";

test("F3 the newest fifty views are kept by name, and addresses outside of the console are dropped", () => {
  saveView({ name: "dead orders", hash: "#/events?q=state:dead" });
  saveView({ name: "dead orders", hash: "#/events?q=state:dead+type:order.*" });
  assert.deepEqual(savedViews.get(), [{ name: "dead orders", hash: "#/events?q=state:dead+type:order.*" }]);
  for (let n = 0; n < 60; n += 1) saveView({ name: `view ${n}`, hash: "#/keys" });
  assert.equal(savedViews.get().length, 50);
  dropView("view 59");
  assert.equal(savedViews.get().at(-1)?.name, "view 58");
  const stored = [
    { name: "a", hash: "javascript:alert(1)" },
    { name: "", hash: "#/" },
    null,
    7,
    { name: "b", hash: "#/" },
  ];
  assert.deepEqual(readViews(JSON.stringify(stored)), [{ name: "b", hash: "#/" }]);
  for (const text of [null, "", "{", "7", "null"]) assert.deepEqual(readViews(text), []);
});
