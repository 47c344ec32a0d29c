import { useId } from "preact/hooks";
import { WORDS } from "./words.ts";

export type HintWord = keyof typeof WORDS;

/** A question mark that explains a term on click, Enter or tap; Esc closes it. */
export function Hint({ word }: { readonly word: HintWord }) {
  const id = useId();
  const [about, text] = WORDS[word];
  return (
    <span class="hint-place">
      <button type="button" class="hint-mark" aria-label={about} aria-describedby={id} popovertarget={id}>
        ?
      </button>
      <span id={id} class="hint-text" popover="auto">
        {text}
      </span>
    </span>
  );
}
