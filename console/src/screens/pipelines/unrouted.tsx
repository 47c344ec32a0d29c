import { Badge } from "../../kit/badge.tsx";
import { Count, Span } from "../../kit/figures.tsx";
import type { Status } from "../../kit/types.ts";

/** Events that no route matches: no relay delivers them until a route is added. */
export function UnroutedRow({ it }: { readonly it: Status["unrouted"][number] }) {
  return (
    <li class="card pipeline">
      <div class="pipeline-head">
        <h2>{it.source}</h2>
        <Badge tone="bad">unrouted</Badge>
      </div>
      <div class="pipeline-body">
        <p class="aside">No route matches these events. They wait until you add a route or delete the rows.</p>
        <dl class="figures">
          <div>
            <dt>unrouted</dt>
            <dd>
              <Count value={it.events} isEstimate={it.isEstimate} />
            </dd>
          </div>
          <div>
            <dt>oldest</dt>
            <dd>
              <Span ms={it.oldestAgeMs} />
            </dd>
          </div>
        </dl>
      </div>
    </li>
  );
}
