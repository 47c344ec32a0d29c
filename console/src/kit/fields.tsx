import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icons.tsx";
import { changeQuery } from "./router.ts";

interface SearchProps {
  readonly label: string;
  /** The name of the query parameter. */
  readonly name: string;
  readonly value: string;
  readonly placeholder?: string;
  /** Examples shown below the field. */
  readonly hints?: readonly string[];
}

/** `/` focuses it. Enter puts the text into the address, which starts the search on the first page. */
export function SearchField({ label, name, value, placeholder, hints = [] }: SearchProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const search = (wanted: string) => changeQuery({ [name]: wanted.trim(), cursor: null });
  return (
    <form
      class="search"
      onSubmit={(event) => {
        event.preventDefault();
        search(text);
      }}
    >
      <div class="search-field">
        <Icon name="search" />
        <input
          type="search"
          data-search
          aria-label={label}
          placeholder={placeholder}
          value={text}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <kbd>/</kbd>
      </div>
      {hints.length > 0 && (
        <div class="hints">
          {hints.map((hint) => (
            <button key={hint} type="button" class="hint" onClick={() => search(hint)}>
              {hint}
            </button>
          ))}
        </div>
      )}
    </form>
  );
}

interface SelectProps {
  readonly label: string;
  readonly name: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
}

/** A select field whose value is in the address. */
export function SelectField({ label, name, value, options }: SelectProps) {
  return (
    <label class="select">
      <span>{label}</span>
      <select value={value} onChange={(event) => changeQuery({ [name]: event.currentTarget.value, cursor: null })}>
        {options.map(([it, text]) => (
          <option key={it} value={it}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
