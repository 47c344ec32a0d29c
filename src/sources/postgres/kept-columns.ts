import type { ColumnNames } from "../../postgres/column-names.ts";
import type { TableShape } from "./table-shape.ts";

type EventFragments = Pick<
  TableShape,
  "id" | "eventType" | "keyText" | "payload" | "headersText" | "createdText" | "order"
>;

/**
 * The columns that the table was read by so far. When the table is read again, a column that was renamed or dropped is
 * reported as missing, and no event is published without it or with another one. Columns that were absent can be found
 * now. Correlation id and trace are optional, so they may disappear.
 */
export function keptColumns(names: ColumnNames, before: EventFragments | null | undefined): ColumnNames {
  if (before == null) return names;
  const found = {
    id: columnIn(before.id),
    // Anything longer extracts the type from an intent: there is no type column.
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

/** The column of a fragment that consists of one column, cast or not; null for anything else. */
function columnIn(fragment: string | undefined): string | null {
  const match = /^t\."((?:[^"]|"")+)"(?:::[a-z]+)?$/.exec(fragment ?? "");
  return match === null ? null : match[1]!.replaceAll('""', '"');
}
