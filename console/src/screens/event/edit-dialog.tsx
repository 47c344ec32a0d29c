import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, apiPost } from "../../kit/api.ts";
import { Button, CliButton } from "../../kit/button.tsx";
import { Dialog } from "../../kit/dialog.tsx";
import { ErrorBox, Skeleton } from "../../kit/error-box.tsx";
import { segment } from "../../kit/place.ts";
import { toast } from "../../kit/toast.tsx";
import type { Payload, ShownEvent } from "../../kit/types.ts";
import { useAction } from "../../kit/use-api.ts";
import { editLine } from "../cli-lines.ts";
import { Diff } from "./diff.tsx";
import { headersIn, headersText } from "./header-rows.ts";
import { isJson, jsonProblem, lineChange, setOut } from "./line-change.ts";
import { fetchPayload } from "./payload-bytes.ts";

interface EditProps {
  readonly event: ShownEvent;
  onClose(): void;
  onDone(): void;
}

/** Edits the stored payload: the page may show it truncated or with hidden values. */
export function EditDialog({ event, onClose, onDone }: EditProps) {
  const [stored, setStored] = useState<Pick<Payload, "encoding" | "text"> | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  // A click beside the dialog, or Esc, must not discard unsaved edits.
  const isTouched = useRef(false);
  useEffect(() => {
    fetchPayload(event).then(setStored, (failure: unknown) =>
      setError(failure instanceof ApiError ? failure : new ApiError(0, "UNEXPECTED", String(failure), null)),
    );
  }, [event.id, event.source]);
  return (
    <Dialog title="Edit and replay" look="wide" onClose={() => isTouched.current || onClose()}>
      {error !== null && (
        <>
          <ErrorBox error={error} />
          <div class="dialog-actions">
            <span class="spring" />
            <Button onClick={onClose}>Close</Button>
          </div>
        </>
      )}
      {stored === null && error === null && <Skeleton />}
      {stored !== null && (
        <Editor event={event} stored={stored} isTouched={isTouched} onClose={onClose} onDone={onDone} />
      )}
    </Dialog>
  );
}

interface EditorProps extends EditProps {
  readonly stored: Pick<Payload, "encoding" | "text">;
  readonly isTouched: { current: boolean };
}

/** The edited text, its first problem, and its difference from the stored payload. */
function useEdited({ event, stored, isTouched }: EditorProps) {
  const wasJson = stored.encoding === "utf-8" && isJson(stored.text);
  const before = wasJson ? setOut(stored.text) : stored.text;
  const headersBefore = headersText(event.headers);
  const [text, setText] = useState(before);
  const [headers, setHeaders] = useState(headersBefore);
  const hasHeaders = headers !== headersBefore;
  isTouched.current = text !== before || hasHeaders;
  const problem = problemOf(text, hasHeaders ? headers : "", wasJson);
  const change = lineChange(before, wasJson && problem === null ? setOut(text) : text);
  const body = {
    payload: { encoding: stored.encoding, text: change === null ? stored.text : text },
    ...(hasHeaders ? { headers: headersIn(headers) } : {}),
    source: event.source,
  };
  const isReady = problem === null && (change !== null || hasHeaders);
  return { before, text, setText, headers, setHeaders, wasJson, problem, change, body, isReady };
}

function Editor(props: EditorProps) {
  const { event, onClose, onDone } = props;
  const edited = useEdited(props);
  const { change, problem, wasJson } = edited;
  const [reason, setReason] = useState("");
  const action = useAction(async () => {
    await apiPost(`/dead-letters/${segment(event.id)}/edit`, { ...edited.body, reason: reason.trim() });
    toast("Event changed. The relay retries it.");
    onClose();
    onDone();
  });
  const isReady = edited.isReady && reason.trim() !== "";
  return (
    <form
      onSubmit={(it) => {
        it.preventDefault();
        if (isReady) void action.run();
      }}
    >
      <p class="soft">
        The relay sends the event as you edit it here; its dead letter keeps the original. Numbers keep all their
        digits.
      </p>
      <Texts edited={edited} encoding={props.stored.encoding} />
      {problem !== null && (
        <p class="filter-problem" role="alert">
          {problem}
        </p>
      )}
      {problem === null && change !== null && <Diff label="Changes" before={edited.before} after={edited.text} />}
      <label class="field">
        <span>Reason</span>
        <input value={reason} required maxLength={500} onInput={(it) => setReason(it.currentTarget.value)} />
        <small>Recorded in the audit with your name.</small>
      </label>
      {action.error !== null && <ErrorBox error={action.error} />}
      <div class="dialog-actions">
        {wasJson && problem === null && (
          <Button kind="quiet" onClick={() => edited.setText(setOut(edited.text))}>
            Format JSON
          </Button>
        )}
        <CliButton command={editLine(event.id, event.source, reason.trim())} />
        <span class="spring" />
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind="primary" isBusy={action.isBusy} isDisabled={!isReady}>
          Save and replay
        </Button>
      </div>
    </form>
  );
}

interface TextsProps {
  readonly edited: ReturnType<typeof useEdited>;
  readonly encoding: Payload["encoding"];
}

function Texts({ edited, encoding }: TextsProps) {
  const { before, headers, setHeaders, setText, text, wasJson } = edited;
  return (
    <>
      <label class="field">
        <span>Payload{encoding === "base64" ? ", as base64" : wasJson ? ", as JSON" : ""}</span>
        <textarea
          class="payload"
          rows={rowsFor(before)}
          value={text}
          spellcheck={false}
          onInput={(it) => setText(it.currentTarget.value)}
        />
      </label>
      <details>
        <summary>Headers</summary>
        <textarea
          aria-label="Headers, one name: value per line"
          value={headers}
          spellcheck={false}
          onInput={(it) => setHeaders(it.currentTarget.value)}
        />
      </details>
    </>
  );
}

/** Rows of the text area: as many as the text needs, within bounds. */
function rowsFor(text: string): number {
  return Math.max(6, Math.min(18, text.split("\n").length + 1));
}

/** The API sends this in place of a hidden value. */
const HIDDEN = "[redacted]";

function problemOf(text: string, headers: string, wasJson: boolean): string | null {
  const noJson = wasJson ? jsonProblem(text) : null;
  if (noJson !== null) return `Invalid JSON: ${noJson}`;
  const read = headersIn(headers);
  if ("line" in read && typeof read.line === "number")
    return `Line ${read.line} of the headers is not in the form name: value`;
  if (!Object.values(read).includes(HIDDEN)) return null;
  return `A header is hidden from you and would be stored as ${HIDDEN}: leave the headers unchanged`;
}
