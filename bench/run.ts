import { parseArgs } from "node:util";
import type { Figure, Scenario } from "./figure.ts";
import { machine, printFigures } from "./report.ts";
import { drainPostgres } from "./scenarios/drain-postgres.ts";

const SCENARIOS: Readonly<Record<string, Scenario>> = { "drain-postgres": drainPostgres };

const USAGE = `npm run bench -- <scenario> [--json] [--only part] [--scale 0.1]

Scenarios: ${Object.keys(SCENARIOS).join(", ")}
  --json    figures as JSON on standard output
  --only    only the parts whose name contains this
  --scale   a share of the rows, for a quick look; the goals are meant for 1`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    scale: { type: "string", default: "1" },
  },
});
const scenario = SCENARIOS[positionals[0] ?? ""];
const scale = Number(values.scale);
if (scenario === undefined || !(scale > 0)) {
  process.stderr.write(`${USAGE}\n`);
  process.exit(2);
}

const say = (line: string) => process.stderr.write(`${line}\n`);
const figures: Figure[] = await scenario({ scale, only: values.only, say });
if (values.json) process.stdout.write(`${JSON.stringify({ machine: machine(), scale, figures }, null, 2)}\n`);
else printFigures(figures);
process.exitCode = figures.some((figure) => figure.met === false) ? 1 : 0;
