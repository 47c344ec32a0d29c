import { Marked } from "../../kit/plain-text.tsx";
import type { Payload } from "../../kit/types.ts";
import { diffRows, setOut } from "./line-change.ts";

const ELEMENTS = { "−": "del", "+": "ins", " ": "span", "…": "span" } as const;

/** A line-by-line diff of two texts. JSON is pretty-printed first. */
export function Diff({
  before,
  after,
  label,
}: {
  readonly before: string;
  readonly after: string;
  readonly label: string;
}) {
  const rows = diffRows(setOut(before), setOut(after));
  if (rows.length === 0) return <p class="faint">No differences.</p>;
  return (
    <section aria-label={label}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach that */}
      <pre class="diff" tabIndex={0}>
        {rows.map(({ sign, text }, place) => {
          const Line = ELEMENTS[sign];
          return (
            <Line key={`${place} ${sign}`}>
              {sign} <Marked text={text} keepsLines />
              {"\n"}
            </Line>
          );
        })}
      </pre>
    </section>
  );
}

/** The available part of a truncated payload. */
export function payloadSays(payload: Payload): string {
  return payload.isTruncated ? `${payload.text}\n… (truncated)` : payload.text;
}
