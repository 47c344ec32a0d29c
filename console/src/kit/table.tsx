import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { isTyping } from "./keyboard.ts";
import { changeQuery } from "./router.ts";

export interface Column<Row> {
  readonly name: string;
  cell(row: Row): ComponentChildren;
  /** Figures stand to the right. */
  readonly isFigure?: boolean;
  /** Takes what room is left, and is cut with an ellipsis. */
  readonly isWide?: boolean;
  /** Not on a phone. */
  readonly isExtra?: boolean;
}

interface TableProps<Row> {
  /** What the table holds, for those who cannot see it. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  keyOf(row: Row): string;
  /** Where Enter and a click lead. The first column is the link. */
  hrefOf?(row: Row): string;
  /** Check boxes, when given. */
  readonly chosen?: ReadonlySet<string> | undefined;
  onChoose?(chosen: ReadonlySet<string>): void;
  readonly isDim?: boolean | undefined;
}

/** j and k walk over the rows, Enter opens, x chooses. On a phone each row is a card. */
export function Table<Row>(props: TableProps<Row>) {
  const { label, columns, rows, keyOf, chosen, onChoose, isDim = false } = props;
  const [at, setAt] = useState(-1);
  const body = useRef<HTMLTableSectionElement>(null);
  const choose = (row: Row) => {
    const next = new Set(chosen);
    if (!next.delete(keyOf(row))) next.add(keyOf(row));
    onChoose?.(next);
  };
  useRowKeys(rows.length, at, setAt, () => {
    const row = rows[at];
    if (row !== undefined && chosen !== undefined) choose(row);
  });
  useEffect(() => {
    const row = body.current?.children[at];
    row?.scrollIntoView({ block: "nearest" });
    // The link has the focus then: Enter opens it, and who cannot see the row hears it.
    row?.querySelector("a")?.focus({ preventScroll: true });
  }, [at]);
  return (
    <div class={isDim ? "table dim" : "table"} aria-busy={isDim}>
      <table aria-label={label}>
        <thead>
          <tr>
            {chosen !== undefined && (
              <th scope="col" class="choose">
                <input
                  type="checkbox"
                  aria-label="Choose all that are shown"
                  checked={rows.length > 0 && rows.every((row) => chosen.has(keyOf(row)))}
                  onChange={(event) => onChoose?.(new Set(event.currentTarget.checked ? rows.map(keyOf) : []))}
                />
              </th>
            )}
            {columns.map((column) => (
              <th key={column.name} scope="col" class={lookOf(column)}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row, index) => (
            <TableRow key={keyOf(row)} {...props} row={row} isAt={index === at} choose={() => choose(row)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps<Row> extends Pick<TableProps<Row>, "chosen" | "columns" | "hrefOf" | "keyOf"> {
  readonly row: Row;
  readonly isAt: boolean;
  choose(): void;
}

function TableRow<Row>({ chosen, columns, hrefOf, keyOf, row, isAt, choose }: RowProps<Row>) {
  const href = hrefOf?.(row);
  const open = (event: Event) => {
    if (href !== undefined && !isOwnClick(event)) location.hash = href;
  };
  return (
    // The keyboard has the link of the first column.
    <tr class={`${isAt ? "at" : ""}${href === undefined ? "" : " opens"}`} onClick={open}>
      {chosen !== undefined && (
        <td class="choose">
          <input
            type="checkbox"
            aria-label={`Choose ${keyOf(row)}`}
            checked={chosen.has(keyOf(row))}
            onChange={choose}
          />
        </td>
      )}
      {columns.map((column, place) => (
        <td key={column.name} class={lookOf(column)} data-label={column.name}>
          {place === 0 && href !== undefined ? <a href={href}>{column.cell(row)}</a> : column.cell(row)}
        </td>
      ))}
    </tr>
  );
}

function lookOf<Row>({ isFigure, isWide, isExtra }: Column<Row>): string {
  return [isFigure && "figure", isWide && "wide", isExtra && "extra"].filter(Boolean).join(" ");
}

/** A link, a button or a chosen piece of text inside the row means itself. */
function isOwnClick(event: Event): boolean {
  const target = event.target as Element;
  return target.closest("a, button, input, label") !== null || String(getSelection()) !== "";
}

function useRowKeys(count: number, at: number, setAt: (at: number) => void, choose: () => void): void {
  const current = useRef({ count, at, choose });
  current.current = { count, at, choose };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event) || document.querySelector("dialog[open]") !== null) return;
      const { count: rows, at: row, choose: toggle } = current.current;
      if (event.key === "j") setAt(Math.min(rows - 1, row + 1));
      else if (event.key === "k") setAt(Math.max(0, row - 1));
      else if (event.key === "x") toggle();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [setAt]);
}

interface PagerProps {
  /** Of this page, as the address holds it. */
  readonly cursor: string | undefined;
  readonly next: string | null;
}

/** Keyset pages: forward by the cursor in the address, back by the browser, or to the first one. */
export function Pager({ cursor, next }: PagerProps) {
  if (cursor === undefined && next === null) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <Button icon="left" isDisabled={cursor === undefined} onClick={() => changeQuery({ cursor: null })}>
        First page
      </Button>
      <Button isDisabled={cursor === undefined} onClick={() => history.back()}>
        Back
      </Button>
      <Button icon="right" isDisabled={next === null} onClick={() => changeQuery({ cursor: next })}>
        Next page
      </Button>
    </nav>
  );
}
