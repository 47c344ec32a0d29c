// The long fuzz of the HTTP API: `npm run fuzz:api`, with `-- SEED EXAMPLES` for another run than the usual one.
import { askNasty, fuzzApi, fuzzStage, requireSound } from "../e2e/fuzz-stage.ts";
import { startPostgres } from "../servers/postgres.ts";

const [seed = 1, examples = 200] = process.argv.slice(2).map(Number);
const TIMEOUT_MS = 30 * 60_000;

await using server = await startPostgres({ version: 18 });
await using stage = await fuzzStage(server);
const operations = Object.values(stage.document.paths).flatMap((methods) => Object.keys(methods)).length;
process.stdout.write(`seed ${seed}: ${operations} operations, up to ${examples} examples of each\n`);
const report = await fuzzApi(stage, { seed, examples, phases: "examples,coverage,fuzzing", timeoutMs: TIMEOUT_MS });
const { asked, broken } = await askNasty(stage);
await requireSound(stage);
if (report === "" && broken.length === 0) {
  process.stdout.write(`0 server errors, 0 answers that are not as documented; ${asked} spoilt requests, 0 errors\n`);
} else {
  process.stdout.write(`${[report, ...broken].join("\n")}\n`);
  process.exitCode = 1;
}
