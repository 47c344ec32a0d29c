import type { ColumnNames } from "../../postgres/column-names.ts";
import type { TableShape } from "./table-shape.ts";

type EventFragments = Pick<
  TableShape,
  "id" | "eventType" | "keyText" | "payload" | "headersText" | "createdText" | "order"
>;

/**
 * The columns that a table was read by so far, to look at it again: a column that was renamed or dropped meanwhile is
 * then missing, instead of the event going out without it or with another one. What was not there may be found now.
 * Correlation id and trace decide nothing and may go.
 */
export function keptColumns(names: ColumnNames, before: EventFragments | null | undefined): ColumnNames {
  if (before == null) return names;
  const found = {
    id: columnIn(before.id),
    // Anything longer reads the type out of an intent, which is no column for the type.
    type: columnIn(/^coalesce\((.+)::text, ''\) collate "C"$/.exec(before.eventType)?.[1]),
    key: columnIn(before.keyText),
    payload: columnIn(before.payload.column),
    headers: columnIn(before.headersText),
    createdAt: columnIn(before.createdText),
    order: columnIn(before.order.column),
  };
  const kept = Object.entries(found).filter(([, name]) => name !== null);
  return { ...(Object.fromEntries(kept) as ColumnNames), ...names };
}

/** The column of a fragment that is one column, cast or not; null for anything else. */
function columnIn(fragment: string | undefined): string | null {
  const match = /^t\."((?:[^"]|"")+)"(?:::[a-z]+)?$/.exec(fragment ?? "");
  return match === null ? null : match[1]!.replaceAll('""', '"');
}
