import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api.ts";
import { Button } from "../button.tsx";
import { Icon } from "../icons.tsx";
import { changeQuery } from "../router.ts";
import { FILTER_FIELDS, type KnownValues, type Suggestion, suggestionsAt, withSuggestion } from "./filter-suggest.ts";
import { filterFault } from "./filter-text.ts";

interface FilterBoxProps {
  readonly label: string;
  readonly value: string;
  readonly known: KnownValues;
  readonly placeholder: string;
  /** The service's error about the filter in the address. */
  readonly error: ApiError | null;
  /** Replaces the default, which puts the filter into the address. */
  onFilter?(text: string): void;
}

/** The filter line with suggestions. `/` focuses it; Enter searches. */
export function FilterBox({ label, value, known, placeholder, error, onFilter }: FilterBoxProps) {
  const [isHelp, setHelp] = useState(false);
  const line = useFilterLine(value, known, onFilter ?? ((q) => changeQuery({ q, cursor: null })));
  const { text, items, at, isOpen, field } = line;
  const id = `suggestions-${label.replaceAll(" ", "-")}`;
  return (
    <search class="filter">
      <form
        class="search-field"
        onSubmit={(event) => {
          event.preventDefault();
          line.search(text);
        }}
      >
        <Icon name="search" />
        <input
          ref={field}
          type="text"
          data-search
          role="combobox"
          aria-label={label}
          aria-autocomplete="list"
          aria-expanded={isOpen}
          aria-controls={id}
          aria-activedescendant={isOpen && at >= 0 ? `${id}-${at}` : undefined}
          placeholder={placeholder}
          value={text}
          maxLength={10_000}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          onInput={(event) => line.type(event.currentTarget)}
          onClick={(event) => line.type(event.currentTarget)}
          onKeyDown={line.press}
          onBlur={line.close}
        />
        {text !== "" && <Button kind="quiet" icon="cross" label="Clear the filter" onClick={() => line.search("")} />}
        <Button
          kind="quiet"
          icon="help"
          label={isHelp ? "Hide the filter help" : "Filter help"}
          onClick={() => setHelp(!isHelp)}
        />
        {text === "" && <kbd>/</kbd>}
      </form>
      <div class="suggestions" id={id} role="listbox" aria-label="Suggestions" hidden={!isOpen}>
        {items.map((it, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field, which names the active option
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
          <div
            key={it.text}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => line.take(it)}
          >
            <code>{it.text}</code>
            <span>{it.help}</span>
          </div>
        ))}
      </div>
      {error !== null && <FilterProblem text={value} error={error} />}
      {isHelp && <FilterHelp />}
    </search>
  );
}

/** The filter with its invalid term marked, and the reason. Renders nothing for other errors. */
function FilterProblem({ text, error }: { readonly text: string; readonly error: ApiError }) {
  const fault = filterFault(error.message);
  if (fault === null) return null;
  const { start, end, problem } = fault;
  return (
    <div class="filter-problem" role="alert">
      <code>
        {text.slice(0, start)}
        <mark>{text.slice(start, end) || " "}</mark>
        {text.slice(end)}
      </code>
      <p>{problem}</p>
    </div>
  );
}

function useFilterLine(value: string, known: KnownValues, search: (text: string) => void) {
  const [text, setText] = useState(value);
  const [caret, setCaret] = useState<number | null>(null);
  const [at, setAt] = useState(-1);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => setText(value), [value]);
  const found = caret === null ? null : suggestionsAt(text, caret, known);
  const items = found?.items ?? [];
  const close = () => setCaret(null);
  const type = (input: HTMLInputElement) => {
    setText(input.value);
    setCaret(input.selectionStart);
    setAt(-1);
  };
  const take = (it: Suggestion) => {
    if (found === null) return;
    const [next, end] = withSuggestion(text, found, it);
    setText(next);
    setAt(-1);
    setCaret(end);
    // After the render, which moves the caret to the end. Not if the user has typed since.
    queueMicrotask(() =>
      setTimeout(() => {
        if (field.current?.value === next) field.current.setSelectionRange(end, end);
      }),
    );
  };
  const press = (event: KeyboardEvent) => {
    const active = items[at];
    if (event.key === "Escape" && items.length > 0) close();
    else if (event.key === "ArrowDown" && items.length > 0) setAt((at + 1) % items.length);
    else if (event.key === "ArrowUp" && items.length > 0) setAt((at <= 0 ? items.length : at) - 1);
    else if (event.key === "Enter" && active !== undefined) take(active);
    else if (event.key === "Tab" && active !== undefined) take(active);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const submit = (wanted: string) => {
    close();
    setText(wanted.trim());
    search(wanted.trim());
  };
  return { text, items, at, isOpen: items.length > 0, field, search: submit, type, take, press, close };
}

/** Reference of the filter language. */
function FilterHelp() {
  return (
    <section class="filter-help" aria-label="Filter help">
      <dl>
        {FILTER_FIELDS.map(([field, help, example]) => (
          <div key={field}>
            <dt>
              <code>{example}</code>
            </dt>
            <dd>{help}</dd>
          </div>
        ))}
        <div>
          <dt>
            <code>7f0c…</code>
          </dt>
          <dd>a bare word: matches an id, key or correlation id, and keys that contain it</dd>
        </div>
      </dl>
      <p>
        An event must match all terms. Put a value with spaces or colons in <code>"quotes"</code> and escape a quote as{" "}
        <code>\"</code>; in quotes a <code>*</code> is literal. Payload fields work on the events screen, not on dead
        letters. Times are <code>2026-01-31</code>, <code>2026-01-31T12:00</code> (UTC) or <code>2h</code> (two hours
        ago).
      </p>
    </section>
  );
}
