import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../test/servers/postgres.ts";
import { errorFormSql, fingerprintSql } from "../postgres/error-form.ts";
import { isId } from "./event-filter.ts";
import { shownPayload } from "./event-payload.ts";

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ version: 18 });
});
after(() => server[Symbol.asyncDispose]());

test("an id that a table's type cannot hold is nobody's, and no error of the database", () => {
  const uuid = "0198C7A0-0000-7000-8000-000000000001";
  const possible: [string, string][] = [
    ["uuid", uuid],
    ["smallint", "32767"],
    ["bigint", "-9223372036854775808"],
    ["bigint", "9223372036854775807"],
    ["text", "anything at all"],
  ];
  const impossible: [string, string][] = [
    ["uuid", "7"],
    ["uuid", `${uuid}0`],
    ["smallint", "32768"],
    ["integer", "2147483648"],
    ["bigint", "9223372036854775808"],
    ["bigint", "1.5"],
    ["bigint", ""],
    ["text", "a\0b"],
  ];
  for (const [type, text] of possible) assert.ok(isId(type, text), `${type} ${text}`);
  for (const [type, text] of impossible) assert.ok(!isId(type, text), `${type} ${text}`);
});

test("a payload is text where it is UTF-8, also when it is cut within a character, and else base64", () => {
  const text = '{"id": 9007199254740993, "name": "grün 😀"}\uFEFF\0';
  const bytes = Buffer.from(text);
  assert.deepEqual(shownPayload(bytes, bytes.length), {
    encoding: "utf-8",
    text,
    bytes: bytes.length,
    isTruncated: false,
  });
  const cut = shownPayload(Buffer.from("grün").subarray(0, 3), 5);
  assert.deepEqual([cut.encoding, cut.text, cut.isTruncated], ["utf-8", "gr", true]);
  const binary = Buffer.from([0xff, 0x00, 0x01]);
  assert.deepEqual(shownPayload(binary, 3), { encoding: "base64", text: "/wAB", bytes: 3, isTruncated: false });
  assert.equal(shownPayload(Buffer.from("grün").subarray(0, 3), 3).encoding, "base64", "a half character is no text");
});

test("F3 errors that differ in ids, numbers and quoted values alone have one fingerprint, others have their own", async () => {
  const alike = [
    `topic "orders" refused 12 bytes of event 0198c7a0-1111-7000-8000-000000000001 after 1.5 s`,
    `topic "payments" refused 9,100 bytes of event 0198c7a0-2222-7000-8000-00000000000f after 20 s`,
    `topic 'x' refused 7 bytes of event 0198C7A0-3333-7000-8000-00000000000F\n after 12:30 s`,
  ];
  const others = ["connection refused", "connection reset", "", "request deadbeef00 was lost"];
  const ask = async (expression: string) => {
    const texts: (string | undefined)[] = [];
    for (const reason of [...alike, ...others]) {
      const { rows } = await server.query<{ text: string }>(`select ${expression} as text`, [reason]);
      texts.push(rows[0]?.text);
    }
    return texts;
  };
  const forms = await ask(errorFormSql("$1::text"));
  assert.deepEqual(forms.slice(0, 3), Array(3).fill("topic <value> refused <n> bytes of event <uuid> after <n> s"));
  assert.equal(forms.at(-1), "request <hex> was lost");
  const prints = await ask(fingerprintSql("$1::text"));
  assert.equal(new Set(prints).size, 1 + others.length);
  assert.ok(prints.every((print) => /^[0-9a-f]{12}$/.test(print ?? "")));
});
