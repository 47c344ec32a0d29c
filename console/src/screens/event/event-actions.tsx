import { useState } from "preact/hooks";
import { ActionButton, RoleNote } from "../../kit/action-button.tsx";
import { apiPost } from "../../kit/api.ts";
import { CliButton } from "../../kit/button.tsx";
import { askFor } from "../../kit/dialog.tsx";
import { quotedValue } from "../../kit/filter/filter-text.ts";
import { bytesText } from "../../kit/format.ts";
import { Hint } from "../../kit/hint.tsx";
import { PlainText } from "../../kit/plain-text.tsx";
import { session } from "../../kit/session.ts";
import { useStore } from "../../kit/store.ts";
import { toast } from "../../kit/toast.tsx";
import type { LetterChange, ShownEvent } from "../../kit/types.ts";
import { discardLine, eventShowLine } from "../cli-lines.ts";
import { askForKey } from "../keys/key-dialogs.tsx";
import { askForPlan } from "../replays/plan-dialog.tsx";
import { EditDialog } from "./edit-dialog.tsx";
import { isHead } from "./standing.ts";

/** The actions that the state of the event allows. */
export function EventActions({ event, reload }: { readonly event: ShownEvent; reload(): void }) {
  const { state, hold, id, key, source } = event;
  const [isEditing, setEditing] = useState(false);
  const head = isHead(event) && hold !== null && key !== null ? [{ pipeline: hold.pipeline, key, headId: id }] : null;
  return (
    <>
      {state !== "pending" && state !== "parked" && <RoleNote />}
      <CliButton command={eventShowLine(id, source)} />
      {state === "dead" && <Hint word="eventActions" />}
      {state === "dead" && (
        <>
          <ActionButton icon="bin" onClick={() => askToDiscard(event, reload)}>
            Discard
          </ActionButton>
          {head !== null && (
            <ActionButton icon="skip" onClick={() => askForKey("skip", head, reload)}>
              Skip
            </ActionButton>
          )}
          <EditButton event={event} onClick={() => setEditing(true)} />
        </>
      )}
      {state === "retrying" && head !== null && (
        <ActionButton icon="retry" kind="primary" onClick={() => askForKey("retry", head, reload)}>
          Retry now
        </ActionButton>
      )}
      {state === "dead" && <ReplayButton event={event} reload={reload} />}
      {state === "delivered" && (
        <ActionButton icon="replays" kind="primary" onClick={() => askForPlan(planWish(event), "this event")}>
          Replay again
        </ActionButton>
      )}
      {isEditing && <EditDialog event={event} onClose={() => setEditing(false)} onDone={reload} />}
    </>
  );
}

const EDITED_BYTES_MAX = 1_000_000;

/** Replaying a delivered event delivers it twice, so it goes through a plan. */
function planWish({ id, source }: ShownEvent) {
  return { action: "replay" as const, subject: "delivered" as const, ids: [id], q: `source:${quotedValue(source)}` };
}

/** One click replays one dead event; several go through a plan. */
function ReplayButton({ event, reload }: { readonly event: ShownEvent; reload(): void }) {
  const [isBusy, setBusy] = useState(false);
  const { id, source } = event;
  const replay = async () => {
    setBusy(true);
    try {
      const { report } = await apiPost<LetterChange>("/dead-letters/replay", { ids: [id], source });
      const left = report?.left[0];
      if (left === undefined) toast("A relay retries the event within seconds.");
      else toast(left.reason, { title: "Not replayed", tone: "bad" });
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), { tone: "bad" });
    }
    setBusy(false);
    reload();
  };
  return (
    <ActionButton icon="replays" kind="primary" isBusy={isBusy} onClick={() => void replay()}>
      Replay
    </ActionButton>
  );
}

function EditButton({ event, onClick }: { readonly event: ShownEvent; onClick(): void }) {
  const maySee = useStore(session)?.identity?.maySeePayloads ?? false;
  const size = event.payload?.bytes ?? 0;
  const whyNot = !maySee
    ? "You have no permission to see payloads, so you cannot edit one."
    : event.isGone
      ? "Its row no longer exists, so there is no payload to edit."
      : size > EDITED_BYTES_MAX
        ? `Its payload of ${bytesText(size)} is too large for a text field: use outbox-relay dlq edit.`
        : null;
  return (
    <ActionButton icon="edit" whyNot={whyNot} onClick={onClick}>
      Edit and replay
    </ActionButton>
  );
}

/** Asks for confirmation and discards one dead letter. */
function askToDiscard(event: ShownEvent, onDone: () => void): void {
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
