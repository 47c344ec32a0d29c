import { parseArgs } from "node:util";
import type { Figure, Scenario } from "./figure.ts";
import { machine, printFigures } from "./report.ts";
import { consoleScenario } from "./scenarios/console.ts";
import { drainKafka } from "./scenarios/drain-kafka.ts";
import { drainLog } from "./scenarios/drain-log.ts";
import { drainPostgres } from "./scenarios/drain-postgres.ts";
import { eventstore } from "./scenarios/eventstore.ts";
import { insertCost } from "./scenarios/insert-cost.ts";
import { latency } from "./scenarios/latency.ts";
import { overhead } from "./scenarios/overhead.ts";
import { publishers } from "./scenarios/publishers.ts";
import { recorder } from "./scenarios/recorder.ts";

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  console: consoleScenario,
  "drain-postgres": drainPostgres,
  "drain-kafka": drainKafka,
  "drain-log": drainLog,
  eventstore,
  "insert-cost": insertCost,
  latency,
  overhead,
  publishers,
  recorder,
};

const USAGE = `npm run bench -- <scenario> [--json] [--only part] [--scale 0.1] [--peers] [--growth]

Scenarios: ${Object.keys(SCENARIOS).join(", ")}
  --json    figures as JSON on standard output
  --only    only the parts whose name contains this
  --scale   a share of the rows, for a quick look; the goals are meant for 1
  --peers   drain-kafka, drain-log: also Debezium Server, which is downloaded once (780 MB)
  --growth  drain-log: also with 10 million rows pending`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    scale: { type: "string", default: "1" },
    peers: { type: "boolean", default: false },
    growth: { type: "boolean", default: false },
  },
});
const scenario = SCENARIOS[positionals[0] ?? ""];
const scale = Number(values.scale);
if (scenario === undefined || !(scale > 0)) {
  process.stderr.write(`${USAGE}\n`);
  process.exit(2);
}

const say = (line: string) => process.stderr.write(`${line}\n`);
const figures: Figure[] = await scenario({ scale, only: values.only, peers: values.peers, growth: values.growth, say });
if (values.json) process.stdout.write(`${JSON.stringify({ machine: machine(), scale, figures }, null, 2)}\n`);
else printFigures(figures);
process.exitCode = figures.some((figure) => figure.met === false) ? 1 : 0;
