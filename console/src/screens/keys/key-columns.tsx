import { ActionButton } from "../../kit/action-button.tsx";
import { StateBadge } from "../../kit/badge.tsx";
import { Ago, Due } from "../../kit/figures.tsx";
import { countText } from "../../kit/format.ts";
import { PlainText } from "../../kit/plain-text.tsx";
import type { Column } from "../../kit/table.tsx";
import type { KeyOfEvents } from "../../kit/types.ts";
import { visibleText } from "../../kit/visible-text.ts";
import { eventHref, eventsHref, keyFilter } from "../links.ts";
import { askForKey } from "./key-dialogs.tsx";

export const KINDS = ["parked", "retrying", "hot"] as const;
export type Kind = (typeof KINDS)[number];

/** Links to the event that blocks the key, or to all events of a key that is only busy. */
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
        <span class="mono cut-end">
          <PlainText text={key} />
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
    { name: "Waiting", hint: "parkedOrDead", isFigure: true, cell: (row) => <Waiting row={row} /> },
    { name: kind === "parked" ? "Blocked by" : "Waits for", cell: ({ head }) => <Head head={head} /> },
    { name: "Since", cell: ({ head }) => <Ago at={head?.firstFailedAt ?? null} /> },
    ...(kind === "retrying"
      ? [{ name: "Next attempt", cell: ({ head }: KeyOfEvents) => <Due at={head?.nextAttemptAt ?? null} /> }]
      : []),
    { name: "Actions", hint: "keyActions", cell: (row) => <KeyActions row={row} reload={reload} /> },
  ];
}

/** Links to the waiting events if they are parked. */
function Waiting({ row: { head, key, source, waiting } }: { readonly row: KeyOfEvents }) {
  const text = waiting === null ? "many" : `${countText(waiting.count)}${waiting.isMore ? "+" : ""}`;
  const title = waiting === null ? "The count timed out" : undefined;
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
    <span class="stack tight">
      <span class="row tight">
        <StateBadge state={head.state} title={`${head.attempts} failed attempts`} />
        <span class="cut-end" title={visibleText(head.id)}>
          <PlainText text={head.type ?? head.id} />
        </span>
      </span>
      <span class="cut soft" title={visibleText(head.reason, 1_000)}>
        <PlainText text={head.reason} charsMax={300} />
      </span>
    </span>
  );
}

/** Only dead events can be skipped or discarded: an event that the relay retries may arrive at any moment. */
function KeyActions({ row: { head, key, pipeline }, reload }: { readonly row: KeyOfEvents; reload(): void }) {
  if (head === null) return null;
  const meant = { key, pipeline, headId: head.id };
  const whyNot =
    head.state === "dead" ? null : "The relay still retries this event. Only dead events can be skipped or discarded.";
  return (
    <span class="key-actions">
      {VERBS.map(([verb, label, icon]) => (
        <ActionButton
          key={verb}
          icon={icon}
          kind={verb === "retry" ? "plain" : "quiet"}
          whyNot={verb === "retry" ? null : whyNot}
          onClick={() => askForKey(verb, [meant], reload)}
        >
          {label}
        </ActionButton>
      ))}
    </span>
  );
}

const VERBS = [
  ["retry", "Retry", "retry"],
  ["skip", "Skip", "skip"],
  ["discard", "Discard", "bin"],
] as const;
