import { useEffect, useState } from "preact/hooks";
import { apiPost } from "../kit/api.ts";
import { Button } from "../kit/button.tsx";
import { shortCount } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { LiveMark } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { usePlace } from "../kit/router.ts";
import { loadSession, session } from "../kit/session.ts";
import { useStore } from "../kit/store.ts";
import { nextTheme, theme } from "../kit/theme.ts";
import { useLive } from "./live-overview.ts";
import { NotifyButton } from "./notifications.tsx";
import { ALL_SECTIONS, SECTIONS, type Section, sectionOf } from "./sections.ts";
import { openPalette, openShortcutHelp } from "./shortcuts.tsx";

/** A sidebar; on a phone a bar at the bottom with the other sections behind "More". */
export function Navigation() {
  const { path } = usePlace();
  const [isOpen, setOpen] = useState(false);
  const current = sectionOf(path);
  // Close the menu when the user has selected a screen.
  useEffect(() => setOpen(false), [path]);
  return (
    <>
      <header class={isOpen ? "side open" : "side"}>
        <Brand />
        <button type="button" class="find" onClick={openPalette}>
          <Icon name="search" />
          <span>Find or go to</span>
          <kbd>Ctrl K</kbd>
        </button>
        <nav aria-label="Screens">
          {SECTIONS.map(([group, sections]) => (
            <div key={group} class="group">
              <span class="group-name">{group}</span>
              {sections.map((section) => (
                <SectionLink key={section.path} section={section} isCurrent={section === current} />
              ))}
            </div>
          ))}
        </nav>
        <Foot />
      </header>
      <nav class="bottom" aria-label="Main screens">
        {ALL_SECTIONS.filter(({ isFirst }) => isFirst).map((section) => (
          <SectionLink key={section.path} section={section} isCurrent={section === current && !isOpen} />
        ))}
        <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Icon name={isOpen ? "cross" : "menu"} />
          <span>More</span>
        </button>
      </nav>
    </>
  );
}

function Brand() {
  const { overview, state } = useLive();
  return (
    <div class="brand">
      <a href={placeHash("/")} title="To the overview">
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <path d="M7 11h8a5 5 0 0 1 5 5 5 5 0 0 0 5 5" />
          <circle cx="8" cy="21" r="3" />
          <circle cx="24" cy="11" r="3" />
        </svg>
        <span>{overview?.service ?? session.get()?.service ?? "outbox-relay"}</span>
      </a>
      <LiveMark state={state} />
    </div>
  );
}

function SectionLink({ section, isCurrent }: { readonly section: Section; readonly isCurrent: boolean }) {
  const { overview } = useLive();
  const count = overview === null ? 0 : countOf(section, overview);
  return (
    <a href={placeHash(section.path)} aria-current={isCurrent ? "page" : undefined}>
      <Icon name={section.icon} />
      <span>{section.title}</span>
      {count > 0 && (
        <span class={`count ${section.path === "/dead-letters" ? "bad" : "warn"}`}>{shortCount(count)}</span>
      )}
    </a>
  );
}

/** Dead letters and parked keys: the counts that need an operator. */
function countOf(
  { path }: Section,
  { deadLetters, parkedKeys }: { readonly deadLetters: number; readonly parkedKeys: number },
): number {
  if (path === "/dead-letters") return deadLetters;
  return path === "/keys" ? parkedKeys : 0;
}

const THEME_ICONS = { auto: "auto", light: "sun", dark: "moon" } as const;

function Foot() {
  const known = useStore(session);
  const shown = useStore(theme);
  const { access, identity } = known ?? {};
  return (
    <div class="foot">
      <span class="who" title={identity?.role}>
        <Icon name="person" />
        <span>
          {identity?.name}
          <small>{identity?.role}</small>
        </span>
      </span>
      <NotifyButton />
      <Button kind="quiet" icon={THEME_ICONS[shown]} label={`Theme: ${shown}`} onClick={nextTheme} />
      <Button kind="quiet" icon="help" label="Keyboard shortcuts" onClick={openShortcutHelp} />
      {access === "login" && <Button kind="quiet" icon="exit" label="Sign out" onClick={() => void signOut()} />}
    </div>
  );
}

async function signOut(): Promise<void> {
  await apiPost("/logout").catch(() => undefined);
  session.set(null);
  await loadSession();
}
