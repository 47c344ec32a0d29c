import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startPostgres } from "../../../test/servers/postgres.ts";
import { managedTableSql } from "./managed-table.sql.ts";

const recipe = readFileSync(join(import.meta.dirname, "../../../docs/recipes/managed-outbox.md"), "utf8");
const blocks = (language: string) =>
  [...recipe.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map((match) => match[1] ?? "");

test("F5 D9 the statements of the recipe's other languages are understood by the server", async () => {
  await using server = await startPostgres({ version: 18 });
  const table = { schema: "shop", table: "outbox" };
  await server.query(managedTableSql({ table, payload: "text", partition: "1 day", wakeUp: false }));
  const calls = ["python", "go", "java"].flatMap((language) => {
    const [call] = /select shop\.outbox_publish\([^"]+\)/.exec(blocks(language)[0] ?? "") ?? [];
    assert.ok(call, language);
    let place = 0;
    const nextPlace = () => {
      place += 1;
      return `$${place}`;
    };
    return [call.replaceAll(/%s|\?/g, nextPlace)];
  });
  for (const call of calls) await server.query(call, ["4711", "{}"]);
  const { rows } = await server.query("select event_key, payload from shop.outbox");
  assert.deepEqual(
    rows,
    Array.from(calls, () => ({ event_key: "4711", payload: "{}" })),
  );
});
