import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { askNasty, type FuzzStage, fuzzApi, fuzzStage, requireSound } from "./fuzz-stage.ts";
import { serverOfFile } from "./service-stage.ts";

const server = serverOfFile();

describe("an API that is asked anything", () => {
  let stage: FuzzStage;
  before(async () => {
    stage = await fuzzStage(server());
  });
  after(() => stage?.[Symbol.asyncDispose]());

  test("G4 A21 everything that the OpenAPI document allows and forbids is answered as it says, never by an error of the server", async () => {
    assert.equal(await fuzzApi(stage, { seed: 1, examples: 2, phases: "fuzzing", timeoutMs: 80_000 }), "");
    await requireSound(stage);
  });

  test("G4 SQL, script, NUL and nonsense in every field of every operation: refused or not found, never an error", async () => {
    const { asked, broken } = await askNasty(stage);
    assert.ok(asked > 1_000);
    assert.deepEqual(broken, []);
    await requireSound(stage);
  });
});
