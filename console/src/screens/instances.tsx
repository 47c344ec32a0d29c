import { Badge } from "../kit/badge.tsx";
import { CliButton } from "../kit/button.tsx";
import { command } from "../kit/command.ts";
import { Answer, Empty } from "../kit/error-box.tsx";
import { SearchField, SelectField } from "../kit/fields.tsx";
import { Ago, Count, Span } from "../kit/figures.tsx";
import { plural } from "../kit/format.ts";
import { Card, Page } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { type Column, Table } from "../kit/table.tsx";
import type { Lanes, PipelineStatus, Status } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { ViewsMenu } from "../kit/views-menu.tsx";
import { LanePicture } from "./pipelines/lane-picture.tsx";
import type { ScreenProps } from "./screens.tsx";

const EVERY_MS = 3_000;

/** The running relays and how they share the lanes. */
export function InstancesScreen({ query }: ScreenProps) {
  const { pipeline = "", q = "" } = query;
  const status = useApi<Status>("/status", {}, { everyMs: EVERY_MS });
  const lanes = useApi<Lanes>("/lanes", {}, { everyMs: EVERY_MS });
  return (
    <Page
      title="Instances"
      lead="Relays share the lanes. When a relay stops or crashes, the others take over its lanes once its lease expires."
      actions={
        <>
          <ViewsMenu />
          <CliButton command={command("lanes", "list")} />
        </>
      }
    >
      <div class="filters">
        <SearchField
          label="Instances whose name or id contains"
          name="q"
          value={q}
          placeholder="part of a name or id"
        />
        <SelectField
          label="Pipeline"
          name="pipeline"
          value={pipeline}
          options={[["", "all"], ...(status.data?.pipelines ?? []).map((it) => [it.pipeline, it.pipeline] as const)]}
        />
      </div>
      <Answer asked={status} command={command("status")}>
        {({ instances, pipelines }) => (
          <>
            {instances.length > 0 && meant(instances, q, pipeline).length === 0 && (
              <Empty title="No instances match" icon="search">
                <a href={placeHash("/instances")}>Show all {plural(instances.length, "instance")}</a>
              </Empty>
            )}
            {instances.length === 0 ? (
              <Empty title="No relay is running" icon="unplug">
                No events are delivered; they wait in the outbox. Start one: <code>outbox-relay run</code>
              </Empty>
            ) : (
              <Relays instances={meant(instances, q, pipeline)} />
            )}
            {pipelines.length > 0 && (
              <Shares
                pipelines={pipelines.filter((it) => pipeline === "" || it.pipeline === pipeline)}
                lanes={lanes.data?.lanes ?? []}
              />
            )}
          </>
        )}
      </Answer>
    </Page>
  );
}

type Instance = Status["instances"][number];

function meant(instances: readonly Instance[], q: string, pipeline: string): readonly Instance[] {
  const wanted = q.trim().toLowerCase();
  return instances.filter(
    ({ id, name, pipelines }) =>
      `${name} ${id}`.toLowerCase().includes(wanted) && (pipeline === "" || pipelines.includes(pipeline)),
  );
}

function Relays({ instances }: { readonly instances: readonly Instance[] }) {
  if (instances.length === 0) return null;
  return (
    <Card title="Relays" note={plural(instances.length, "instance")} isFlush>
      <Table label="Relays" columns={COLUMNS} rows={instances} keyOf={({ id }) => id} />
    </Card>
  );
}

const SHORT_MS = 1_000;

const COLUMNS: readonly Column<Instance>[] = [
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
    <Card title="Lanes by pipeline" note="one square per lane, in the colour of its owner">
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
