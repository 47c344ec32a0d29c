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

/** Who one is, how it looks, and with which settings the service runs. */
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
        <Empty title="The configuration is for administrators" icon="park">
          Sign in with a token of the role admin to see it. Secrets are never shown.
        </Empty>
      )}
    </Page>
  );
}

const ACCESS = {
  open: "open to the user who runs the service, on its own machine",
  login: "needs a login",
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
          ["Payloads", identity?.maySeePayloads ? "may be seen" : "are hidden"],
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
            {it === "auto" ? "as the system" : it}
          </label>
        ))}
      </fieldset>
      <p class="note">
        Kept in this browser. The key <kbd>t</kbd> changes it, <kbd>?</kbd> lists the others.
      </p>
    </Card>
  );
}

/** Without a search only what is in force: there are many more that nobody has set. */
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
                <Empty title={`No setting is like “${q}”`} icon="search" />
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

/** What somebody has chosen first, then what holds without that, then what does not hold at all. */
function rankOf({ origin }: Setting): number {
  return isChosen(origin) ? 0 : origin === "default" ? 1 : 2;
}

/** The variable's own name stands in the first column. */
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
  { name: "What it is for", isWide: true, cell: ({ description }) => <span title={description}>{description}</span> },
];
