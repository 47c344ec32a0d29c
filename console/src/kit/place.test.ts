import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { matchPath, parsePlace, placeHash, segment } from "./place.ts";

test("G4 an address holds the screen and all of its state", () => {
  assert.deepEqual(parsePlace("#/events?q=state:dead&cursor=a%2Fb"), {
    path: "/events",
    query: { q: "state:dead", cursor: "a/b" },
  });
  assert.deepEqual(parsePlace(""), { path: "/", query: {} });
  assert.deepEqual(parsePlace("#events/"), { path: "/events", query: {} });
  assert.equal(
    placeHash("/events", { q: "state:dead", cursor: null, limit: 50, tail: false }),
    "#/events?q=state:dead&limit=50",
  );
});

test("G4 ids, keys and filters survive the address, whatever characters they hold", () => {
  const text = fc.string({ unit: "binary", minLength: 1 }).filter((it) => it.isWellFormed());
  fc.assert(
    fc.property(text, text, (id, q) => {
      const { path, query } = parsePlace(placeHash(`/events/${segment(id)}`, { q }));
      assert.deepEqual(matchPath("/events/:id", path), { id });
      assert.equal(query.q, q);
    }),
  );
});

test("G4 a path matches only its own pattern", () => {
  assert.deepEqual(matchPath("/replays/:id", "/replays/4%252"), { id: "4%2" });
  assert.equal(matchPath("/replays/:id", "/replays"), null);
  assert.equal(matchPath("/replays", "/audit"), null);
  assert.deepEqual(matchPath("/replays/:id", "/replays/100%"), { id: "100%" });
});
