import { Ago } from "../../kit/figures.tsx";
import { Card } from "../../kit/page.tsx";
import { PlainText } from "../../kit/plain-text.tsx";
import type { AuditEntry } from "../../kit/types.ts";

const VIA = { console: "in the console", cli: "with the CLI", api: "through the API", relay: "by the relay" } as const;

/** The audit entries of one event or plan, newest first. */
export function AuditCard({ entries, what }: { readonly entries: readonly AuditEntry[]; readonly what: string }) {
  return (
    <Card title="Audit">
      {entries.length === 0 ? (
        <p class="faint">No one has changed this {what}.</p>
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
                {entry.reason !== null && (
                  <p class="soft">
                    “<PlainText text={entry.reason} charsMax={500} />”
                  </p>
                )}
              </li>
            ))}
        </ol>
      )}
    </Card>
  );
}
