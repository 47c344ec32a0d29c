import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { stringify } from "yaml";
import { z } from "zod";
import { type ConfigSources, loadConfig } from "./load-config.ts";
import { ConfigProblems } from "./reading/config-problems.ts";
import { configSchema } from "./reading/config-schema.ts";
import { starterConfig } from "./reading/starter-config.ts";
import { settingsDocuments } from "./settings/reference.ts";
import { SETTING_NAMES, type SettingName, settingOf } from "./settings/settings.ts";
import { valueTypeOf } from "./settings/value-types.ts";

const RUNS = 150;
const PEM = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----";

/** Values as a file holds them, for forms that the schema alone cannot generate. */
const DRAWN: { readonly [Name in SettingName]?: fc.Arbitrary<unknown> } = {
  DATABASE_URL: fc.constantFrom("postgres://me:p%40w@db:5433/shop", "postgres://db/shop?sslmode=require", "nonsense"),
  OUTBOX_DESTINATION: fc.constantFrom("stdout:", "kafka://k:9092", "amqp://u:p@h"),
  OUTBOX_TABLE: fc.constantFrom("a.outbox", "outbox", "a.b.c"),
  OUTBOX_COLUMNS: fc.constantFrom({ id: "No" }, { id: "a,b", flags: "x+y" }, { idd: "No" }),
  TOPIC_TEMPLATE: fc.constantFrom("outbox.{type}", `\${type}`, `$\${x}`, "{typ}"),
  LOKI_HOST: fc.constantFrom("http://u:p@loki:3100", "loki"),
};

function valuesOf(name: SettingName): fc.Arbitrary<unknown> {
  const own = DRAWN[name];
  if (own !== undefined) return own;
  const { form, json } = valueTypeOf(settingOf(name).type);
  const {
    minimum,
    maximum,
    enum: words,
  } = ((json.anyOf as object[] | undefined)?.[0] ?? json) as {
    minimum?: number;
    maximum?: number;
    enum?: string[];
  };
  if (words !== undefined) return fc.constantFrom(...words, "nonsense");
  switch (form) {
    case "number":
      return fc.integer({ min: (minimum ?? 0) - 1, max: maximum ?? 10 });
    case "duration":
      return fc.oneof(
        fc.integer({ min: 1, max: 100_000 }),
        fc.constantFrom("500ms", "3m", "1h30m", "1.5s", "5 parsecs"),
      );
    case "flag":
      return fc.boolean();
    case "list":
      return fc.array(fc.stringMatching(/^[a-z]{1,5}(:\d{1,4})?$/), { minLength: 1, maxLength: 3 });
    case "pairs":
      return fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.stringMatching(/^[a-z ,={}]{1,9}$/), { minKeys: 1 });
    default:
      return name.startsWith("KAFKA_SSL_") ? fc.constant(PEM) : fc.stringMatching(/^[a-z${}#:'"\\ -]{1,12}$/);
  }
}

/** As written in the environment or a flag. */
function textOf(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** As written in a file, where `${` has a meaning. */
function inFile(values: Readonly<Record<string, unknown>>): object {
  const escaped = (value: unknown): unknown => {
    if (typeof value === "string") return value.replaceAll("${", () => "$${");
    if (Array.isArray(value)) return value.map(escaped);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, escaped(item)]));
  };
  const root: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(values)) {
    const keys = settingOf(name as SettingName).path.split(".");
    const leaf = keys.pop()!;
    const group = keys.reduce<Record<string, unknown>>((above, key) => {
      above[key] ??= {};
      return above[key] as Record<string, unknown>;
    }, root);
    group[leaf] = escaped(value);
  }
  return root;
}

/** The whole configuration, or all problems, without the names of the origins. */
async function outcomeOf(sources: Partial<ConfigSources>): Promise<unknown> {
  try {
    const { config } = await loadConfig({ env: {}, cwd: "/", ...sources });
    return JSON.parse(JSON.stringify(config, (_key, value) => (typeof value === "function" ? String(value) : value)));
  } catch (error) {
    assert.ok(error instanceof ConfigProblems, String(error));
    return error.problems.map(withoutPlaces).toSorted();
  }
}

