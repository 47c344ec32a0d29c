import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { countText } from "./format.ts";
import { cutText, visibleParts, visibleText } from "./visible-text.ts";

/** Characters shown in a table cell, and in its tooltip. */
const CELL_CHARS = 120;
const TITLE_CHARS = 1_000;

interface PlainTextProps {
  readonly text: string;
  readonly charsMax?: number;
  /** Keeps line breaks, for payloads. */
  readonly keepsLines?: boolean;
}

/** Untrusted text: truncated, with marks for invisible characters. The tooltip shows more of it. */
export function PlainText({ text, charsMax = CELL_CHARS }: PlainTextProps) {
  if (text === "") return <span class="faint">(empty)</span>;
  if (text.length <= charsMax) return <Marked text={text} />;
  return (
    <span title={visibleText(text, TITLE_CHARS)}>
      <Marked text={cutText(text, charsMax)} />
    </span>
  );
}

/** Untrusted text that can be expanded. */
export function LongText({ text, charsMax = CELL_CHARS }: PlainTextProps) {
  const [isAll, setAll] = useState(false);
  if (text.length <= charsMax) return <PlainText text={text} charsMax={charsMax} />;
  return (
    <>
      {isAll ? <Marked text={text} /> : <PlainText text={text} charsMax={charsMax} />}{" "}
      <Button kind="quiet" onClick={() => setAll(!isAll)}>
        {isAll ? "Show less" : `Show all ${countText(text.length)} characters`}
      </Button>
    </>
  );
}

/** `: the reason`, if the operator gave one. */
export function Because({ reason }: { readonly reason: string | null }) {
  if (reason === null) return null;
  return (
    <>
      : <PlainText text={reason} charsMax={500} />
    </>
  );
}

/** Binary data that decodes as text may consist of marks only: colouring each would slow the page down. */
const PARTS_MAX = 2_000;

/** The whole text with marks. Isolated, so that right-to-left characters do not reorder the text around it. */
export function Marked({ text, keepsLines = false }: Omit<PlainTextProps, "charsMax">) {
  const parts = visibleParts(text, keepsLines);
  if (parts.length > PARTS_MAX) return <bdi>{parts.map((part) => part.text).join("")}</bdi>;
  return (
    <bdi>
      {parts.map(({ text: shown, isMark }, at) =>
        isMark ? (
          <span key={at} class="hidden-mark">
            {shown}
          </span>
        ) : (
          shown
        ),
      )}
    </bdi>
  );
}

const SHOWN_MAX = 20;

/** Truncates long ids in the middle: sequential ids differ at their end. */
export function ShortId({ id }: { readonly id: string }) {
  const text = id.length <= SHOWN_MAX ? id : `${id.slice(0, 8)}…${id.slice(-8)}`;
  return (
    <span class="mono nowrap" title={visibleText(id)}>
      <Marked text={text} />
    </span>
  );
}
