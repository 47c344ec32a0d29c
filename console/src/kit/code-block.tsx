import { useMemo } from "preact/hooks";
import { CopyButton } from "./button.tsx";
import { jsonPieces } from "./json-text.ts";

/** Longer ones are shown as they are: setting them in lines would freeze the page. */
const SET_CHARS_MAX = 300_000;

/** Text as text, whatever is in it. JSON is set in lines and coloured. */
export function CodeBlock({ text, label }: { readonly text: string; readonly label: string }) {
  const pieces = useMemo(() => (text.length > SET_CHARS_MAX ? null : jsonPieces(text)), [text]);
  return (
    <section class="code-block" aria-label={label}>
      <CopyButton text={text} label={`Copy ${label.toLowerCase()}`} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach that */}
      <pre tabIndex={0}>
        {pieces === null
          ? text
          : // A text has no other key than the place.
            pieces.map((piece, at) =>
              piece.kind === "space" || piece.kind === "mark" ? (
                piece.text
              ) : (
                <span key={at} class={`json-${piece.kind}`}>
                  {piece.text}
                </span>
              ),
            )}
      </pre>
    </section>
  );
}
