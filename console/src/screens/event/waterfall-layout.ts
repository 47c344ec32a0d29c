import type { Attempt } from "../../kit/types.ts";
import { preciseMs } from "./precise-time.ts";

export interface Phase {
  readonly name: "wait" | "relay" | "send";
  readonly label: string;
  readonly ms: number;
  /** Fraction of the whole width, from 0 to 1. */
  readonly x: number;
  readonly width: number;
  /** Drawn shorter than it was, so that the other phases stay visible. */
  readonly isCut: boolean;
}

type Timed = Pick<Attempt, "writtenAt" | "claimedAt" | "sentAt" | "durationMs">;

/** A wait that would leave less than a quarter of the width to the other phases is drawn as this fraction. */
const CUT_FROM = 0.75;
const WAIT_SHARE = 0.4;
const SHARE_MIN = 0.012;

/** Durations from commit to claim, send and acknowledgement, as far as recorded. Clocks of two machines may differ. */
export function phasesOf({ writtenAt, claimedAt, sentAt, durationMs }: Timed): readonly Phase[] {
  const between = (from: string | null, to: string | null) =>
    from === null || to === null ? null : Math.max(0, preciseMs(to) - preciseMs(from));
  const whole = claimedAt === null ? between(writtenAt, sentAt) : null;
  const known = [
    {
      name: "wait",
      label: whole === null ? "commit → claim" : "commit → send",
      ms: whole ?? between(writtenAt, claimedAt),
    },
    { name: "relay", label: "claim → send", ms: between(claimedAt, sentAt) },
    { name: "send", label: "send → answer", ms: durationMs },
  ] as const;
  return placed(known.flatMap(({ ms, ...rest }) => (ms === null ? [] : [{ ...rest, ms }])));
}

function placed(phases: readonly Pick<Phase, "name" | "label" | "ms">[]): readonly Phase[] {
  const total = phases.reduce((sum, { ms }) => sum + ms, 0);
  const wait = phases.find(({ name }) => name === "wait")?.ms ?? 0;
  const isCut = phases.length > 1 && wait > CUT_FROM * total && total > wait;
  const rest = total - wait;
  const shares = phases.map(({ name, ms }) => {
    if (total === 0) return 1 / phases.length;
    const share = isCut ? (name === "wait" ? WAIT_SHARE : ((1 - WAIT_SHARE) * ms) / rest) : ms / total;
    return Math.max(SHARE_MIN, share);
  });
  const sum = shares.reduce((all, share) => all + share, 0);
  let x = 0;
  return phases.map((phase, at) => {
    const width = (shares[at] ?? 0) / sum;
    const it = { ...phase, x, width, isCut: isCut && phase.name === "wait" };
    x += width;
    return it;
  });
}
