import { ActionButton } from "../../kit/action-button.tsx";
import { StateBadge } from "../../kit/badge.tsx";
import { Due } from "../../kit/due.tsx";
import { Ago } from "../../kit/figures.tsx";
import { countText } from "../../kit/format.ts";
import type { Column } from "../../kit/table.tsx";
import type { KeyOfEvents } from "../../kit/types.ts";
import { eventHref, eventsHref, keyFilter } from "../links.ts";
import { askForKey } from "./key-dialogs.tsx";

export const KINDS = ["parked", "retrying", "hot"] as const;
export type Kind = (typeof KINDS)[number];

/** To the event that blocks, or to all events of a key that is merely busy. */
export function keyHref({ head, key, source }: KeyOfEvents): string {
  return head === null ? eventsHref(keyFilter(key, source)) : eventHref({ id: head.id, source });
}

const PIPELINE: Column<KeyOfEvents> = {
  name: "Pipeline",
  isExtra: true,
  cell: ({ pipeline }) => <span class="soft">{pipeline}</span>,
};

export function columnsOf(kind: Kind, isOnePipeline: boolean, reload: () => void): readonly Column<KeyOfEvents>[] {
  const columns: readonly Column<KeyOfEvents>[] = [
    {
      name: "Key",
      cell: ({ key }) => (
        <span class="mono cut-end" title={key}>
          {key}
        </span>
      ),
    },
    ...(isOnePipeline ? [] : [PIPELINE]),
  ];
  if (kind === "hot")
    return [
      ...columns,
      { name: "Among the newest events", isWide: true, cell: ({ recent }) => <Recent recent={recent} /> },
    ];
  return [
    ...columns,
    { name: "Waiting", isFigure: true, cell: (row) => <Waiting row={row} /> },
    { name: kind === "parked" ? "Blocked by" : "Waits for", cell: ({ head }) => <Head head={head} /> },
    { name: "Since", cell: ({ head }) => <Ago at={head?.firstFailedAt ?? null} /> },
    ...(kind === "retrying"
      ? [{ name: "Next attempt", cell: ({ head }: KeyOfEvents) => <Due at={head?.nextAttemptAt ?? null} /> }]
      : []),
    {
      name: "Error",
      isWide: true,
      cell: ({ head }) => (
        <span class="cut" title={head?.reason}>
          {head?.reason}
        </span>
      ),
    },
    { name: "Actions", cell: (row) => <KeyActions row={row} reload={reload} /> },
  ];
}

/** Leads to them, where they are parked behind something. */
function Waiting({ row: { head, key, source, waiting } }: { readonly row: KeyOfEvents }) {
  const text = waiting === null ? "many" : `${countText(waiting.count)}${waiting.isMore ? "+" : ""}`;
  const title = waiting === null ? "It could not be counted in time" : undefined;
  if (head === null || waiting?.count === 0) return <span title={title}>{text}</span>;
  return (
    <a href={eventsHref(`${keyFilter(key, source)} state:parked`)} title={title}>
      {text}
    </a>
  );
}

function Recent({ recent }: Pick<KeyOfEvents, "recent">) {
  if (recent === null) return null;
  const share = recent.of === 0 ? 0 : Math.round((100 * recent.count) / recent.of);
  return (
    <span class="num">
      {countText(recent.count)} of {countText(recent.of)} <span class="faint">({share} %)</span>
    </span>
  );
}

function Head({ head }: Pick<KeyOfEvents, "head">) {
  if (head === null) return null;
  return (
    <span class="row tight">
      <StateBadge state={head.state} title={`${head.attempts} failed attempts`} />
      <span class="cut-end" title={head.id}>
        {head.type ?? head.id}
      </span>
    </span>
  );
}

/** Skipping and discarding are for what is dead: what is tried again by itself may arrive at any moment. */
function KeyActions({ row: { head, key, pipeline, source }, reload }: { readonly row: KeyOfEvents; reload(): void }) {
  if (head === null) return null;
  const meant = { key, pipeline, source, headId: head.id };
  const whyNot =
    head.state === "dead" ? null : "It is still tried again by itself: only what is dead can be skipped or discarded.";
  return (
    <span class="key-actions">
      <ActionButton
        icon="retry"
        onClick={() => askForKey("retry", meant, reload)}
        title="Send the blocking event once more, now"
      >
        Retry
      </ActionButton>
      <ActionButton
        icon="play"
        kind="quiet"
        label="Resume the key"
        onClick={() => askForKey("resume", meant, reload)}
      />
      <ActionButton
        icon="skip"
        kind="quiet"
        label="Skip the head"
        whyNot={whyNot}
        onClick={() => askForKey("skip", meant, reload)}
      />
      <ActionButton
        icon="bin"
        kind="quiet"
        label="Discard the head"
        whyNot={whyNot}
        onClick={() => askForKey("discard", meant, reload)}
      />
    </span>
  );
}
