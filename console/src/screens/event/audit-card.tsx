import { Ago } from "../../kit/figures.tsx";
import { Card } from "../../kit/page.tsx";
import type { AuditEntry } from "../../kit/types.ts";

const VIA = { console: "here", cli: "by command line", api: "by API", relay: "by the relay" } as const;

/** What people did with one event or plan, the last first. */
export function AuditCard({ entries, what }: { readonly entries: readonly AuditEntry[]; readonly what: string }) {
  return (
    <Card title="What people did">
      {entries.length === 0 ? (
        <p class="faint">Nobody has touched this {what}.</p>
      ) : (
        <ol class="timeline">
          {entries
            .toSorted((left, right) => (left.at < right.at ? 1 : -1))
            .map((entry) => (
              <li key={entry.id}>
                <strong>{entry.action.replaceAll("-", " ")}</strong> {entry.actor}
                <div class="faint">
                  <Ago at={entry.at} />, {VIA[entry.via]}
                </div>
                {entry.reason !== null && <p class="soft">“{entry.reason}”</p>}
              </li>
            ))}
        </ol>
      )}
    </Card>
  );
}
