import assert from "node:assert/strict";
import { test } from "node:test";
import { isRelayError } from "../../core/errors.ts";
import type { ColumnInfo, ColumnNames } from "../../postgres/column-names.ts";
import { laneSql } from "./event-columns.ts";
import { shapeOf, type TableShape } from "./table-shape.ts";

const TYPES: Readonly<Record<string, string>> = {
  timestamptz: "timestamp with time zone",
  timestamp: "timestamp without time zone",
  varchar: "character varying",
  int: "integer",
  bool: "boolean",
};

/** `id:uuid`, `id:bigint!` for a sequence, `last_error:varchar(10)`. */
function columns(text: string): ColumnInfo[] {
  return text.split(" ").map((part) => {
    const [, name, base, modifier = "", sequence = ""] = /^(.+?):(\w+)(\(\d+\))?(!)?$/.exec(part)!;
    const type = TYPES[base!] ?? base!;
    const isSequence = sequence === "!";
    return { name: name!, type: type + modifier, castType: type, baseType: type, isEnum: base === "mood", isSequence };
  });
}

function shape(text: string, names: ColumnNames = {}, indexes: readonly string[] = []): TableShape {
  return shapeOf({ name: { schema: "app", table: "outbox" }, columns: columns(text), indexes }, names);
}

const USUAL =
  "id:uuid aggregate_id:uuid event_type:varchar(100) payload:jsonb correlation_id:uuid created_at:timestamptz";
const INDEX = "CREATE INDEX i ON app.published USING btree (created_at) WHERE (published = false)";

test("A6 the usual table is discovered by its columns", () => {
  const usual = shape(`${USUAL} published_at:timestamptz published:bool`);
  assert.equal(usual.preset, "flag");
  assert.equal(usual.quotedName, '"app"."outbox"');
  assert.deepEqual([usual.id, usual.idType, usual.key], ['t."id"', "uuid", 't."aggregate_id"::text']);
  assert.deepEqual(usual.order, { column: 't."created_at"', unique: false, isCreatedAt: true });
  assert.deepEqual(usual.payload, { kind: "computed", column: 't."payload"', body: 't."payload"::text' });
});

for (const flag of ["published_at", "processed_at", "delivered_at", "dispatched_at"]) {
  test(`A6 ${flag} alone says what is published`, () => {
    const it = shape(`${USUAL} ${flag}:timestamptz`);
    assert.equal(it.unsettled, `(t."${flag}" is null)`);
    assert.equal(it.markDelivered, `"${flag}" = clock_timestamp()`);
    assert.deepEqual([it.main, it.conflicts], [it.unsettled, null]);
  });
}

test("A6 all flag columns are read together and set together", () => {
  const it = shape(`${USUAL} published:bool published_at:timestamptz processed_at:timestamp`);
  assert.equal(it.unsettled, '(t."published" is not true or t."published_at" is null or t."processed_at" is null)');
  assert.equal(
    it.markDelivered,
    '"published" = true, "published_at" = clock_timestamp(), "processed_at" = clock_timestamp()',
  );
  assert.equal(it.delivered, `not ${it.unsettled}`);
});

test("A6 where an index is made for one flag, it is used, and rows that only the others call unpublished are conflicts", () => {
  const it = shape(`${USUAL} published:bool published_at:timestamptz`, {}, [INDEX]);
  assert.equal(it.main, 't."published" = false');
  assert.equal(it.conflicts, `(t."published" = false) is not true and ${it.unsettled}`);
  const byTime = shape(`${USUAL} published:bool published_at:timestamptz`, {}, [
    "CREATE INDEX i ON app.outbox USING btree (created_at) WHERE (published_at IS NULL)",
  ]);
  assert.equal(byTime.main, 't."published_at" is null');
});

test("an index on a column with a longer name is none for the flag, nor is the table's own name", () => {
  const it = shape(`${USUAL} published:bool`, {}, [
    "CREATE INDEX published ON app.published USING btree (published_by, created_at)",
  ]);
  assert.equal(it.conflicts, null);
});

