import { apiPost } from "../../kit/api.ts";
import { askFor } from "../../kit/dialog.tsx";
import { PlainText } from "../../kit/plain-text.tsx";
import { toast } from "../../kit/toast.tsx";
import type { LetterChange, ShownEvent } from "../../kit/types.ts";
import { discardLine } from "../cli-lines.ts";
import { isHead } from "./standing.ts";

/** Asks for confirmation and discards one dead letter. */
export function askToDiscard(event: ShownEvent, onDone: () => void): void {
  const { id, key, source, type } = event;
  askFor({
    title: "Discard this event",
    text: (
      <>
        <p>
          <strong>
            <PlainText text={type} />
          </strong>{" "}
          <code>
            <PlainText text={id} />
          </code>{" "}
          will never be sent. Its row stays in the outbox, and the console shows it as discarded.
        </p>
        {isHead(event) && (
          <p>
            The waiting events of the key{" "}
            <code>
              <PlainText text={key ?? ""} />
            </code>{" "}
            are delivered without it.
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
      if (left === undefined) toast("Event discarded.");
      else toast(left.reason, { title: "Not discarded", tone: "bad" });
      onDone();
    },
  });
}
