import { useEffect } from "preact/hooks";
import { Dialog } from "../kit/dialog.tsx";
import { isTyping } from "../kit/keyboard.ts";
import { navigate } from "../kit/router.ts";
import { createStore, useStore } from "../kit/store.ts";
import { nextTheme } from "../kit/theme.ts";
import { Palette } from "./palette.tsx";
import { ALL_SECTIONS } from "./sections.ts";

const open = createStore<"palette" | "help" | null>(null);

export function openPalette(): void {
  open.set("palette");
}

export function openShortcutHelp(): void {
  open.set("help");
}

const GO_MS = 1_200;

/** Global keyboard shortcuts and the dialogs that they open. */
export function Shortcuts() {
  const shown = useStore(open);
  useEffect(() => {
    const onKey = keyListener();
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const close = () => open.set(null);
  if (shown === "palette") return <Palette onClose={close} />;
  return shown === "help" ? <ShortcutHelp onClose={close} /> : null;
}

function keyListener(): (event: KeyboardEvent) => void {
  let goneMs = 0;
  return (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return open.set(open.get() === "palette" ? null : "palette");
    }
    if (isTyping(event) || document.querySelector("dialog[open]") !== null) return;
    const isGoing = event.timeStamp - goneMs < GO_MS;
    goneMs = event.key === "g" ? event.timeStamp : 0;
    const section = isGoing ? ALL_SECTIONS.find(({ letter }) => letter === event.key) : undefined;
    if (section !== undefined) navigate(section.path);
    else if (event.key === "/") focusSearch(event);
    else if (event.key === "?") openShortcutHelp();
    else if (event.key === "t") nextTheme();
  };
}

/** On a screen without a search field, `/` opens the palette. */
function focusSearch(event: Event): void {
  event.preventDefault();
  const field = document.querySelector<HTMLInputElement>("[data-search]");
  if (field === null) openPalette();
  field?.focus();
  field?.select();
}

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ["Ctrl K", "find an event, or go to a screen"],
  ["/", "search on this screen"],
  ["j k", "next and previous row"],
  ["Enter", "open the row"],
  ["x", "select the row"],
  ["t", "theme: auto, light, dark"],
  ["Esc", "close a dialog"],
  ["?", "this list"],
];

function ShortcutHelp({ onClose }: { onClose(): void }) {
  const going = ALL_SECTIONS.map(({ letter, title }) => [`g ${letter}`, title] as const);
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose} look="wide">
      <div class="shortcut-lists">
        {[KEYS, going].map((list) => (
          <dl key={list[0]?.[0]} class="shortcuts">
            {list.map(([keys, what]) => (
              <div key={keys}>
                <dt>
                  {keys.split(" ").map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
        ))}
      </div>
    </Dialog>
  );
}
