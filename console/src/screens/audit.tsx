import { useEffect, useState } from "preact/hooks";
import { Badge, type Tone } from "../kit/badge.tsx";
import { Button, CliButton } from "../kit/button.tsx";
import { command, flag } from "../kit/command.ts";
import { Answer, Empty } from "../kit/error-box.tsx";
import { SelectField } from "../kit/fields.tsx";
import { Ago } from "../kit/figures.tsx";
import { TimeMenu } from "../kit/filter/time-range.tsx";
import { Card, Page } from "../kit/page.tsx";
import { placeHash, segment } from "../kit/place.ts";
import { PlainText } from "../kit/plain-text.tsx";
import { changeQuery } from "../kit/router.ts";
import { type Column, Pager, Table } from "../kit/table.tsx";
import type { Audit, AuditAction, AuditEntry } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { ViewsMenu } from "../kit/views-menu.tsx";
import { visibleText } from "../kit/visible-text.ts";
import type { ScreenProps } from "./screens.tsx";

const ROWS = 50;

/** Who did what, to what, why and through which interface. The audit is append-only. */
export function AuditScreen({ query }: ScreenProps) {
  const { action, actor, cursor, eventId, since, target, until } = query;
  const asked = useApi<Audit>("/audit", { actor, action, target, eventId, since, until, cursor, limit: ROWS });
  const line = command(
    "audit",
    ...flag("actor", actor),
    ...flag("action", action),
    ...flag("target", target),
    ...flag("event", eventId),
    ...flag("since", since),
    ...flag("until", until),
  );
  const isFiltered = [action, actor, eventId, since, target, until].some((it) => it !== undefined);
  return (
    <Page
      title="Audit"
      lead="Every action of an operator, with its reason."
      actions={
        <>
          <ViewsMenu />
          <CliButton command={line} />
        </>
      }
    >
      <div class="filters">
        <SelectField
          label="Action"
          name="action"
          value={action ?? ""}
          options={[["", "all"], ...Object.keys(AUDIT_TONES).map((it) => [it, it] as const)]}
        />
        <TimeMenu
          since={since ?? null}
          until={until ?? null}
          set={(from, to) => changeQuery({ since: from, until: to, cursor: null })}
        />
        <ExactField label="Who" name="actor" value={actor ?? ""} />
        <ExactField label="Target" name="target" value={target ?? ""} />
        <ExactField label="Event" name="eventId" value={eventId ?? ""} />
        {isFiltered && (
          <Button kind="quiet" icon="cross" href={placeHash("/audit")}>
            Show all
          </Button>
        )}
      </div>
      <Answer asked={asked} command={line}>
        {({ cursor: next, entries }) => (
          <>
            {entries.length === 0 ? (
              <Empty title={isFiltered ? "No audit entries match" : "No audit entries yet"} icon="audit">
                Pauses, limits, replays, discards and logins from the console, the API and the CLI are recorded here.
              </Empty>
            ) : (
              <Card isFlush>
                <Table
                  label="Audit"
                  columns={COLUMNS}
                  rows={entries}
                  keyOf={({ id }) => id}
                  isDim={asked.isLoading && cursor !== undefined}
                />
              </Card>
            )}
            <Pager cursor={cursor} next={next} />
          </>
        )}
      </Answer>
    </Page>
  );
}

/** The audit matches whole names only: a substring search would scan the whole table. */
function ExactField({ label, name, value }: { readonly label: string; readonly name: string; readonly value: string }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const search = () => {
    if (text.trim() !== value) changeQuery({ [name]: text.trim(), cursor: null });
  };
  return (
    <label class="select">
      <span>{label}</span>
      <input
        value={text}
        spellcheck={false}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && search()}
        onBlur={search}
      />
    </label>
  );
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { name: "When", cell: ({ at }) => <Ago at={at} /> },
  { name: "Who", cell: ({ actor }) => <a href={placeHash("/audit", { actor })}>{actor}</a> },
  { name: "What", cell: ({ action }) => <Badge tone={auditTone(action)}>{action}</Badge> },
  { name: "Target", cell: (entry) => <Target entry={entry} /> },
  {
    name: "Why",
    isWide: true,
    cell: ({ reason }) => (reason === null ? <span class="faint">–</span> : <PlainText text={reason} charsMax={300} />),
  },
  {
    name: "Details",
    cell: ({ detail }) => (
      <span class="faint">
        <PlainText text={detailText(detail)} charsMax={300} />
      </span>
    ),
    isExtra: true,
  },
  { name: "By", cell: ({ via }) => via },
];

function Target({ entry: { eventId, target } }: { readonly entry: AuditEntry }) {
  if (eventId !== null) {
    return (
      <a
        class="mono cut short"
        title={visibleText(eventId)}
        href={placeHash(`/events/${segment(eventId)}`, { source: target?.includes(".") ? target : null })}
      >
        <PlainText text={eventId} />
      </a>
    );
  }
  return target === null ? (
    <span class="faint">–</span>
  ) : (
    <a href={placeHash("/audit", { target })}>
      <PlainText text={target} />
    </a>
  );
}

/** Every audit action with its colour. Red: a receiver loses events, or access was refused. */
const AUDIT_TONES: Readonly<Record<AuditAction, Tone>> = {
  pause: "warn",
  resume: "good",
  limit: "warn",
  lanes: "warn",
  replay: "accent",
  discard: "bad",
  edit: "warn",
  plan: "info",
  "plan-run": "accent",
  "plan-pause": "warn",
  "plan-cancel": "warn",
  "plan-stopped": "bad",
  "plan-done": "good",
  "key-retry": "accent",
  "key-skip": "bad",
  "key-resume": "good",
  "key-discard": "bad",
  "log-seek": "warn",
  "log-reset": "warn",
  "pipeline-forget": "bad",
  login: "plain",
  "login-refused": "bad",
  logout: "plain",
  "payload-read": "plain",
  export: "plain",
};

function auditTone(action: string): Tone {
  return (AUDIT_TONES as Readonly<Record<string, Tone>>)[action] ?? "plain";
}

/** `count 120 · perSecond 50 · done 24`: the details of an entry; nested and empty ones are left out. */
function detailText(detail: Readonly<Record<string, unknown>>): string {
  return Object.entries(detail)
    .flatMap(([name, value]) => (isGroup(value) ? partsOf(value) : [`${name} ${plainText(value)}`]))
    .join(" · ");
}

function isGroup(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function partsOf(group: Readonly<Record<string, unknown>>): readonly string[] {
  const said = Object.entries(group).filter(([, value]) => value !== 0 && value !== null);
  return said.map(([name, value]) => `${name} ${plainText(value)}`);
}

function plainText(value: unknown): string {
  if (value === null) return "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
