import { Button } from "../../kit/button.tsx";
import { timeText } from "../../kit/format.ts";
import { Icon } from "../../kit/icons.tsx";
import { changeQuery } from "../../kit/router.ts";
import type { EventPage } from "../../kit/types.ts";

/** How far a search came that had to look at row after row: what is older than that was not looked at. */
export function Coverage({ page: { covered, cursor } }: { readonly page: EventPage }) {
  const open = covered.filter(({ isComplete }) => !isComplete);
  if (open.length === 0) return null;
  return (
    <div class="notice info" role="status">
      <Icon name="search" />
      <div>
        <strong>Not all was searched.</strong> No index helps with this filter, so the newest rows were looked at one by
        one:
        <ul>
          {open.map(({ source, upTo }) => (
            <li key={source}>
              <code>{source}</code> {upTo === null ? "was not reached in time" : `back to ${timeText(upTo)}`}
            </li>
          ))}
        </ul>
      </div>
      {cursor !== null && (
        <Button icon="right" onClick={() => changeQuery({ cursor, live: null })}>
          Search further
        </Button>
      )}
    </div>
  );
}

/** Sources that could not be looked at, which kept nobody from showing the others. */
export function BrokenSources({ broken }: Pick<EventPage, "broken">) {
  if (broken.length === 0) return null;
  return (
    <div class="notice warn" role="status">
      <Icon name="unplug" />
      <div>
        <strong>
          {broken.length === 1 ? "One source is missing here." : `${broken.length} sources are missing here.`}
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
