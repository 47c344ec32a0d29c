import { Marked } from "./plain-text.tsx";
import { visibleText } from "./visible-text.ts";

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
