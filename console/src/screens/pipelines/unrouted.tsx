import { StateBadge } from "../../kit/badge.tsx";
import { Count, Span } from "../../kit/figures.tsx";
import { quotedValue } from "../../kit/filter/filter-text.ts";
import type { Finding, Status } from "../../kit/types.ts";
import { eventsHref } from "../links.ts";
import { FindingList } from "./findings.tsx";

interface UnroutedProps {
  readonly it: Status["unrouted"][number];
  readonly findings: readonly Finding[];
}

/** Events that no route matches: no relay delivers them until a route is added. */
export function UnroutedRow({ it, findings }: UnroutedProps) {
  return (
    <li class="card pipeline">
      <div class="pipeline-head">
        <h2>{it.source}</h2>
        <StateBadge state="unrouted" />
      </div>
      <div class="pipeline-body no-lanes">
        <p class="aside">No route matches these events. They wait until you add a route or delete the rows.</p>
        <dl class="figures">
          <div>
            <dt>unrouted</dt>
            <dd>
              <a href={eventsHref(`state:unrouted source:${quotedValue(it.source)}`)}>
                <Count value={it.events} isEstimate={it.isEstimate} />
              </a>
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
      <FindingList label={`Findings about unrouted events of ${it.source}`} findings={findings} />
    </li>
  );
}
