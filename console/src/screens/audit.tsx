import { useEffect, useState } from "preact/hooks";
import { Badge } from "../kit/badge.tsx";
import { Button, CliButton } from "../kit/button.tsx";
import { command, flag } from "../kit/command.ts";
import { Answer, Empty } from "../kit/error-box.tsx";
import { SelectField } from "../kit/fields.tsx";
import { Ago } from "../kit/figures.tsx";
import { Card, Page } from "../kit/page.tsx";
import { placeHash, segment } from "../kit/place.ts";
import { changeQuery } from "../kit/router.ts";
import { type Column, Pager, Table } from "../kit/table.tsx";
import type { Audit, AuditEntry } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { AUDIT_TONES, auditTone, detailText } from "./audit/audit-text.ts";
import type { ScreenProps } from "./screens.tsx";

const ROWS = 50;

/** Who did what, to what, why and by which way. Nothing can be taken out of it. */
export function AuditScreen({ query }: ScreenProps) {
  const { action, actor, cursor, eventId, target } = query;
  const asked = useApi<Audit>("/audit", { actor, action, target, eventId, cursor, limit: ROWS });
  const line = command(
    "audit",
    ...flag("actor", actor),
    ...flag("action", action),
    ...flag("target", target),
    ...flag("event", eventId),
  );
  const isFiltered = [action, actor, eventId, target].some((it) => it !== undefined);
  return (
    <Page
      title="Audit"
      lead="Every action of a person, with the reason that was given."
      actions={<CliButton command={line} />}
    >
      <div class="filters">
        <SelectField
          label="Action"
          name="action"
          value={action ?? ""}
          options={[["", "all"], ...Object.keys(AUDIT_TONES).map((it) => [it, it] as const)]}
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
              <Empty title={isFiltered ? "Nothing of that kind was done" : "Nobody has done anything yet"} icon="audit">
                Pauses, limits, replays, discards and logins are written down here, by whatever way they are done.
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

/** The audit finds whole names only: a part of one would read the whole table. */
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
  { name: "To what", cell: (entry) => <Target entry={entry} /> },
  {
    name: "Why",
    isWide: true,
    cell: ({ reason }) => (reason === null ? <span class="faint">–</span> : <span title={reason}>{reason}</span>),
  },
  { name: "Details", cell: ({ detail }) => <span class="faint">{detailText(detail)}</span>, isExtra: true },
  { name: "By", cell: ({ via }) => via },
];

function Target({ entry: { eventId, target } }: { readonly entry: AuditEntry }) {
  if (eventId !== null) {
    return (
      <a
        class="mono cut short"
        title={eventId}
        href={placeHash(`/events/${segment(eventId)}`, { source: target?.includes(".") ? target : null })}
      >
        {eventId}
      </a>
    );
  }
  return target === null ? <span class="faint">–</span> : <a href={placeHash("/audit", { target })}>{target}</a>;
}
