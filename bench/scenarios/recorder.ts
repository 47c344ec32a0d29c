import { startPostgres } from "../../test/servers/postgres.ts";
import { atLeast, type Figure, measured, type Scenario } from "../figure.ts";
import { fillTable } from "../outbox-tables.ts";
import type { RelayResult } from "../relay-order.ts";
import { compileRelay, prepareDatabase, runRelay } from "../relay-run.ts";

/** As RECORD_DELIVERED has it. */
const DEFAULT_PER_SECOND = 50;
const ROWS = 200_000;
const KEYS = 20_000;
/** The machine's mood changes: the two take turns, the first round warms it up, and of the others the better half counts. */
const ROUNDS = 9;
const COUNTED = 4;

type Variant = "without" | "with";

/** What the recorder of attempts costs a drain: the same one with it and without, into a publisher that answers at once. */
export const recorder: Scenario = async ({ scale, say }) => {
  const flags = ["fsync=on", "shared_preload_libraries=pg_stat_statements", "shared_buffers=512MB", "max_wal_size=4GB"];
  await using postgres = await startPostgres({
    version: 18,
    onDisk: true,
    flags: flags.flatMap((flag) => ["-c", flag]),
  });
  await compileRelay();
  await prepareDatabase(postgres);
  const fill = { rows: Math.round(ROWS * scale), payloadBytes: 200, keys: Math.max(1, Math.round(KEYS * scale)) };
  const results: Record<Variant, RelayResult[]> = { without: [], with: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const variant of round % 2 === 0 ? (["without", "with"] as const) : (["with", "without"] as const)) {
      await fillTable(postgres, "flag", fill);
      const record = variant === "with" ? { recordPerSecond: DEFAULT_PER_SECOND } : {};
      const result = await runRelay(postgres, { kind: "flag", until: "drained", ...record });
      if (result.delivered !== fill.rows) throw new Error(`${result.delivered} of ${fill.rows} were delivered`);
      if (round > 0) results[variant].push(result);
      say(`  ${variant}: ${Math.round((fill.rows / result.ms) * 1_000)} events/s`);
    }
  }
  const { rows } = await postgres.query("select count(*)::int as count from outbox_relay.attempts");
  const recorded = Number(rows[0]?.count);
  if (recorded === 0) throw new Error("nothing was recorded: no figure can be given");
  return [...figuresOf(fill.rows, results), measured("attempts recorded", recorded, "")];
};

function figuresOf(rows: number, results: Record<Variant, readonly RelayResult[]>): Figure[] {
  const best = (values: readonly number[]) => {
    const fastest = values.toSorted((left, right) => left - right).slice(0, COUNTED);
    return fastest.reduce((sum, value) => sum + value, 0) / fastest.length;
  };
  const msOf = (variant: Variant) => best(results[variant].map(({ ms }) => ms));
  const cpuOf = (variant: Variant) => best(results[variant].map(({ cpuPercent, ms }) => (cpuPercent / 100) * ms));
  const perS = (ms: number) => (rows / ms) * 1_000;
  return [
    measured("without the recorder", perS(msOf("without")), "events/s"),
    measured("with 50 delivered events a second recorded", perS(msOf("with")), "events/s"),
    atLeast("with / without", (msOf("without") / msOf("with")) * 100, "%", 97),
    measured("CPU of the relay, with / without", (cpuOf("with") / cpuOf("without")) * 100, "%"),
  ];
}
