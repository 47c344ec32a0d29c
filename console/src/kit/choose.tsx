import type { ComponentChildren } from "preact";
import { plural } from "./format.ts";

type Chosen = ReadonlySet<string>;

interface BarProps {
  /** The kind of item, in the singular. */
  readonly what: string;
  /** The names of all listed items. */
  readonly shown: readonly string[];
  readonly chosen: Chosen;
  onChoose(chosen: Chosen): void;
  /** Buttons for the selected items. */
  readonly children: ComponentChildren;
}

/** The bar above a list of cards: selects all and holds the actions for the selected ones. */
export function ChooseBar({ what, shown, chosen, onChoose, children }: BarProps) {
  const count = shown.filter((it) => chosen.has(it)).length;
  return (
    <div class="choose-bar">
      <label>
        <input
          type="checkbox"
          aria-label="Select all shown"
          checked={shown.length > 0 && count === shown.length}
          onChange={(event) => onChoose(new Set(event.currentTarget.checked ? shown : []))}
        />
        {count === 0 ? `Select ${what}s to act on several at once` : `${plural(count, what)} selected`}
      </label>
      <span class="spring" />
      {count > 0 && <span class="row">{children}</span>}
    </div>
  );
}

interface BoxProps {
  readonly name: string;
  readonly chosen: Chosen;
  onChoose(chosen: Chosen): void;
}

export function ChooseBox({ name, chosen, onChoose }: BoxProps) {
  const toggle = () => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    onChoose(next);
  };
  return <input type="checkbox" aria-label={`Select ${name}`} checked={chosen.has(name)} onChange={toggle} />;
}
