import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { shownPayload } from "./event-payload.ts";
import { requireUnredacted, shownRules, shownTo } from "./redact-shown.ts";

const shownText = (text: string, ...patterns: string[]) => {
  const bytes = Buffer.from(text);
  return shownRules(patterns).payload(shownPayload(bytes, bytes.length)).text;
};

test("A20 values of hidden fields are replaced, and no other character changes", () => {
  const cases: readonly (readonly [string, string[], string])[] = [
    ['{"n": 9007199254740993, "password" : "x"}', ["password"], '{"n": 9007199254740993, "password" : "[redacted]"}'],
    ['{"a":{"password":{"deep":[1,{"b":"}"}]}},"c":1.10}', ["password"], '{"a":{"password":"[redacted]"},"c":1.10}'],
    [
      '[{"card":{"number":4111,"cvc":"1\\"2"},"x":1}]',
      ["card.*"],
      '[{"card":{"number":"[redacted]","cvc":"[redacted]"},"x":1}]',
    ],
    ['{"number":1,"card":{"number":2}}', ["card.number"], '{"number":1,"card":{"number":"[redacted]"}}'],
    [
      '{"cards":[{"number":2},{"number":3}]}',
      ["cards.number"],
      '{"cards":[{"number":"[redacted]"},{"number":"[redacted]"}]}',
    ],
    ['{"Access_Token":true,"t":null}', ["*token*"], '{"Access_Token":"[redacted]","t":null}'],
    ['{"pass\\u0077ord":-1e5,"y":2}', ["password"], '{"pass\\u0077ord":"[redacted]","y":2}'],
    ['{"a":"password","b":["password"]}', ["password"], '{"a":"password","b":["password"]}'],
    ['{"password":"cut in the mid', ["password"], '{"password":"[redacted]"'],
    ['{"password":', ["password"], '{"password":"[redacted]"'],
    ["password=hunter2", ["password"], "password=hunter2"],
    ['{"a.b":1,"axb":2}', ["a.b"], '{"a.b":1,"axb":2}'],
    ['{"a+b":1}', ["a+b"], '{"a+b":"[redacted]"}'],
  ];
  for (const [text, patterns, expected] of cases) assert.equal(shownText(text, ...patterns), expected);
});

test("A20 whatever the JSON, a hidden value is gone, the rest is the same JSON, and nothing throws", () => {
  const json = fc.json().chain((text) => fc.constantFrom(text, `{"x":[${text}],"secret":${text},"y":${text}}`));
  fc.assert(
    fc.property(json, fc.nat(200), (text, cut) => {
      const shown = shownText(text, "secret");
      const expected = JSON.stringify(JSON.parse(text), (key, value: unknown) =>
        /^secret$/i.test(key) ? "[redacted]" : value,
      );
      assert.equal(JSON.stringify(JSON.parse(shown)), expected);
      assert.equal(shownText(text, "no such field"), text);
      shownText(text.slice(0, cut), "secret", "*");
    }),
  );
});

test("A20 headers are hidden by their name, and the payload without the right to see it", () => {
  const payload = { encoding: "utf-8", text: '{"a":1}', bytes: 7, isTruncated: false } as const;
  const item = { id: "1", headers: { "X-Auth-Token": "t", tenant: "7" }, payload };
  const seen = shownTo(item, shownRules(["x-auth-*", "a"]));
  assert.deepEqual(seen.headers, { "X-Auth-Token": "[redacted]", tenant: "7" });
  assert.equal(seen.payload?.text, '{"a":"[redacted]"}');
  assert.equal(shownTo(item, undefined, false).payload, null);
  assert.deepEqual(shownTo(item), item);
});

test("A20 a redacted text is never stored in place of the value", () => {
  const rules = shownRules(["password"]);
  const [whole, hidden] = ['{"password":"x"}', '{"password":"[redacted]"}'].map((text) => Buffer.from(text));
  requireUnredacted(rules, whole!, { tenant: "7" });
  requireUnredacted(undefined, hidden!);
  assert.throws(() => requireUnredacted(rules, hidden!), /REDACT hides/);
  assert.throws(() => requireUnredacted(rules, whole!, { password: "[redacted]" }), /REDACT hides/);
});
