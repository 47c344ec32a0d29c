import type { ClaimedEvent } from "../ports/queue-store.ts";
import type { PipelineContext } from "./context.ts";
import type { HoldBook } from "./hold-book.ts";
import type { Entry } from "./lane-queue.ts";
import type { Silences } from "./silences.ts";
import { translate } from "./translation.ts";

type Past = Pick<Entry, "hasFailed" | "isAlone" | "silences" | "silentSinceMs">;

/** What is known of an event from earlier tries, also those of a former life of its lane. */
export function pastOf(context: PipelineContext, id: string, holds: HoldBook, silences: Silences): Past {
  const { destination, name: pipeline } = context;
  const silence = silences.ofEvent(id);
  return {
    hasFailed: destination.hasFailed({ pipeline, id }),
    isAlone: silence !== undefined || destination.goesAlone({ pipeline, id }),
    silences: silence?.times ?? 0,
    silentSinceMs: holds.get(id)?.silentSinceMs ?? silence?.sinceMs ?? null,
  };
}

/** For a held event that had no place: one whose topic takes nothing has none before the next probe. */
export function untilPlaceMs(context: PipelineContext, event: ClaimedEvent): number {
  const { message } = translate(context, event);
  return context.timing.pollIntervalMs + (message === null ? 0 : context.destination.untilProbeMs(message.topic));
}
