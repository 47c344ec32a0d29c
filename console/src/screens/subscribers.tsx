import { Badge, StateBadge } from "../kit/badge.tsx";
import { CliButton } from "../kit/button.tsx";
import { command } from "../kit/command.ts";
import { Answer, Empty } from "../kit/error-box.tsx";
import { Ago, Count, Progress, Span } from "../kit/figures.tsx";
import { bytesText, plural } from "../kit/format.ts";
import { Card, KeyValues, Page } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { type Column, Table } from "../kit/table.tsx";
import type { LogReader, Logs } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";

const EVERY_MS = 3_000;

/** Who reads a log, and how far each lane has come. */
export function SubscribersScreen() {
  const asked = useApi<Logs>("/logs", {}, { everyMs: EVERY_MS });
  return (
    <Page
      title="Subscribers"
      lead="Readers of logs keep a checkpoint in each lane. What lies behind the slowest one cannot be cleared away."
      actions={<CliButton command={command("log", "list")} />}
    >
      <Answer asked={asked} command={command("log", "list")}>
        {({ logs }) =>
          logs.length === 0 ? (
            <Empty title="Nobody reads a log here" icon="subscribers">
              Subscribers appear with sources of the kinds <code>managed</code>, <code>tail</code> and <code>wal</code>.
              Plain outbox tables have no checkpoints: their rows say themselves what is still to be sent.
            </Empty>
          ) : (
            logs.map((it) => <Reader key={it.pipeline} it={it} />)
          )
        }
      </Answer>
    </Page>
  );
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
            ["Clearing waits", retentionWaits === null ? null : retentionWaits],
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

/** What the server must keep for this reader. Past the safe part it throws away what was not read. */
function Slot({ slot }: { readonly slot: NonNullable<LogReader["slot"]> }) {
  const { isActive, name, retainedBytes, safeBytes, status } = slot;
  const total = safeBytes === null || retainedBytes === null ? null : retainedBytes + safeBytes;
  return (
    <div class="stack">
      <KeyValues
        items={[
          ["Slot", <code key="slot">{name}</code>],
          ["Status", status],
          ["Read", isActive ? "at this moment" : "by nobody"],
          ["Kept for it", bytesText(retainedBytes)],
          ["Still safe", safeBytes === null ? "without limit" : bytesText(safeBytes)],
        ]}
      />
      {total !== null && (
        <Progress
          label="Kept for the slot"
          total={total}
          parts={[
            {
              label: "bytes kept",
              count: retainedBytes ?? 0,
              tone: (retainedBytes ?? 0) > total * 0.8 ? "bad" : "accent",
            },
          ]}
        />
      )}
    </div>
  );
}
