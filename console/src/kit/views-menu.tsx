import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Icon } from "./icons.tsx";
import { placeHash } from "./place.ts";
import { PlainText } from "./plain-text.tsx";
import { usePlace } from "./router.ts";
import { dropView, savedViews, saveView, VIEW_NAME_MAX } from "./saved-views.ts";
import { useStore } from "./store.ts";

/** Saved views: screens with their filter, by name. The page of a list is not saved. */
export function ViewsMenu() {
  const views = useStore(savedViews);
  const { path, query } = usePlace();
  const [name, setName] = useState("");
  const save = (event: Event) => {
    event.preventDefault();
    if (name.trim() === "") return;
    saveView({ name: name.trim(), hash: placeHash(path, { ...query, cursor: null }) });
    setName("");
  };
  return (
    <details class="menu">
      <summary class="button plain">
        <Icon name="view" />
        <span>Views</span>
      </summary>
      <div class="menu-panel">
        {views.length === 0 && <p class="note">No views yet. A view saves this screen with its filter under a name.</p>}
        <ul>
          {views.map((view) => (
            <li key={view.name} class="row tight">
              <a href={view.hash}>
                <PlainText text={view.name} />
              </a>
              <span class="spring" />
              <Button
                kind="quiet"
                icon="bin"
                label={`Remove the view ${view.name}`}
                onClick={() => dropView(view.name)}
              />
            </li>
          ))}
        </ul>
        <form class="row tight" onSubmit={save}>
          <input
            aria-label="Name of the view"
            placeholder="Name of this view"
            maxLength={VIEW_NAME_MAX}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
          <Button type="submit" kind="primary">
            Save
          </Button>
        </form>
        <p class="note">Stored in this browser.</p>
      </div>
    </details>
  );
}
