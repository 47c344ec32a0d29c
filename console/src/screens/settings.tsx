import { Badge } from "../kit/badge.tsx";
import { CliButton } from "../kit/button.tsx";
import { command } from "../kit/command.ts";
import { Answer, Empty } from "../kit/error-box.tsx";
import { SearchField } from "../kit/fields.tsx";
import { Ago } from "../kit/figures.tsx";
import { plural } from "../kit/format.ts";
import { Card, KeyValues, Page } from "../kit/page.tsx";
import { session, useMay } from "../kit/session.ts";
import { useStore } from "../kit/store.ts";
import { type Column, Table } from "../kit/table.tsx";
import { setTheme, THEMES, theme } from "../kit/theme.ts";
import type { Config } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import type { ScreenProps } from "./screens.tsx";

type Setting = Config["settings"][number];

/** The signed-in user, the look of the console, and the settings of the service. */
export function SettingsScreen({ query }: ScreenProps) {
  const isAdmin = useMay("admin");
  return (
    <Page title="Settings" actions={<CliButton command={command("config", "print")} />}>
      <div class="two">
        <You />
        <Appearance />
      </div>
      {isAdmin ? (
        <Configuration q={query.q ?? ""} />
      ) : (
        <Empty title="Only administrators can see the configuration" icon="park">
          Sign in with a token of the role admin. Secrets are never shown.
        </Empty>
      )}
    </Page>
  );
}

const ACCESS = {
  open: "open on the machine of the service, to the user who runs it",
  login: "login required",
  off: "closed",
} as const;

function You() {
  const known = useStore(session);
  if (known === null) return null;
  const { access, identity, service, version } = known;
  return (
    <Card title="You and the service">
      <KeyValues
        items={[
          ["Name", identity?.name],
          ["Role", identity?.role],
          ["Payloads", identity?.maySeePayloads ? "visible" : "hidden"],
          ["Session ends", identity?.expiresAt ? <Ago key="ends" at={identity.expiresAt} /> : null],
          ["Service", service],
          ["Version", version],
          ["Access", ACCESS[access]],
        ]}
      />
    </Card>
  );
}

function Appearance() {
  const chosen = useStore(theme);
  return (
    <Card title="Appearance">
      <fieldset class="choice">
        <legend>Theme</legend>
        {THEMES.map((it) => (
          <label key={it}>
            <input type="radio" name="theme" value={it} checked={it === chosen} onChange={() => setTheme(it)} />
            {it === "auto" ? "system" : it}
          </label>
        ))}
      </fieldset>
      <p class="note">
        Kept in this browser. The key <kbd>t</kbd> changes it, <kbd>?</kbd> lists the others.
      </p>
    </Card>
  );
}

/** Without a search only settings in effect are listed: most settings are not set. */
function Configuration({ q }: { readonly q: string }) {
  const asked = useApi<Config>("/config");
  const wanted = q.toLowerCase();
  return (
    <Answer asked={asked} command={command("config", "print")}>
      {({ settings }) => {
        const shown = settings
          .filter((it) => (wanted === "" ? it.origin !== UNSET : textOf(it).includes(wanted)))
          .sort((left, right) => rankOf(left) - rankOf(right));
        return (
          <>
            <SearchField
              label="Find a setting"
              name="q"
              value={q}
              placeholder="name, value or origin"
              hints={["environment", "file", "default", UNSET]}
            />
            <Card
              title="Effective configuration"
              note={`${shown.length} of ${plural(settings.length, "setting")}, secrets hidden`}
              isFlush
            >
              {shown.length === 0 ? (
                <Empty title={`No settings match “${q}”`} icon="search" />
              ) : (
                <Table label="Effective configuration" columns={COLUMNS} rows={shown} keyOf={({ name }) => name} />
              )}
            </Card>
          </>
        );
      }}
    </Answer>
  );
}

const UNSET = "not set";

function textOf({ description, key, name, origin, value }: Setting): string {
  return `${name} ${key} ${value} ${origin} ${description}`.toLowerCase();
}

function isChosen(origin: string): boolean {
  return origin !== "default" && origin !== UNSET;
}

/** Configured settings first, then defaults, then unset ones. */
function rankOf({ origin }: Setting): number {
  return isChosen(origin) ? 0 : origin === "default" ? 1 : 2;
}

/** The first column already shows the name of the variable. */
function originText({ name, origin }: Setting): string {
  return origin === `environment ${name}` ? "environment" : origin;
}

const COLUMNS: readonly Column<Setting>[] = [
  {
    name: "Setting",
    cell: ({ key, name }) => (
      <span class="setting" title={`${key} in the config file`}>
        <code>{name}</code>
      </span>
    ),
  },
  {
    name: "Value",
    cell: ({ value }) => (value === "" ? <span class="faint">empty</span> : <code class="value-text">{value}</code>),
  },
  {
    name: "From",
    cell: (it) =>
      isChosen(it.origin) ? <Badge tone="info">{originText(it)}</Badge> : <span class="faint">{it.origin}</span>,
  },
  { name: "Description", isWide: true, cell: ({ description }) => <span title={description}>{description}</span> },
];
