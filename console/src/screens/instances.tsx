import { Badge } from "../kit/badge.tsx";
import { CliButton } from "../kit/button.tsx";
import { command } from "../kit/command.ts";
import { Answer, Empty } from "../kit/error-box.tsx";
import { Ago, Count, Span } from "../kit/figures.tsx";
import { plural } from "../kit/format.ts";
import { Card, Page } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { type Column, Table } from "../kit/table.tsx";
import type { Lanes, PipelineStatus, Status } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { LanePicture } from "./pipelines/lane-picture.tsx";

const EVERY_MS = 3_000;

/** The relays that run, and how they share the lanes. */
export function InstancesScreen() {
  const status = useApi<Status>("/status", {}, { everyMs: EVERY_MS });
  const lanes = useApi<Lanes>("/lanes", {}, { everyMs: EVERY_MS });
  return (
    <Page
      title="Instances"
      lead="Relays share the lanes among themselves. When one goes, its lanes go over to the others as soon as its lease ends."
      actions={<CliButton command={command("lanes", "list")} />}
    >
      <Answer asked={status} command={command("status")}>
        {({ instances, pipelines }) => (
          <>
            {instances.length === 0 ? (
              <Empty title="No relay runs" icon="unplug">
                Nothing is delivered, and nothing is lost: events wait in the outbox. Start one:{" "}
                <code>outbox-relay run</code>
              </Empty>
            ) : (
              <Card title="Relays" note={plural(instances.length, "instance")} isFlush>
                <Table label="Relays" columns={COLUMNS} rows={instances} keyOf={({ id }) => id} />
              </Card>
            )}
            {pipelines.length > 0 && <Shares pipelines={pipelines} lanes={lanes.data?.lanes ?? []} />}
          </>
        )}
      </Answer>
    </Page>
  );
}

const SHORT_MS = 1_000;

const COLUMNS: readonly Column<Status["instances"][number]>[] = [
  { name: "Name", cell: ({ name }) => <strong>{name}</strong> },
  { name: "Lanes", isFigure: true, cell: ({ lanes }) => <Count value={lanes} /> },
  {
    name: "Lease",
    cell: ({ leaseRemainingMs }) =>
      leaseRemainingMs > SHORT_MS ? (
        <Span ms={leaseRemainingMs} />
      ) : (
        <Badge tone="warn" icon="clock">
          <Span ms={Math.max(0, leaseRemainingMs)} />
        </Badge>
      ),
  },
  { name: "Joined", cell: ({ joinedAt }) => <Ago at={joinedAt} /> },
  {
    name: "Pipelines",
    isWide: true,
    cell: ({ pipelines }) => <span title={pipelines.join("\n")}>{pipelines.join(", ") || "none yet"}</span>,
  },
  { name: "Id", isExtra: true, cell: ({ id }) => <code class="faint">{id}</code> },
];

function Shares({
  pipelines,
  lanes,
}: {
  readonly pipelines: readonly PipelineStatus[];
  readonly lanes: Lanes["lanes"];
}) {
  return (
    <Card title="Lanes by pipeline" note="one square for each lane, in the colour of its owner">
      <ul class="shares">
        {pipelines.map(({ pipeline }) => (
          <li key={pipeline}>
            <a href={placeHash("/pipelines", { open: pipeline })}>{pipeline}</a>
            <LanePicture lanes={lanes.filter((it) => it.pipeline === pipeline)} />
          </li>
        ))}
      </ul>
    </Card>
  );
}
