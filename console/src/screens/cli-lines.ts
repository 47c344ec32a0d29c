import { command, flag } from "../kit/command.ts";
import { quotedValue } from "../kit/filter/filter-text.ts";

/** The shell command for each button of these screens. A value that begins with a dash must not be read as a flag. */
function line(verbs: readonly string[], names: readonly string[], flags: readonly string[] = []): string {
  const given = names.filter((name) => name !== "");
  return command(...verbs, ...flags, ...(given.some((name) => name.startsWith("-")) ? ["--"] : []), ...given);
}

export function eventsListLine(q: string): string {
  return line(["events", "list"], [q]);
}

export function eventsTailLine(q: string): string {
  return line(["events", "tail"], [q]);
}

export function eventShowLine(id: string, source: string): string {
  return line(["events", "show"], [id], flag("source", source));
}

export function lettersLine(q: string): string {
  return line(["dlq", "list"], [q]);
}

export function groupsLine(q: string): string {
  return line(["dlq", "groups"], [q]);
}

export function discardLine(id: string, source: string, reason: string): string {
  return line(["dlq", "discard"], [id], [...flag("source", source), "--reason", reason || "why", "--yes"]);
}

/** The CLI reads the new payload from a file. */
export function editLine(id: string, source: string, reason: string): string {
  const flags = [...flag("source", source), "--payload-file", "payload", "--reason", reason || "why"];
  return line(["dlq", "edit"], [id], flags);
}

export interface PlanWish {
  readonly action: "replay" | "discard";
  readonly subject: "dead" | "delivered";
  readonly q: string;
  readonly ids?: readonly string[] | undefined;
  readonly all?: boolean | undefined;
  readonly pipeline?: string | undefined;
  /** Each payload is patched before it is sent. */
  readonly isPatch?: boolean | undefined;
}

export function planLine(wish: PlanWish, reason: string, rate: string, patch = ""): string {
  const { action, all, ids = [], pipeline, q, subject } = wish;
  const filter = [...ids.map((id) => `id:${quotedValue(id)}`), ...(q === "" ? [] : [q])].join(" ");
  const flags = [
    ...(action === "discard" ? ["--discard"] : []),
    ...(subject === "delivered" ? ["--delivered"] : []),
    ...(all ? ["--all"] : []),
    ...flag("pipeline", pipeline),
    ...flag("rate", rate),
    ...flag("patch", patch),
    ...flag("reason", reason || (action === "discard" || patch !== "" ? "why" : "")),
  ];
  return line(["replay", "plan"], [filter], flags);
}

export function plansLine(state = "", action = "", q = ""): string {
  return line(["replay", "list"], [], [...flag("state", state), ...flag("action", action), ...flag("contains", q)]);
}

export function planVerbLine(verb: "run" | "show" | "pause" | "cancel", id: string, reason = ""): string {
  return line(["replay", verb], [id], flag("reason", reason));
}

export function keysLine(kind: string, pipeline: string, q = ""): string {
  return line(["keys", "list"], [], [...flag("kind", kind), ...flag("pipeline", pipeline), ...flag("contains", q)]);
}

export type KeyVerb = "retry" | "skip" | "resume" | "discard";

interface KeyNamed {
  readonly key: string;
  readonly pipeline: string;
}

/** One line per pipeline. */
export function keyLine(verb: KeyVerb, keys: readonly KeyNamed[], reason: string): string {
  const why = reason || (verb === "skip" || verb === "discard" ? "why" : "");
  return [...Map.groupBy(keys, ({ pipeline }) => pipeline)]
    .map(([pipeline, its]) => line(["keys", verb], [pipeline, ...its.map(({ key }) => key)], flag("reason", why)))
    .join("\n");
}
