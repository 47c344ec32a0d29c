import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button, CliButton } from "./button.tsx";
import { ErrorBox } from "./error-box.tsx";
import { createStore, useStore } from "./store.ts";
import { useAction } from "./use-api.ts";

interface DialogProps {
  readonly title: string;
  onClose(): void;
  readonly children: ComponentChildren;
  readonly look?: "wide" | "palette";
}

/** The browser's modal dialog: it traps the focus, closes with Esc, and returns the focus afterwards. */
export function Dialog({ title, onClose, children, look }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    const dialog = element.current;
    dialog?.showModal();
    return () => {
      dialog?.close();
      const isThere = before instanceof HTMLElement && before.isConnected && before !== document.body;
      const next = isThere ? before : document.getElementById("main");
      next?.focus({ preventScroll: true });
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc closes it; the click is on the backdrop
    <dialog
      ref={element}
      class={look ?? ""}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === element.current && onClose()}
    >
      <div class="dialog-inside">
        {look !== "palette" && <h2>{title}</h2>}
        {children}
      </div>
    </dialog>
  );
}

interface Question {
  readonly title: string;
  /** What the action does, and to what. */
  readonly text: ComponentChildren;
  /** The label of the button: a verb. */
  readonly confirm: string;
  readonly isDangerous?: boolean;
  /** Whether the dialog asks for a reason. */
  readonly reason?: "required" | "optional" | "none";
  /** An optional number field. */
  readonly amount?: { readonly label: string; readonly help: string; readonly initial: string };
  /** An optional multi-line field with its validation. */
  readonly content?: {
    readonly label: string;
    readonly help: string;
    readonly initial: string;
    problemOf(text: string): string | null;
  };
  command?(reason: string, amount: string, content: string): string;
  /** If it throws, the dialog stays open and shows the error. */
  run(reason: string, amount: string, content: string): Promise<void>;
}

const question = createStore<Question | null>(null);

/** Opens a dialog that asks for confirmation. */
export function askFor(it: Question): void {
  question.set(it);
}

/** The shell renders this once. */
export function QuestionDialog() {
  const it = useStore(question);
  return it === null ? null : <AskedQuestion key={it.title} it={it} onClose={() => question.set(null)} />;
}

/** Invalid input must not be treated as an empty field. */
function isAmount(text: string): boolean {
  const value = Number(text);
  return text.trim() === "" || (Number.isFinite(value) && value > 0);
}

function AskedQuestion({ it, onClose }: { readonly it: Question; onClose(): void }) {
  const [reason, setReason] = useState("");
  const [amount, setAmount] = useState(it.amount?.initial ?? "");
  const [content, setContent] = useState(it.content?.initial ?? "");
  const wants = it.reason ?? "optional";
  const isWrong = !isAmount(amount);
  const problem = it.content?.problemOf(content) ?? null;
  const isReady = !isWrong && problem === null && (wants !== "required" || reason.trim() !== "");
  const action = useAction(async () => {
    await it.run(reason.trim(), amount.trim(), content);
    onClose();
  });
  return (
    <Dialog title={it.title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) void action.run();
        }}
      >
        <div class="dialog-text">{it.text}</div>
        {it.content !== undefined && (
          <ContentField about={it.content} content={content} problem={problem} setContent={setContent} />
        )}
        {it.amount !== undefined && (
          <label class="field">
            <span>{it.amount.label}</span>
            <input
              inputMode="decimal"
              value={amount}
              aria-invalid={isWrong}
              onInput={(event) => setAmount(event.currentTarget.value)}
            />
            <small class={isWrong ? "bad" : ""}>
              {isWrong ? "Enter a number above zero, or leave it empty." : it.amount.help}
            </small>
          </label>
        )}
        {wants !== "none" && (
          <label class="field">
            <span>{wants === "required" ? "Reason" : "Reason (optional)"}</span>
            <input
              value={reason}
              required={wants === "required"}
              maxLength={500}
              onInput={(event) => setReason(event.currentTarget.value)}
            />
            <small>Recorded in the audit with your name.</small>
          </label>
        )}
        {action.error !== null && <ErrorBox error={action.error} />}
        <div class="dialog-actions">
          {it.command !== undefined && <CliButton command={it.command(reason.trim(), amount.trim(), content)} />}
          <span class="spring" />
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            kind={it.isDangerous ? "danger" : "primary"}
            isBusy={action.isBusy}
            isDisabled={!isReady}
          >
            {it.confirm}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface ContentProps {
  readonly about: NonNullable<Question["content"]>;
  readonly content: string;
  readonly problem: string | null;
  setContent(content: string): void;
}

/** Shows the problem only after the user has changed the text. */
function ContentField({ about: { help, initial, label }, content, problem, setContent }: ContentProps) {
  const isWrong = problem !== null && content !== initial;
  return (
    <label class="field">
      <span>{label}</span>
      <textarea
        rows={5}
        value={content}
        spellcheck={false}
        aria-invalid={isWrong}
        onInput={(event) => setContent(event.currentTarget.value)}
      />
      <small class={isWrong ? "bad" : ""}>{isWrong ? problem : help}</small>
    </label>
  );
}
