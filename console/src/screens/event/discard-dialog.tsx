import { apiPost } from "../../kit/api.ts";
import { askFor } from "../../kit/dialog.tsx";
import { toast } from "../../kit/toast.tsx";
import type { LetterChange, ShownEvent } from "../../kit/types.ts";
import { discardLine } from "../cli-lines.ts";
import { isHead } from "./standing.ts";

/** Gives one dead letter up. */
export function askToDiscard(event: ShownEvent, onDone: () => void): void {
  const { id, key, source, type } = event;
  askFor({
    title: "Discard this event",
    text: (
      <>
        <p>
          <strong>{type}</strong> <code>{id}</code> is never sent. Its row stays in the outbox, and here it is shown as
          discarded.
        </p>
        {isHead(event) && (
          <p>
            What waits behind it in the key <code>{key}</code> goes on without it.
          </p>
        )}
      </>
    ),
    confirm: "Discard it",
    isDangerous: true,
    reason: "required",
    command: (reason) => discardLine(id, source, reason),
    run: async (reason) => {
      const { report } = await apiPost<LetterChange>("/dead-letters/discard", { ids: [id], source, reason });
      const left = report?.left[0];
      if (left === undefined) toast("It is discarded, and never sent.");
      else toast(left.reason, { title: "It was left as it is", tone: "bad" });
      onDone();
    },
  });
}
