import { Icon } from "./icons.tsx";
import { createStore, useStore } from "./store.ts";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly title: string | null;
  readonly tone: "good" | "bad";
}

interface ToastOptions {
  readonly title?: string;
  readonly tone?: "good" | "bad";
}

const STAYS_MS = 6_000;
const toasts = createStore<readonly Toast[]>([]);
let lastId = 0;

/** A short message about a finished action; screen readers read it. */
export function toast(text: string, { title, tone = "good" }: ToastOptions = {}): void {
  lastId += 1;
  const id = lastId;
  toasts.set([...toasts.get().slice(-3), { id, text, title: title ?? null, tone }]);
  setTimeout(() => drop(id), STAYS_MS);
}

function drop(id: number): void {
  toasts.set(toasts.get().filter((it) => it.id !== id));
}

/** The shell renders this once. */
export function Toasts() {
  return (
    <output class="toasts" aria-live="polite">
      {useStore(toasts).map(({ id, text, title, tone }) => (
        <div key={id} class={`toast ${tone}`}>
          <Icon name={tone === "good" ? "check" : "cross"} />
          <div>
            {title !== null && <strong>{title}</strong>}
            <div>{text}</div>
          </div>
          <button type="button" class="button quiet square" aria-label="Dismiss" onClick={() => drop(id)}>
            <Icon name="cross" />
          </button>
        </div>
      ))}
    </output>
  );
}
