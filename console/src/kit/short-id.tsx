const SHOWN_MAX = 20;

/** Ids that are made one after the other differ at their end: long ones are cut in the middle. */
export function ShortId({ id }: { readonly id: string }) {
  const text = id.length <= SHOWN_MAX ? id : `${id.slice(0, 8)}…${id.slice(-8)}`;
  return (
    <span class="mono nowrap" title={id}>
      {text}
    </span>
  );
}
