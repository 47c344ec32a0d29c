import type { ShownAttempt } from "../operations/attempts.ts";
import type { ShownEvent } from "../operations/event-show.ts";
import { plainLine } from "./plain-text.ts";

const NAME_WIDTH = 12;

/** One event for a person at a terminal, with the way of each attempt. */
export function eventText(event: ShownEvent): string {
  const { followers, headers, payload } = event;
  const behind = followers === null ? "" : `${followers.count}${followers.isMore ? " and more" : ""} wait behind it`;
  const gone = event.isGone ? "its row is gone" : "";
  const state = [event.state, event.parkedBehind && `behind ${event.parkedBehind}`, behind, gone];
  const lines = [
    ["id", event.id],
    ["source", event.source],
    ["type", event.type],
    ["key", event.key ?? "-"],
    ["correlation", event.correlationId ?? "-"],
    ["created", event.createdAt ?? "-"],
    ["state", state.filter(Boolean).join(", ")],
    ["pipelines", event.pipelines.join(", ")],
    ...(event.nextAttemptAt === null ? [] : [["next", event.nextAttemptAt]]),
    ...(event.letterId === null ? [] : [["dead letter", event.letterId]]),
    ...Object.entries(headers).map(([name, value]) => ["header", `${name}: ${value}`]),
    ...event.delivery.flatMap(attemptLines),
    ...event.audit.map(({ action, actor, at, reason }) => [
      "audit",
      `${at}  ${action} by ${actor}${reason === null ? "" : `: ${reason}`}`,
    ]),
    ["payload", payloadText(payload)],
  ];
  const text = lines.map(([name = "", value = ""]) => `${name.padEnd(NAME_WIDTH)}${plainLine(value)}`).join("\n");
  return payload === null ? `${text}\n` : `${text}\n${payload.text}\n`;
}

export function payloadText(payload: ShownEvent["payload"]): string {
  if (payload === null) return "not there any more";
  return `${payload.bytes} bytes, ${payload.encoding}${payload.isTruncated ? ", cut" : ""}`;
}

function attemptLines(attempt: ShownAttempt): string[][] {
  const { at, outcome, reason, target } = attempt;
  const told = [at, outcome, target === null ? "" : `to ${target}`].filter(Boolean).join("  ");
  return [
    [`attempt ${attempt.attempt}`, told],
    ...(reason === null ? [] : [["", reason]]),
    ...waterfall(attempt).map((step) => ["", step]),
  ];
}

/** When it was written, and how long each step from there to the answer took. */
function waterfall({ claimedAt, durationMs, sentAt, writtenAt }: ShownAttempt): string[] {
  const steps = [
    ["written", writtenAt],
    ["claimed", claimedAt],
    ["sent", sentAt],
  ] as const;
  const told: string[] = [];
  let before: string | null = null;
  for (const [name, time] of steps) {
    if (time === null) continue;
    told.push(before === null ? `${name} ${time}` : `${name} +${msText(Date.parse(time) - Date.parse(before))}`);
    before = time;
  }
  if (durationMs !== null) told.push(`answered +${msText(durationMs)}`);
  return told.length === 0 ? [] : [told.join("  ")];
}

function msText(ms: number): string {
  if (ms >= 10_000) return `${Math.round(ms / 1_000)} s`;
  return ms >= 10 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`;
}
