import type { ComponentChildren } from "preact";
import { Badge, StateBadge } from "../../kit/badge.tsx";
import { Ago } from "../../kit/figures.tsx";
import { durationText, rateText, shortCount } from "../../kit/format.ts";
import { Marked } from "../../kit/plain-text.tsx";
import type { Destination } from "../../kit/types.ts";
import { cutText, visibleText } from "../../kit/visible-text.ts";
import { destinationHref } from "../links.ts";

const REASON_CHARS = 500;

interface TileProps {
  readonly it: Destination;
  readonly choose?: ComponentChildren;
}

export function DestinationTile({ it, choose }: TileProps) {
  return (
    <article class="destination">
      <header>
        {choose}
        <a href={destinationHref(it.destination)}>{it.destination}</a>
        <SlowBadge it={it} />
        <StateBadge state={it.state} />
      </header>
      <dl>
        <Figure name="out" value={`${rateText(it.publishedPerSecond)} /s`} />
        <Figure name="failed" value={`${rateText(it.failedPerSecond)} /s`} isBad={it.failedPerSecond > 0} />
        <Figure name="answer p50" value={durationText(it.answers?.lastMinute.p50Ms ?? null)} isBad={isSlow(it)} />
        <Figure name="answer p99" value={durationText(it.answers?.lastMinute.p99Ms ?? null)} />
        <Figure name="pending" value={shortCount(it.pending)} />
        <Figure name="oldest" value={durationText(it.oldestAgeMs)} />
      </dl>
      <LastError it={it} />
    </article>
  );
}

function isSlow({ answers }: Pick<Destination, "answers">): boolean {
  return answers !== null && answers.slow !== null;
}

/** Shown when answers take much longer than usual. */
export function SlowBadge({ it: { answers } }: { readonly it: Pick<Destination, "answers"> }) {
  if (answers === null || answers.slow === null) return null;
  const { presentMs, usualMs } = answers.slow;
  return (
    <StateBadge
      state="slow"
      title={`median answer time ${durationText(presentMs)}, usually ${durationText(usualMs)}`}
    />
  );
}

export function LastError({ it: { lastError } }: { readonly it: Pick<Destination, "lastError"> }) {
  if (lastError === null) return null;
  return (
    <p class="last-error" title={visibleText(lastError.reason, 1_000)}>
      <Badge tone="bad" icon="cross">
        <Ago at={lastError.at} />
      </Badge>{" "}
      <Marked text={cutText(lastError.reason, REASON_CHARS)} />
    </p>
  );
}

function Figure({
  name,
  value,
  isBad = false,
}: {
  readonly name: string;
  readonly value: string;
  readonly isBad?: boolean;
}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class={isBad ? "num bad" : "num"}>{value}</dd>
    </div>
  );
}
