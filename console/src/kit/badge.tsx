import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icons.tsx";

export type Tone = "plain" | "good" | "info" | "warn" | "bad" | "accent";

interface BadgeProps {
  readonly tone?: Tone | undefined;
  readonly icon?: IconName | undefined;
  readonly title?: string | undefined;
  readonly children: ComponentChildren;
}

export function Badge({ tone = "plain", icon, title, children }: BadgeProps) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </span>
  );
}

/** One colour and one icon for every state of events, pipelines, destinations, plans and plan items. */
const STATES: Readonly<Record<string, readonly [tone: Tone, icon: IconName]>> = {
  pending: ["info", "clock"],
  retrying: ["warn", "retry"],
  suspect: ["warn", "help"],
  parked: ["warn", "park"],
  dead: ["bad", "dead"],
  unrouted: ["bad", "unplug"],
  written: ["info", "edit"],
  delivered: ["good", "check"],
  discarded: ["plain", "bin"],
  failed: ["bad", "cross"],
  running: ["good", "play"],
  paused: ["warn", "pause"],
  "circuit-open": ["bad", "bolt"],
  unreachable: ["bad", "unplug"],
  idle: ["plain", "dot"],
  "not served": ["bad", "unplug"],
  "no longer configured": ["plain", "unplug"],
  broken: ["bad", "cross"],
  healthy: ["good", "check"],
  ok: ["good", "check"],
  attention: ["warn", "dead"],
  slow: ["warn", "clock"],
  degraded: ["warn", "dead"],
  unhealthy: ["bad", "cross"],
  down: ["bad", "cross"],
  planned: ["info", "clock"],
  stopped: ["bad", "cross"],
  done: ["good", "check"],
  cancelled: ["plain", "cross"],
  waiting: ["info", "clock"],
  sent: ["accent", "play"],
  left: ["plain", "dot"],
  hot: ["accent", "bolt"],
  replayed: ["good", "replays"],
  error: ["bad", "cross"],
  warning: ["warn", "dead"],
};

/** An unknown state is shown without colour. */
export function StateBadge({ state, title }: { readonly state: string; readonly title?: string | undefined }) {
  const [tone, icon] = STATES[state] ?? (["plain", "dot"] as const);
  return (
    <Badge tone={tone} icon={icon} title={title}>
      {state.replace("-", " ")}
    </Badge>
  );
}