test("a partial index on the only flag, a timestamp, leaves no conflicts", () => {
  const it = shape(`${USUAL} published_at:timestamptz`, {}, ["CREATE INDEX i ON a.b USING btree (published_at)"]);
  assert.equal(it.conflicts, null);
});

test("A3 a configured column orders, else an identity or sequence, else the time of creation", () => {
  const text = `${USUAL} seq:bigint! sent:bigint published:bool`;
  assert.deepEqual(shape(text).order, { column: 't."seq"', unique: true, isCreatedAt: false });
  assert.deepEqual(shape(text, { order: "sent" }).order, { column: 't."sent"', unique: false, isCreatedAt: false });
  assert.deepEqual(shape(text, { order: "created_at" }).order.isCreatedAt, true);
  const serial = shape("id:bigint! type:text data:text published:bool");
  assert.deepEqual(serial.order, { column: 't."id"', unique: true, isCreatedAt: false });
});

test("A3 the column event_key is a key in every kind of table: without it there would be no order", () => {
  assert.match(
    shape("id:uuid event_type:text event_key:text payload:jsonb created_at:timestamptz published:bool").key,
    /"event_key"/,
  );
});

test("C1 a status with a next attempt is a worker's table", () => {
  const it = shape(
    "event_id:uuid event_name:text stream_id:text data:bytea status:text attempts:int next_attempt_at:timestamptz last_error:varchar(10) occurred_at:timestamptz dispatched_at:timestamptz",
  );
  assert.equal(it.preset, "worker");
  assert.equal(it.main, `t."status" = 'Pending'`);
  assert.match(it.available, /"next_attempt_at" <= now\(\)/);
  assert.match(it.markDelivered, /"status" = 'Dispatched', "dispatched_at" = clock_timestamp\(\)/);
  assert.match(it.markFailed ?? "", /'Failed'/);
  assert.match(it.markFailed ?? "", /interval '365 days'/);
  assert.match(it.markFailed ?? "", /"attempts" = least\(f\.attempts, 32767\)/);
  assert.match(it.markFailed ?? "", /"last_error" = f\.reason::character varying\(10\)/);
  assert.match(it.givenUp ?? "", /'Failed'/);
  assert.equal(it.payload.kind, "bytea");
});

