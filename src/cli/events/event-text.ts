import type { ShownAttempt } from "../../operations/events/attempts.ts";
import type { ListedEvent } from "../../operations/events/event-list.ts";
import type { ShownEvent } from "../../operations/events/event-show.ts";
import { plainLine } from "../terminal/plain-text.ts";

const NAME_WIDTH = 12;

/** One event as text for the terminal, with the timing of each attempt. */
export function eventText(event: ShownEvent): string {
  const { followers, headers, payload } = event;
  const behind = followers === null ? "" : `${followers.count}${followers.isMore ? " and more" : ""} wait behind it`;
  const gone = event.isGone ? "its row was deleted" : "";
  const parked = event.parkedBehind && `behind ${event.parkedBehind}`;
  const state = [event.state, parked, waitText(event), behind, gone];
  const lines = [
    ["id", event.id],
    ["source", event.source],
    ["type", event.type],
    ["key", event.key ?? "-"],
    ["correlation", event.correlationId ?? "-"],
    ["created", event.createdAt ?? "-"],
    ["state", state.filter(Boolean).join(", ")],
    ["pipelines", event.pipelines.join(", ") || "none"],
    ...(event.nextAttemptAt === null ? [] : [["next", event.nextAttemptAt]]),
    ...(event.letterId === null ? [] : [["dead letter", event.letterId]]),
    ...Object.entries(headers).map(([name, value]) => ["header", `${name}: ${value}`]),
    ...event.delivery.flatMap(attemptLines),
    ...event.audit.map(({ action, actor, at, reason }) => [
      "audit",
      `${at}  ${action} by ${actor}${reason === null ? "" : `: ${reason}`}`,
    ]),
    ...event.edits.map(({ at, before, by, reason }) => [
      "edited",
      `${at}  by ${by}, before: ${before.payload?.text ?? "hidden"}${reason === null ? "" : ` (${reason})`}`,
    ]),
    ["payload", payloadText(payload)],
  ];
  const text = lines.map(([name = "", value = ""]) => `${name.padEnd(NAME_WIDTH)}${plainLine(value)}`).join("\n");
  return payload === null ? `${text}\n` : `${text}\n${payload.text}\n`;
}

/** Why an event that has not failed still waits; empty where it only waits for its turn. */
export function waitText({ nextAttemptAt, pipeline, state, waitsFor }: ListedEvent): string {
  if (state === "unrouted") return "no route matches it";
  if (waitsFor === "paused") return `${pipeline} is paused`;
  return waitsFor === "scheduled" ? `scheduled for ${nextAttemptAt}` : "";
}

/** The payload's size and encoding. */
export function payloadText(payload: ShownEvent["payload"]): string {
  if (payload === null) return "no longer stored";
  return `${payload.bytes} bytes, ${payload.encoding}${payload.isTruncated ? ", truncated" : ""}`;
}

function attemptLines(attempt: ShownAttempt): string[][] {
  const { at, outcome, reason, target } = attempt;
  const line = [at, outcome, target === null ? "" : `to ${target}`].filter(Boolean).join("  ");
  return [
    [`attempt ${attempt.attempt}`, line],
    ...(reason === null ? [] : [["", reason]]),
    ...waterfall(attempt).map((step) => ["", step]),
  ];
}

/** When the event was written, and how long each step took from there to the answer. */
function waterfall({ claimedAt, durationMs, sentAt, writtenAt }: ShownAttempt): string[] {
  const steps = [
    ["written", writtenAt],
    ["claimed", claimedAt],
    ["sent", sentAt],
  ] as const;
  const parts: string[] = [];
  let before: string | null = null;
  for (const [name, time] of steps) {
    if (time === null) continue;
    parts.push(before === null ? `${name} ${time}` : `${name} +${msText(Date.parse(time) - Date.parse(before))}`);
    before = time;
  }
  if (durationMs !== null) parts.push(`answered +${msText(durationMs)}`);
  return parts.length === 0 ? [] : [parts.join("  ")];
}

function msText(ms: number): string {
  if (ms >= 10_000) return `${Math.round(ms / 1_000)} s`;
  return ms >= 10 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`;
}
