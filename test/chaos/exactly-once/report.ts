import type { ProofReport } from "./proof.ts";
import type { Verdict, Violation } from "./verdict.ts";

/** What a long run should reach to say anything. */
const CUT_OPEN_GOAL = 30;
const LATE_GOAL = 200;
const VIOLATIONS_SHOWN_MAX = 30;

const FAILOVER_NOTE = `
The standby was promoted without the primary's last commits. An event that the database itself forgot does not count as
lost. If it had been delivered before, it stays delivered: it may be read once, never twice and never out of order.`;

export function describeReport(report: ProofReport): string {
  const { verdict, blows, late } = report;
  const { violations } = verdict;
  const kinds = Object.entries(late.byName).map(([name, count]) => `${count} ${name}`);
  const rows: [string, string][] = [
    ["events", `${text(verdict.events)} in the database, ${text(verdict.arrivals)} records read back`],
    [
      "relays",
      `${blows.kill} killed, ${blows.pause} paused past their lease, ${blows.terminate} stopped in good order`,
    ],
    ["transactions cut open", `${text(report.cutOpen)} were open at a broker when their relay was killed or paused`],
    ["late requests", `${text(late.late)} reached a broker after their sender was gone (${kinds.join(", ")})`],
    ["", `${text(late.overtaken)} after a newer one, ${late.accepted} accepted, ${late.perished} died with a broker`],
    ["brokers", `${blows.brokerKill} killed, ${blows.brokerStop} stopped, all connections cut ${blows.cut} times`],
    ...(report.coordinatorMoves === 0
      ? []
      : [["", `coordinators moved ${report.coordinatorMoves} times`] as [string, string]]),
    ["database", databaseText(report)],
    ["take-overs", `${text(report.takeOvers)} lanes taken, ${text(report.healedBatches)} batches healed by the ledger`],
    ...(report.source === "flag"
      ? []
      : [["parked", `${text(report.parked)} events waited for their topic`] as [string, string]]),
    ...(report.buried === 0
      ? []
      : [
          ["dead letters", `${report.buried} events were on their way at three kills in a row, and replayed`] as [
            string,
            string,
          ],
        ]),
    ["duration", `${report.seconds.toFixed(0)} s`],
    ["result", violations.length === 0 ? "0 lost, 0 duplicates, 0 out of order, 0 foreign" : countsText(violations)],
  ];
  const table = rows.map(([name, value]) => `${name.padEnd(23)}${value}`);
  return [...table, ...(report.failovers > 0 ? [FAILOVER_NOTE] : []), ...violationLines(report)].join("\n");
}

/** What the run did not reach, so that its result says less than it could. */
export function shortfalls({ cutOpen, late }: ProofReport): string[] {
  return [
    ...(cutOpen < CUT_OPEN_GOAL ? [`only ${cutOpen} transactions were cut open, ${CUT_OPEN_GOAL} are wanted`] : []),
    ...(late.late < LATE_GOAL ? [`only ${late.late} requests came late, ${LATE_GOAL} are wanted`] : []),
  ];
}

function databaseText({ failovers, restarts, settlesLost, verdict }: ProofReport): string {
  const again = restarts === 0 ? [] : [`ended at once and started again ${restarts} times`];
  if (failovers === 0) return again[0] ?? "no failover";
  const forgotten = `${verdict.forgotten} delivered events and ${verdict.lostByDatabase} others forgotten`;
  const failover = `${failovers} failover, up to ${settlesLost} settled batches of a lane taken back, ${forgotten}`;
  return [...again, failover].join("; ");
}

export function countsText(violations: readonly Violation[]): string {
  const counts = Map.groupBy(violations, ({ what }) => what);
  return [...counts].map(([what, of]) => `${of.length} ${what}`).join(", ");
}

function violationLines({ verdict, transactions }: ProofReport): string[] {
  if (verdict.violations.length === 0) return [];
  return [...describeViolations(verdict), ...transactions];
}

export function describeViolations({ violations }: Verdict): string[] {
  const shown = violations.slice(0, VIOLATIONS_SHOWN_MAX).map(({ what, id, detail, places }) => {
    const where = places.map(({ topic, partition, offset }) => `${topic}/${partition}@${offset}`);
    return `${what} ${id}: ${detail}${where.length > 0 ? ` (${where.join(", ")})` : ""}`;
  });
  const more = violations.length - shown.length;
  return ["", ...shown, ...(more > 0 ? [`and ${more} more`] : [])];
}

function text(count: number): string {
  return count.toLocaleString("en");
}