test("C5 a worker's table without a key is read in its order by one lane, unless its key is said to be none", () => {
  const worker =
    "event_id:uuid event_name:text payload:jsonb status:text next_attempt_at:timestamptz occurred_at:timestamptz";
  assert.equal(laneSql(shape(worker), 4), "0");
  assert.match(laneSql(shape(worker, { key: null }), 4), /^mod\(/);
  assert.match(laneSql(shape(`${worker} aggregate_id:uuid`), 4), /^mod\(/);
  assert.match(
    laneSql(shape("id:uuid event_type:text payload:text created_at:timestamptz published:bool"), 4),
    /^mod\(/,
  );
});

test("C6 causation id and content type are headers of their own, after the trace", () => {
  const base = "id:uuid event_type:text payload:text created_at:timestamptz published:bool";
  assert.equal(shape(base).traceText, "null");
  const { traceText } = shape(`${base} causation_id:uuid content_type:text traceparent:text`);
  assert.match(traceText, /^split_part.*"traceparent".*, 1\) .*, 2\) .*"causation_id".*"content_type"/);
  assert.match(shape(`${base} causation_id:uuid`).traceText, /^chr\(10\) \|\| chr\(10\) .*"causation_id".* \|\| ''$/);
  assert.equal(shape(`${base} content_type:text`, { contentType: null }).traceText, "null");
  assert.equal(shape(`${base} content_type:int`).traceText, "null", "it means something else");
});

test("D3 an intent stands in for type and payload", () => {
  const it = shape(
    "id:uuid intent:jsonb created_at:timestamptz delivered_at:timestamptz attempt_count:int last_error:text",
  );
  assert.equal(it.preset, "intent");
  assert.match(it.eventType, /jsonb_typeof\(t\."intent"\)/);
  assert.equal(it.payload.body, 't."intent"::text');
  assert.equal(it.markFailed, '"attempt_count" = least(f.attempts, 32767), "last_error" = f.reason::text');
  assert.equal(it.attempts, 't."attempt_count"');
  assert.equal(it.key, "null::text");
});

test("an intent of text is its own type, and a type column wins over it", () => {
  assert.match(
    shape("id:uuid intent:text created_at:timestamptz delivered_at:timestamptz").eventType,
    /t\."intent"::text/,
  );
  const it = shape("id:uuid intent:json intent_type:text created_at:timestamptz delivered_at:timestamptz");
  assert.match(it.eventType, /t\."intent_type"::text/);
  assert.equal(it.payload.column, 't."intent"');
});

test("A6 custom names by configuration, quoted whatever they contain", () => {
  const it = shape('k"ey:uuid kind:text what:text at:timestamptz done:bool', {
    id: 'k"ey',
    type: "kind",
    payload: "what",
    createdAt: "at",
    flags: ["done"],
  });
  assert.equal(it.id, 't."k""ey"');
  assert.equal(it.unsettled, '(t."done" is not true)');
  assert.equal(it.payload.kind, "text");
});

test("null says that a table does not have what its column's name suggests", () => {
  const it = shape(`${USUAL} published:bool attempts:int`, { key: null, correlationId: null, attempts: null });
  assert.deepEqual([it.keyText, it.correlationText, it.attempts, it.markFailed], ["null", "null", "null", null]);
});

test("headers that are no JSON are passed over unless they are named", () => {
  assert.equal(shape(`${USUAL} published:bool metadata:text`).headersText, "null");
  assert.equal(shape(`${USUAL} published:bool headers:text metadata:jsonb`).headersText, 't."metadata"::text');
  assert.throws(
    () => shape(`${USUAL} published:bool notes:text`, { headers: "notes" }),
    (error) => isRelayError(error, "COLUMN_MISTYPED"),
  );
});

test("in a database without an encoding the payload travels as bytes", () => {
  const facts = { name: { schema: "app", table: "outbox" }, columns: columns(`${USUAL} published:bool`) };
  assert.equal(shapeOf({ ...facts, serverEncoding: "SQL_ASCII" }).payload.kind, "bytea");
  assert.equal(shapeOf({ ...facts, serverEncoding: "LATIN1" }).payload.kind, "computed");
});

const MISSING: readonly (readonly [what: string, text: string, names: ColumnNames, named: RegExp])[] = [
  ["id", "type:text payload:text created_at:timestamptz published:bool", {}, /id, event_id/],
  ["type", "id:uuid payload:text created_at:timestamptz published:bool", {}, /event_type, type/],
  ["payload", "id:uuid type:text created_at:timestamptz published:bool", {}, /payload, data/],
  ["order", "id:uuid type:text payload:text published:bool", {}, /an identity column, created_at/],
  ["flag", "id:uuid type:text payload:text created_at:timestamptz", {}, /published, published_at/],
  ["named column", `${USUAL} published:bool`, { key: "tenant" }, /tenant/],
  ["named flag", `${USUAL} published:bool`, { flags: ["sent"] }, /sent/],
];

for (const [what, text, names, named] of MISSING) {
  test(`A7 a missing ${what} is an error that names the table and what was looked for`, () => {
    assert.throws(
      () => shape(text, names),
      (error) =>
        isRelayError(error, "COLUMN_MISSING") && /app\.outbox/.test(error.message) && named.test(error.message),
    );
  });
}

const MISTYPED: readonly (readonly [text: string, named: RegExp])[] = [
  [`${USUAL} published:text`, /published.*is text, not boolean/],
  [`${USUAL} published_at:bool`, /published_at.*is boolean, not a timestamp/],
  ["id:uuid type:text payload:text created_at:text published:bool", /created_at.*is text, not a timestamp/],
];

for (const [text, named] of MISTYPED) {
  test(`A7 a column of the wrong type is an error that names it: ${named.source}`, () => {
    assert.throws(
      () => shape(text),
      (error) => isRelayError(error, "COLUMN_MISTYPED") && named.test(error.message),
    );
  });
}
