import { Ago } from "../../kit/figures.tsx";
import { Icon } from "../../kit/icons.tsx";
import { PlainText } from "../../kit/plain-text.tsx";
import type { HealthCause } from "../../kit/types.ts";

const SHOWN = 3;

/** Groups causes of the same kind: an unreachable database affects every source. */
export function Causes({ causes }: { readonly causes: readonly HealthCause[] }) {
  if (causes.length === 0) return null;
  const byKind = Map.groupBy(causes, ({ code, fix }) => JSON.stringify([code, fix]));
  return (
    <section class="problems" aria-label="Causes">
      {[...byKind].map(([kind, alike]) => (
        <div key={kind} class={alike[0]?.grade === "attention" ? "" : "bad"}>
          <Icon name={alike[0]?.grade === "attention" ? "dead" : "cross"} />
          <div>
            {alike.slice(0, SHOWN).map((cause) => (
              <CauseLine key={cause.what} cause={cause} />
            ))}
            {alike.length > SHOWN && (
              <details>
                <summary>and {alike.length - SHOWN} more</summary>
                {alike.slice(SHOWN).map((cause) => (
                  <CauseLine key={cause.what} cause={cause} />
                ))}
              </details>
            )}
            {alike[0]?.fix != null && <p>{alike[0].fix}</p>}
          </div>
        </div>
      ))}
    </section>
  );
}

function CauseLine({ cause: { link, runbook, since, what } }: { readonly cause: HealthCause }) {
  return (
    <div>
      <strong>
        <a href={link.slice(1)}>
          <PlainText text={what} charsMax={500} />
        </a>
        {since !== null && (
          <>
            {" · "}
            <Ago at={since} />
          </>
        )}
      </strong>
      {runbook !== undefined && <span class="faint"> {runbook}</span>}
    </div>
  );
}
