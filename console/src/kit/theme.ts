import { createStore } from "./store.ts";

export const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const NAME = "outbox-relay.theme";

/** `auto` follows the system. */
export const theme = createStore<Theme>(stored());

export function setTheme(next: Theme): void {
  theme.set(next);
  show(next);
  try {
    localStorage.setItem(NAME, next);
  } catch {
    // Storage is blocked: the choice lasts until the page is closed.
  }
}

export function nextTheme(): void {
  setTheme(THEMES[(THEMES.indexOf(theme.get()) + 1) % THEMES.length] ?? "auto");
}

function stored(): Theme {
  try {
    const text = localStorage.getItem(NAME);
    return THEMES.find((it) => it === text) ?? "auto";
  } catch {
    return "auto";
  }
}

function show(it: Theme): void {
  if (it === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = it;
}

show(theme.get());
