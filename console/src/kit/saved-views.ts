import { recall, remember } from "./browser-memory.ts";
import { createStore } from "./store.ts";
import { readViews, type SavedView, VIEWS_MAX } from "./stored-views.ts";

const NAME = "views";
export const VIEW_NAME_MAX = 60;

export const savedViews = createStore<readonly SavedView[]>(readViews(recall(NAME)));

/** Replaces a view of the same name. Drops the oldest if there are too many. */
export function saveView(view: SavedView): void {
  store([...savedViews.get().filter(({ name }) => name !== view.name), view].slice(-VIEWS_MAX));
}

export function dropView(name: string): void {
  store(savedViews.get().filter((view) => view.name !== name));
}

function store(views: readonly SavedView[]): void {
  remember(NAME, JSON.stringify(views));
  savedViews.set(views);
}
