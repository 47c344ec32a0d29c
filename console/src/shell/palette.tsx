import { useState } from "preact/hooks";
import { Dialog } from "../kit/dialog.tsx";
import { Icon, type IconName } from "../kit/icons.tsx";
import { placeHash } from "../kit/place.ts";
import { setTheme, THEMES } from "../kit/theme.ts";
import { useLive } from "./live-overview.ts";
import { ALL_SECTIONS } from "./sections.ts";

interface Choice {
  readonly text: string;
  readonly hint: string;
  readonly icon: IconName;
  run(): void;
}

const SHOWN_MAX = 9;

/** The command palette: finds screens, pipelines, and events by id, key or correlation id. */
export function Palette({ onClose }: { onClose(): void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const choices = useChoices(text);
  const index = Math.min(at, choices.length - 1);
  const run = (choice: Choice | undefined) => {
    if (choice === undefined) return;
    onClose();
    choice.run();
  };
  const onKey = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) setAt((index + step + choices.length) % choices.length);
    else if (event.key === "Enter") run(choices[index]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Find or go to" onClose={onClose} look="palette">
      <div class="search-field">
        <Icon name="search" />
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-choices"
          aria-activedescendant={`choice-${index}`}
          aria-label="Find or go to"
          placeholder="A screen, or an event by id, key or filter"
          value={text}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={onKey}
        />
        <kbd>Esc</kbd>
      </div>
      <div id="palette-choices" role="listbox" aria-label="Choices" class="choices">
        {choices.map((choice, place) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keyboard
          <div
            key={choice.text + choice.hint}
            id={`choice-${place}`}
            role="option"
            tabIndex={-1}
            aria-selected={place === index}
            onClick={() => run(choice)}
            onPointerMove={() => setAt(place)}
          >
            <Icon name={choice.icon} />
            <span>{choice.text}</span>
            <small>{choice.hint}</small>
          </div>
        ))}
      </div>
    </Dialog>
  );
}

function useChoices(text: string): readonly Choice[] {
  const { overview } = useLive();
  const go = (hash: string) => () => {
    location.hash = hash;
  };
  const wanted = text.trim().toLowerCase();
  const known: Choice[] = [
    ...ALL_SECTIONS.map(({ title, icon, letter, path }) => ({
      text: title,
      hint: `g ${letter}`,
      icon,
      run: go(placeHash(path)),
    })),
    ...(overview?.destinations ?? []).flatMap(({ pipelines }) =>
      pipelines.map((name) => ({
        text: name,
        hint: "pipeline",
        icon: "pipelines" as const,
        run: go(placeHash("/pipelines", { open: name })),
      })),
    ),
    ...THEMES.map((it) => ({
      text: `Theme: ${it}`,
      hint: "appearance",
      icon: "auto" as const,
      run: () => setTheme(it),
    })),
  ];
  const found = known.filter((it) => it.text.toLowerCase().includes(wanted));
  if (wanted === "") return found.slice(0, SHOWN_MAX);
  const q = text.trim();
  const search: Choice[] = [
    { text: q, hint: "find events", icon: "search", run: go(placeHash("/events", { q })) },
    { text: q, hint: "find dead letters", icon: "dead", run: go(placeHash("/dead-letters", { q, view: "list" })) },
  ];
  return [...found.slice(0, SHOWN_MAX - 2), ...search];
}
