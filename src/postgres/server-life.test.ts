import assert from "node:assert/strict";
import { test } from "node:test";
import { startPostgres } from "../../test/servers/postgres.ts";
import { LIFE } from "./server-life.ts";

for (const version of [15, 18] as const) {
  test(`H1 a crash of PostgreSQL ${version} begins a new life, a reset of statistics and a restart do not`, async () => {
    await using server = await startPostgres({ version });
    const life = async () => (await server.query<{ life: string }>(`select ${LIFE} as life`)).rows[0]!.life;
    const first = await life();
    assert.match(first, /^\d+\.\d+$/);
    await server.query("select pg_stat_reset_shared('bgwriter'), pg_stat_reset()");
    assert.equal(await life(), first);
    await server.stop();
    await server.restart();
    assert.equal(await life(), first);
    await server.kill();
    await server.restart();
    assert.notEqual(await life(), first);
  });
}
