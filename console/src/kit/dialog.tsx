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

/** The browser's own modal: it keeps the focus inside and ends by Esc. Whoever had the focus gets it back. */
export function Dialog({ title, onClose, children, look }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    const dialog = element.current;
    dialog?.showModal();
    return () => {
      dialog?.close();
      const isThere = before instanceof HTMLElement && before.isConnected && before !== document.body;
      const heir = isThere ? before : document.getElementById("main");
      heir?.focus({ preventScroll: true });
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc closes it; the click is one beside it
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
  /** What will happen, and to what. */
  readonly text: ComponentChildren;
  /** On the button: a verb. */
  readonly confirm: string;
  readonly isDangerous?: boolean;
  /** Whether a person must, may or need not say why. */
  readonly reason?: "required" | "optional" | "none";
  /** A number to be given with it. */
  readonly amount?: { readonly label: string; readonly help: string; readonly initial: string };
  command?(reason: string, amount: string): string;
  /** What it throws is shown inside the dialog, which stays open. */
  run(reason: string, amount: string): Promise<void>;
}

const question = createStore<Question | null>(null);

/** Asks before something is done. */
export function askFor(it: Question): void {
  question.set(it);
}

/** The shell shows one of these. */
export function QuestionDialog() {
  const it = useStore(question);
  return it === null ? null : <AskedQuestion key={it.title} it={it} onClose={() => question.set(null)} />;
}

/** What is no number must not become none. */
function isAmount(text: string): boolean {
  const value = Number(text);
  return text.trim() === "" || (Number.isFinite(value) && value > 0);
}

function AskedQuestion({ it, onClose }: { readonly it: Question; onClose(): void }) {
  const [reason, setReason] = useState("");
  const [amount, setAmount] = useState(it.amount?.initial ?? "");
  const wants = it.reason ?? "optional";
  const isWrong = !isAmount(amount);
  const isReady = !isWrong && (wants !== "required" || reason.trim() !== "");
  const action = useAction(async () => {
    await it.run(reason.trim(), amount.trim());
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
        {it.amount !== undefined && (
          <label class="field">
            <span>{it.amount.label}</span>
            <input
              inputMode="decimal"
              value={amount}
              aria-invalid={isWrong}
              onInput={(event) => setAmount(event.currentTarget.value)}
            />
            <small class={isWrong ? "bad" : ""}>{isWrong ? "A number above zero, or nothing." : it.amount.help}</small>
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
            <small>The audit keeps it, with your name.</small>
          </label>
        )}
        {action.error !== null && <ErrorBox error={action.error} />}
        <div class="dialog-actions">
          {it.command !== undefined && <CliButton command={it.command(reason.trim(), amount.trim())} />}
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
