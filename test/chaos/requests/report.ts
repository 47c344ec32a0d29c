import type { ProofReport } from "./proof.ts";

const VIOLATIONS_SHOWN_MAX = 30;

export function describeReport(report: ProofReport): string {
  const { blows, verdict } = report;
  const { violations } = verdict;
  const rows: [string, string][] = [
    ["requests", `${verdict.requests}: ${verdict.completed} completed, ${verdict.failed} failed for good`],
    ["jobs", `${verdict.jobs} added, ${verdict.retries} of them asked for by failures that are tried again`],
    ["bank", `asked ${report.bankCalls} times, ${report.bankRepeats} of them for what it had paid, by the same key`],
    ["", `${report.cutOff} calls lost their caller before the answer, or the answer on its way`],
    [
      "relays",
      `${blows.relayKill} killed, ${blows.relayPause} frozen past their lease, ${blows.relayStop} stopped, ${report.turns} turns taken`,
    ],
    [
      "workers",
      `${blows.workerKill} killed, ${blows.workerPause} frozen past their locks, ${blows.workerStop} stopped`,
    ],
    [
      "Redis",
      `${blows.redisKill} times killed, ${blows.redisPause} times frozen, ${blows.cut} times cut off the relays, ${blows.redisForget} times back with an older state`,
    ],
    ["event store", `${blows.storeKill} times killed, subscriptions dropped ${blows.storeDrop} times`],
    ["duration", `${report.seconds.toFixed(0)} s, ${report.drainSeconds.toFixed(1)} s of them until all was done`],
    [
      "result",
      violations.length === 0 ? "one outcome per request, one job per event" : `${violations.length} violations`,
    ],
  ];
  const shown = violations.slice(0, VIOLATIONS_SHOWN_MAX);
  const more = violations.length - shown.length;
  return [
    ...rows.map(([name, value]) => `${name.padEnd(13)}${value}`),
    ...shown,
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join("\n");
}