function withoutPlaces(problem: string): string {
  const byPath = SETTING_NAMES.toSorted((a, b) => settingOf(b).path.length - settingOf(a).path.length);
  let plain = problem.replaceAll(/ in \S+\.(?:yaml|json)(?::\d+)?/g, "").replaceAll("--set ", "");
  for (const name of SETTING_NAMES) plain = plain.replaceAll(`${name} (${settingOf(name).path})`, name);
  for (const name of byPath)
    plain = plain.replace(new RegExp(`^${settingOf(name).path.replaceAll(".", "\\.")}\\b`), name);
  return plain;
}

test("A14 G2 file, environment and flags give the same configuration, or the same problems", async () => {
  const folder = mkdtempSync(join(tmpdir(), "outbox-relay-same-"));
  const some = fc.record(Object.fromEntries(SETTING_NAMES.map((name) => [name, valuesOf(name)])), { requiredKeys: [] });
  const complete = { DATABASE_URL: "postgres://me:pw@db/d", OUTBOX_SCHEMAS: ["a"], OUTBOX_DESTINATION: "stdout:" };
  const names = fc.subarray(SETTING_NAMES, { maxLength: 6 });
  let usable = 0;
  try {
    const rule = fc.asyncProperty(some, names, fc.boolean(), async (drawn, chosen, isComplete) => {
      const few = Object.fromEntries(chosen.filter((name) => name in drawn).map((name) => [name, drawn[name]]));
      const values: Record<string, unknown> = isComplete ? { ...complete, ...few } : few;
      const texts = Object.entries(values).map(([name, value]) => [name, textOf(value)] as const);
      const expected = await outcomeOf({ env: Object.fromEntries(texts) });
      if (!Array.isArray(expected)) usable += 1;
      writeFileSync(join(folder, "c.yaml"), stringify({ ...inFile(values), $schema: "x" }));
      writeFileSync(join(folder, "c.json"), JSON.stringify({ ...inFile(values), $schema: "x" }));
      const byPath = texts.map(([name, text]) => `${settingOf(name as SettingName).path}=${text}`);
      assert.deepEqual(await outcomeOf({ flags: texts.map(([name, text]) => `${name}=${text}`) }), expected);
      assert.deepEqual(await outcomeOf({ flags: byPath }), expected);
      assert.deepEqual(await outcomeOf({ cwd: folder, file: "c.yaml" }), expected);
      assert.deepEqual(await outcomeOf({ cwd: folder, file: "c.json" }), expected);
    });
    await fc.assert(rule, { numRuns: RUNS });
    assert.ok(usable > RUNS / 10, `only ${usable} of them could be used at all`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("A14 the JSON Schema accepts what the file accepts, and rejects a typo and a wrong type", () => {
  const schema = z.fromJSONSchema(configSchema() as Parameters<typeof z.fromJSONSchema>[0]);
  const takes = (file: unknown) => schema.safeParse(file).success;
  assert.ok(takes(JSON.parse(starterConfig("json").text)));
  assert.ok(
    takes({ http: { port: 3012 }, sources: { schemas: ["a"], pollInterval: "500ms" }, topics: { create: true } }),
  );
  assert.ok(takes({ http: { port: `\${PORT:-3012}` }, database: { passwordFile: "/run/pw" } }));
  assert.ok(!takes({ http: { prot: 3012 } }));
  assert.ok(!takes({ http: { port: 70_000 } }));
  assert.ok(!takes({ topics: { create: "maybe" } }));
  assert.ok(!takes({ retry: { onExhausted: "parc" } }));
  assert.ok(!takes({ http: { portFile: "/x" } }));
});

test("A14 the documents contain every setting", () => {
  const documents = settingsDocuments();
  for (const name of SETTING_NAMES) {
    for (const file of [".env.example", "docs/reference/settings.md", "docs/reference/config.schema.json"]) {
      assert.ok(new RegExp(`\\b${name}\\b`).test(documents[file] ?? ""), `${name} in ${file}`);
    }
  }
});

test("A14 the file that init writes works unchanged, in every format", async () => {
  const folder = mkdtempSync(join(tmpdir(), "outbox-relay-starter-"));
  try {
    for (const format of ["yaml", "json", "ts"] as const) {
      const { file, text } = starterConfig(format);
      const local = JSON.stringify(join(import.meta.dirname, "reading", "define-config.ts"));
      writeFileSync(join(folder, file), text.replace('"outbox-relay"', local));
      const { config } = await loadConfig({ env: {}, cwd: folder });
      assert.deepEqual([config.sources.schemas, config.destinations[0]!.kind], ["*", "stdout"]);
      assert.equal(config.database.url, "postgres://localhost:5432/postgres");
      rmSync(join(folder, file));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
