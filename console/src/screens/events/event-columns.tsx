import { StateBadge } from "../../kit/badge.tsx";
import { Ago, Due } from "../../kit/figures.tsx";
import { Marked, PlainText, ShortId } from "../../kit/plain-text.tsx";
import type { Column } from "../../kit/table.tsx";
import type { EventRow } from "../../kit/types.ts";
import { cutText, visibleText } from "../../kit/visible-text.ts";
import { eventHref, eventsHref, keyFilter } from "../links.ts";

const TITLE_CHARS = 1_000;
const REASON_CHARS = 300;

const TYPE: Column<EventRow> = { name: "Type", cell: ({ type }) => <PlainText text={type} /> };
const STATE: Column<EventRow> = { name: "State", cell: ({ state }) => <StateBadge state={state} /> };
const WRITTEN: Column<EventRow> = { name: "Written", cell: ({ createdAt }) => <Ago at={createdAt} /> };

const KEY: Column<EventRow> = {
  name: "Key",
  cell: ({ key, source }) =>
    key === null ? (
      <span class="faint">none</span>
    ) : (
      <a
        class="mono cut-end"
        href={eventsHref(keyFilter(key, source))}
        title={`All events of the key ${visibleText(key, TITLE_CHARS)}`}
      >
        <PlainText text={key} />
      </a>
    ),
};

const ID: Column<EventRow> = {
  name: "Id",
  cell: ({ id }) => <ShortId id={id} />,
};

const SOURCE: Column<EventRow> = {
  name: "Source",
  isExtra: true,
  cell: ({ source }) => <span class="soft">{source}</span>,
};

const WHY: Column<EventRow> = { name: "Why not delivered", isWide: true, cell: (row) => <Why row={row} /> };

/** The source column is shown if there are several sources. */
export function eventColumns(isOneSource: boolean): readonly Column<EventRow>[] {
  return [TYPE, STATE, KEY, ID, ...(isOneSource ? [] : [SOURCE]), WRITTEN, WHY];
}

function Why({ row }: { readonly row: EventRow }) {
  const { attempts, nextAttemptAt, parkedBehind, pipeline, reason, source, state, waitsFor } = row;
  if (state === "parked" && parkedBehind !== null) {
    return (
      <span class="cut">
        waits behind{" "}
        <a href={eventHref({ id: parkedBehind, source })}>
          <PlainText text={parkedBehind} />
        </a>
      </span>
    );
  }
  if (state === "unrouted") return <span class="cut">no route matches it</span>;
  if (waitsFor === "paused") return <span class="cut">{pipeline} is paused</span>;
  if (waitsFor === "scheduled")
    return (
      <span class="cut">
        scheduled <Due at={nextAttemptAt} />
      </span>
    );
  if (reason === null || state === "delivered") return null;
  return (
    <span class="cut" title={visibleText(reason, TITLE_CHARS)}>
      {state === "retrying" && nextAttemptAt !== null && (
        <span class="soft">
          attempt {(attempts ?? 0) + 1} <Due at={nextAttemptAt} /> ·{" "}
        </span>
      )}
      <Marked text={cutText(reason, REASON_CHARS)} />
    </span>
  );
}
