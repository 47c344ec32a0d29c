import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Hint, type HintWord } from "./hint.tsx";
import { isTyping } from "./keyboard.ts";
import { changeQuery } from "./router.ts";

export interface Column<Row> {
  readonly name: string;
  readonly hint?: HintWord;
  cell(row: Row): ComponentChildren;
  /** Figures are aligned right. */
  readonly isFigure?: boolean;
  /** Fills the remaining width and is truncated with an ellipsis. */
  readonly isWide?: boolean;
  /** Hidden on a phone. */
  readonly isExtra?: boolean;
}

interface TableProps<Row> {
  /** Accessible name of the table. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  keyOf(row: Row): string;
  /** The target of Enter and of a click. The first column is the link. */
  hrefOf?(row: Row): string;
  /** Adds checkboxes. */
  readonly chosen?: ReadonlySet<string> | undefined;
  onChoose?(chosen: ReadonlySet<string>): void;
  readonly isDim?: boolean | undefined;
}

/** j and k move between rows, Enter opens, x selects. On a phone each row is a card. */
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
    // The link gets the focus: Enter opens it, and a screen reader reads it.
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
                  aria-label="Select all shown"
                  checked={rows.length > 0 && rows.every((row) => chosen.has(keyOf(row)))}
                  onChange={(event) => onChoose?.(new Set(event.currentTarget.checked ? rows.map(keyOf) : []))}
                />
              </th>
            )}
            {columns.map((column) => (
              <th key={column.name} scope="col" class={lookOf(column)}>
                {column.name}
                {column.hint !== undefined && <Hint word={column.hint} />}
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
    // Keyboard users have the link in the first column.
    <tr class={`${isAt ? "at" : ""}${href === undefined ? "" : " opens"}`} onClick={open}>
      {chosen !== undefined && (
        <td class="choose">
          <input
            type="checkbox"
            aria-label={`Select ${keyOf(row)}`}
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

/** Clicks on a link, a button or selected text inside the row do not open the row. */
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
  /** The cursor of this page, from the address. */
  readonly cursor: string | undefined;
  readonly next: string | null;
}

/** Keyset pagination: forward with the cursor in the address, back with the browser's history. */
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
