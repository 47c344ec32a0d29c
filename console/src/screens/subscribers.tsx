import { Badge, StateBadge } from "../kit/badge.tsx";
import { CliButton } from "../kit/button.tsx";
import { command } from "../kit/command.ts";
import { Answer, Empty } from "../kit/error-box.tsx";
import { SearchField } from "../kit/fields.tsx";
import { Ago, Count, Progress, Span } from "../kit/figures.tsx";
import { bytesText, plural } from "../kit/format.ts";
import { Card, KeyValues, Page } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { type Column, Table } from "../kit/table.tsx";
import type { LogReader, Logs } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { ViewsMenu } from "../kit/views-menu.tsx";
import type { ScreenProps } from "./screens.tsx";

const EVERY_MS = 3_000;

/** The subscribers of the logs with their checkpoint in each lane. */
export function SubscribersScreen({ query }: ScreenProps) {
  const { q = "" } = query;
  const asked = useApi<Logs>("/logs", {}, { everyMs: EVERY_MS });
  return (
    <Page
      title="Subscribers"
      lead="Subscribers of a log keep a checkpoint in each lane. Retention cannot remove events that the slowest one has not read."
      actions={
        <>
          <ViewsMenu />
          <CliButton command={command("log", "list")} />
        </>
      }
    >
      <SearchField
        label="Subscribers whose name, pipeline or source contains"
        name="q"
        value={q}
        placeholder="subscriber, pipeline or source"
      />
      <Answer asked={asked} command={command("log", "list")}>
        {({ logs }) => {
          const shown = logs.filter((it) => isMeant(it, q));
          if (logs.length > 0 && shown.length === 0) {
            return (
              <Empty title="No subscribers match" icon="search">
                <a href={placeHash("/subscribers")}>Show all {plural(logs.length, "subscriber")}</a>
              </Empty>
            );
          }
          return logs.length === 0 ? (
            <Empty title="No subscribers" icon="subscribers">
              Subscribers appear with sources of the kinds <code>managed</code>, <code>tail</code> and <code>wal</code>.
              Outbox tables have no checkpoints: each row records whether it was delivered.
            </Empty>
          ) : (
            shown.map((it) => <Reader key={it.pipeline} it={it} />)
          );
        }}
      </Answer>
    </Page>
  );
}

function isMeant({ pipeline, source, subscriber }: LogReader, q: string): boolean {
  return `${subscriber ?? ""} ${pipeline} ${source}`.toLowerCase().includes(q.trim().toLowerCase());
}

function Reader({ it }: { readonly it: LogReader }) {
  const { countProblem, isPaused, kind, lanes, pipeline, retentionWaits, slot, subscriber } = it;
  return (
    <Card
      title={subscriber ?? pipeline}
      note={`${kind} log of ${it.source}`}
      actions={<a href={placeHash("/pipelines", { open: pipeline })}>{pipeline}</a>}
    >
      <div class="reader">
        <KeyValues
          items={[
            ["State", <StateBadge key="state" state={isPaused ? "paused" : "running"} />],
            ["Behind", <Behind key="behind" it={it} />],
            ["Oldest event", <Span key="oldest" ms={it.oldestAgeMs} />],
            [
              "Parked",
              it.parked > 0 ? (
                <a key="parked" href={placeHash("/keys", { pipeline })}>
                  {plural(it.parked, "event")}
                </a>
              ) : (
                "none"
              ),
            ],
            ["Retention waits for", retentionWaits === null ? null : retentionWaits],
            ["Not counted", countProblem],
          ]}
        />
        {slot !== null && <Slot slot={slot} />}
      </div>
      <Table label={`Checkpoints of ${pipeline}`} columns={COLUMNS} rows={lanes} keyOf={({ lane }) => String(lane)} />
    </Card>
  );
}

function Behind({ it }: { readonly it: LogReader }) {
  if (it.lag === 0) return <>nothing</>;
  return (
    <>
      <Count value={it.lag} isEstimate={it.isEstimate} /> {it.lag === null ? "" : it.lag === 1 ? "event" : "events"}
    </>
  );
}

const COLUMNS: readonly Column<LogReader["lanes"][number]>[] = [
  { name: "Lane", cell: ({ lane }) => `lane ${lane}` },
  {
    name: "Owned",
    cell: ({ isOwned }) =>
      isOwned ? (
        <Badge tone="good" icon="check">
          owned
        </Badge>
      ) : (
        <Badge tone="warn" icon="unplug">
          free
        </Badge>
      ),
  },
  { name: "Checkpoint", isWide: true, cell: ({ position }) => <code>{positionText(position)}</code> },
  { name: "Settled", cell: ({ settledAt }) => <Ago at={settledAt} /> },
];

function positionText(position: Readonly<Record<string, unknown>> | null): string {
  if (position === null) return "at the beginning";
  return Object.entries(position)
    .filter(([, value]) => value !== null && value !== "")
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : String(value)}`)
    .join("  ");
}

/** The WAL that the server keeps for this slot. Beyond the safe size it discards WAL that was not read. */
function Slot({ slot }: { readonly slot: NonNullable<LogReader["slot"]> }) {
  const { isActive, name, retainedBytes, safeBytes, status } = slot;
  const total = safeBytes === null || retainedBytes === null ? null : retainedBytes + safeBytes;
  return (
    <div class="stack">
      <KeyValues
        items={[
          ["Slot", <code key="slot">{name}</code>],
          ["Status", status],
          ["Read", isActive ? "now" : "not by any relay"],
          ["Retained", bytesText(retainedBytes)],
          ["Safe size left", safeBytes === null ? "unlimited" : bytesText(safeBytes)],
        ]}
      />
      {total !== null && (
        <Progress
          label="Retained for the slot"
          total={total}
          parts={[
            {
              label: "bytes retained",
              count: retainedBytes ?? 0,
              tone: (retainedBytes ?? 0) > total * 0.8 ? "bad" : "accent",
            },
          ]}
        />
      )}
    </div>
  );
}
