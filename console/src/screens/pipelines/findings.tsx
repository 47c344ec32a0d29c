import { Icon } from "../../kit/icons.tsx";
import type { Finding } from "../../kit/types.ts";

interface FindingListProps {
  readonly label: string;
  readonly findings: readonly Finding[];
}

/** What the doctor found, with what to do. */
export function FindingList({ label, findings }: FindingListProps) {
  if (findings.length === 0) return null;
  return (
    <section class="problems" aria-label={label}>
      {findings.map(({ check, fix, severity, what }) => (
        <div key={check + what} class={severity === "error" ? "bad" : ""}>
          <Icon name={severity === "error" ? "cross" : "dead"} />
          <div>
            <strong>{what}</strong>
            <p>{fix}</p>
          </div>
        </div>
      ))}
    </section>
  );
}
