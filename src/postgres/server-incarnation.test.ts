import assert from "node:assert/strict";
import { test } from "node:test";
import { startPostgres } from "../../test/servers/postgres.ts";
import { SERVER_INCARNATION } from "./server-incarnation.ts";

for (const version of [15, 18] as const) {
  test(`H1 a crash of PostgreSQL ${version} begins a new incarnation, a reset of statistics and a restart do not`, async () => {
    await using server = await startPostgres({ version });
    const incarnation = async () =>
      (await server.query<{ incarnation: string }>(`select ${SERVER_INCARNATION} as incarnation`)).rows[0]!.incarnation;
    const first = await incarnation();
    assert.match(first, /^\d+\.\d+$/);
    await server.query("select pg_stat_reset_shared('bgwriter'), pg_stat_reset()");
    assert.equal(await incarnation(), first);
    await server.stop();
    await server.restart();
    assert.equal(await incarnation(), first);
    await server.kill();
    await server.restart();
    assert.notEqual(await incarnation(), first);
  });
}
