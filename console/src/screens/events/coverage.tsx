import { Button } from "../../kit/button.tsx";
import { countText, timeText } from "../../kit/format.ts";
import { Icon } from "../../kit/icons.tsx";
import { changeQuery } from "../../kit/router.ts";
import type { EventPage } from "../../kit/types.ts";
import { eventsHref } from "../links.ts";

/** How far a search without an index has scanned. Older rows were not scanned. */
export function Coverage({ page: { covered, cursor } }: { readonly page: EventPage }) {
  const open = covered.filter(({ isComplete }) => !isComplete);
  if (open.length === 0) return null;
  return (
    <div class="notice info" role="status">
      <Icon name="search" />
      <div>
        <strong>Partial result.</strong> No index supports this filter, so the search scanned only the newest rows:
        <ul>
          {open.map((it) => (
            <li key={it.source}>
              <code>{it.source}</code> {lookText(it)}
            </li>
          ))}
        </ul>
      </div>
      {cursor !== null && (
        <Button icon="right" onClick={() => changeQuery({ cursor, live: null })}>
          Continue the search
        </Button>
      )}
    </div>
  );
}

/** `scanned the newest 50 000 of about 300 000 events, back to 2026-01-31 12:00:00`. */
function lookText({ looked, total, upTo }: EventPage["covered"][number]): string {
  if (upTo === null) return "was not scanned within the time limit";
  const back = `back to ${timeText(upTo)}`;
  if (looked === null) return back;
  const share = total === null ? "" : ` of about ${countText(total)}`;
  return `scanned the newest ${countText(looked)}${share} events, ${back}`;
}

/** Few or no matches: offers a search in payloads, which has to scan rows. */
export function AlsoInPayloads({ page: { also, events } }: { readonly page: EventPage }) {
  if (also === null) return null;
  return (
    <div class="notice info" role="status">
      <Icon name="search" />
      <div>{events.length === 0 ? "No id, key or correlation id matches." : "Payloads may hold more matches."}</div>
      <Button icon="search" href={eventsHref(also)}>
        Search payloads
      </Button>
    </div>
  );
}

/** Sources that could not be searched. The results of the others are shown. */
export function BrokenSources({ broken }: Pick<EventPage, "broken">) {
  if (broken.length === 0) return null;
  return (
    <div class="notice warn" role="status">
      <Icon name="unplug" />
      <div>
        <strong>
          {broken.length === 1
            ? "One source could not be searched."
            : `${broken.length} sources could not be searched.`}
        </strong>
        <ul>
          {broken.map(({ source, reason }) => (
            <li key={source}>
              <code>{source}</code>: {reason}
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}
