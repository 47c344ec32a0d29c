import { useState } from "preact/hooks";
import { ActionButton } from "../../kit/action-button.tsx";
import { CliButton } from "../../kit/button.tsx";
import { quotedValue } from "../../kit/filter/filter-text.ts";
import { bytesText } from "../../kit/format.ts";
import { RoleNote } from "../../kit/role-note.tsx";
import { session } from "../../kit/session.ts";
import { useStore } from "../../kit/store.ts";
import type { ShownEvent } from "../../kit/types.ts";
import { eventShowLine } from "../cli-lines.ts";
import { askForKey } from "../keys/key-dialogs.tsx";
import { askForPlan } from "../replays/plan-dialog.tsx";
import { askToDiscard } from "./discard-dialog.tsx";
import { EditDialog } from "./edit-dialog.tsx";
import { isHead } from "./standing.ts";

/** What can be done with this one, as it stands. */
export function EventActions({ event, reload }: { readonly event: ShownEvent; reload(): void }) {
  const { state, hold, id, key, source } = event;
  const [isEditing, setEditing] = useState(false);
  const head =
    isHead(event) && hold !== null && key !== null ? { pipeline: hold.pipeline, key, source, headId: id } : null;
  return (
    <>
      {state !== "pending" && state !== "parked" && <RoleNote />}
      <CliButton command={eventShowLine(id, source)} />
      {state === "dead" && (
        <>
          <ActionButton icon="bin" onClick={() => askToDiscard(event, reload)}>
            Discard
          </ActionButton>
          {head !== null && (
            <ActionButton icon="skip" onClick={() => askForKey("skip", head, reload)}>
              Skip it
            </ActionButton>
          )}
          <EditButton event={event} onClick={() => setEditing(true)} />
        </>
      )}
      {(state === "retrying" || state === "dead") && head !== null && (
        <ActionButton
          icon="retry"
          kind={state === "dead" ? "plain" : "primary"}
          onClick={() => askForKey("retry", head, reload)}
        >
          Retry now
        </ActionButton>
      )}
      {(state === "dead" || state === "delivered") && (
        <ActionButton icon="replays" kind="primary" onClick={() => askForPlan(planWish(event), "this event")}>
          {state === "dead" ? "Replay" : "Replay again"}
        </ActionButton>
      )}
      {isEditing && <EditDialog event={event} onClose={() => setEditing(false)} onDone={reload} />}
    </>
  );
}

const EDITED_BYTES_MAX = 1_000_000;

function planWish({ id, source, state }: ShownEvent) {
  const subject = state === "dead" ? ("dead" as const) : ("delivered" as const);
  return { action: "replay" as const, subject, ids: [id], q: `source:${quotedValue(source)}` };
}

function EditButton({ event, onClick }: { readonly event: ShownEvent; onClick(): void }) {
  const maySee = useStore(session)?.identity?.maySeePayloads ?? false;
  const size = event.payload?.bytes ?? 0;
  const whyNot = !maySee
    ? "You may not see payloads, so you cannot edit one."
    : event.isGone
      ? "Its row is gone: there is nothing to edit."
      : size > EDITED_BYTES_MAX
        ? `It has ${bytesText(size)}, too much for a text field: use outbox-relay dlq edit.`
        : null;
  return (
    <ActionButton icon="edit" whyNot={whyNot} onClick={onClick}>
      Edit and replay
    </ActionButton>
  );
}
