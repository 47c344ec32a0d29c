import { StateBadge } from "../badge.tsx";
import { placeHash, type QueryValues } from "../place.ts";
import { usePlace } from "../router.ts";
import { fieldValue, withField } from "./filter-text.ts";

interface FilterChipsProps {
  readonly label: string;
  readonly field: string;
  readonly values: readonly string[];
  /** The other parameters of the address. */
  readonly query: QueryValues;
  readonly q: string;
}

/** Common filters as links; a second click removes one. */
export function FilterChips({ label, field, values, query, q }: FilterChipsProps) {
  const { path } = usePlace();
  const chosen = fieldValue(q, field);
  if (values.length === 0) return null;
  return (
    <nav class="chips" aria-label={label}>
      {values.map((value) => {
        const isOn = value === chosen;
        const href = placeHash(path, { ...query, q: withField(q, field, isOn ? null : value), cursor: null });
        return (
          <a key={value} class={`chip${isOn ? " on" : ""}`} href={href} aria-current={isOn ? "true" : undefined}>
            {field === "state" ? <StateBadge state={value} /> : value}
          </a>
        );
      })}
    </nav>
  );
}
