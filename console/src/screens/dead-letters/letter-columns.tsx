import { StateBadge } from "../../kit/badge.tsx";
import { Ago } from "../../kit/figures.tsx";
import { PlainText } from "../../kit/plain-text.tsx";
import { ShortId } from "../../kit/short-id.tsx";
import type { Column } from "../../kit/table.tsx";
import type { Letter } from "../../kit/types.ts";
import { eventsHref, keyFilter } from "../links.ts";

export const LETTER_COLUMNS: readonly Column<Letter>[] = [
  { name: "Type", cell: ({ type }) => <PlainText text={type} /> },
  {
    name: "Key",
    cell: ({ key, source }) =>
      key === null ? (
        <span class="faint">none</span>
      ) : (
        <a class="mono cut-end" href={eventsHref(keyFilter(key, source))}>
          <PlainText text={key} />
        </a>
      ),
  },
  {
    name: "Id",
    cell: ({ id }) => <ShortId id={id} />,
  },
  { name: "Source", isExtra: true, cell: ({ source }) => <span class="soft">{source}</span> },
  { name: "Failures", isFigure: true, isExtra: true, cell: ({ failures }) => failures },
  { name: "Died", cell: ({ lastFailedAt }) => <Ago at={lastFailedAt} /> },
  {
    name: "Error",
    isWide: true,
    cell: ({ reason, resolution }) => (
      <span class="cut">
        {resolution !== null && <StateBadge state={resolution.how} />} <PlainText text={reason} charsMax={300} />
      </span>
    ),
  },
];
