import { useMemo } from "preact/hooks";
import { CopyButton } from "./button.tsx";
import { jsonPieces } from "./json-text.ts";
import { Marked } from "./plain-text.tsx";

/** Longer texts are shown unformatted: formatting them would freeze the page. */
const SET_CHARS_MAX = 300_000;

/** Shows any text safely. JSON is formatted and coloured. */
export function CodeBlock({ text, label }: { readonly text: string; readonly label: string }) {
  const pieces = useMemo(() => (text.length > SET_CHARS_MAX ? null : jsonPieces(text)), [text]);
  const isCut = pieces?.at(-1)?.kind === "rest";
  return (
    <section class="code-block" aria-label={label}>
      <CopyButton text={text} label={`Copy ${label.toLowerCase()}`} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the element scrolls and must be reachable by keyboard */}
      <pre tabIndex={0}>
        {pieces === null ? (
          <Marked text={text} keepsLines />
        ) : (
          // Pieces have no key other than their index.
          pieces.map((piece, at) =>
            piece.kind === "space" || piece.kind === "mark" ? (
              piece.text
            ) : (
              <span key={at} class={`json-${piece.kind}`}>
                <Marked text={piece.text} keepsLines={piece.kind === "rest"} />
              </span>
            ),
          )
        )}
      </pre>
      {isCut && <p class="faint">Only the beginning is formatted; the rest is shown as it was written.</p>}
    </section>
  );
}
