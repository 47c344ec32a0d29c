import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Badge, StateBadge } from "../kit/badge.tsx";
import { CliButton } from "../kit/button.tsx";
import { ChooseBar, ChooseBox } from "../kit/choose.tsx";
import { command } from "../kit/command.ts";
import { Answer, Empty } from "../kit/error-box.tsx";
import { SearchField, SelectField } from "../kit/fields.tsx";
import { Ago, Count, Span } from "../kit/figures.tsx";
import { quotedValue } from "../kit/filter/filter-text.ts";
import { plural } from "../kit/format.ts";
import { Hint } from "../kit/hint.tsx";
import { Icon } from "../kit/icons.tsx";
import { Page } from "../kit/page.tsx";
import { placeHash, type Query } from "../kit/place.ts";
import { Because } from "../kit/plain-text.tsx";
import { useMay } from "../kit/session.ts";
import type { Finding, Findings, Lane, Lanes, PipelineStatus, Status } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { ViewsMenu } from "../kit/views-menu.tsx";
import { destinationHref, eventsHref } from "./links.ts";
import { FindingList } from "./pipelines/findings.tsx";
import { LanePicture, ownersOf } from "./pipelines/lane-picture.tsx";
import { PipelineActions } from "./pipelines/pipeline-actions.tsx";
import { PipelineBulk } from "./pipelines/pipeline-bulk.tsx";
import { UnroutedRow } from "./pipelines/unrouted.tsx";
import type { ScreenProps } from "./screens.tsx";

const STATES: readonly PipelineStatus["state"][] = [
  "running",
  "paused",
  "broken",
  "not served",
  "no longer configured",
];
const EVERY_MS = 3_000;
const DOCTOR_EVERY_MS = 60_000;

/** Source, destination, owners and backlog of each pipeline, with its actions. */
export function PipelinesScreen({ query }: ScreenProps) {
  const status = useApi<Status>("/status", {}, { everyMs: EVERY_MS });
  const lanes = useApi<Lanes>("/lanes", {}, { everyMs: EVERY_MS });
  const doctor = useApi<Findings>("/doctor", {}, { everyMs: DOCTOR_EVERY_MS });
  const { q = "", state = "" } = query;
  return (
    <Page
      title="Pipelines"
      actions={
        <>
          <ViewsMenu />
          <CliButton command={command("status")} />
        </>
      }
    >
      <div class="filters">
        <SearchField
          label="Pipelines whose name, source or destination contains"
          name="q"
          value={q}
          placeholder="name, source or destination"
        />
        <SelectField
          label="State"
          name="state"
          value={state}
          options={[["", "all"], ...STATES.map((it) => [it, it] as const)]}
        />
      </div>
      <Answer asked={status} command={command("status")}>
        {({ pipelines, unrouted }) => {
          const shown = pipelines.filter((it) => isMeant(it, q) && (state === "" || it.state === state));
          const findings = doctor.data?.findings ?? [];
          return (
            <>
              <GeneralFindings findings={findings} pipelines={pipelines} unrouted={unrouted} />
              {pipelines.length === 0 && <NoPipelines />}
              {pipelines.length > 0 && shown.length === 0 && (
                <Empty title="No pipelines match" icon="search">
                  <a href={placeHash("/pipelines")}>Show all {plural(pipelines.length, "pipeline")}</a>
                </Empty>
              )}
              <PipelineList
                shown={shown}
                unrouted={state === "" ? unrouted.filter(({ source }) => holds(source, q)) : []}
                lanes={lanes.data?.lanes ?? []}
                findings={findings}
                query={query}
                reload={status.reload}
              />
            </>
          );
        }}
      </Answer>
    </Page>
  );
}

interface ListProps {
  readonly shown: readonly PipelineStatus[];
  readonly unrouted: Status["unrouted"];
  readonly lanes: readonly Lane[];
  readonly findings: readonly Finding[];
  readonly query: Query;
  reload(): void;
}

/** With checkboxes for users who may change pipelines. */
function PipelineList({ shown, unrouted, lanes, findings, query, reload }: ListProps) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const canChoose = useMay("operator") && shown.length > 1;
  const names = shown.map(({ pipeline }) => pipeline);
  const done = () => {
    setChosen(new Set());
    reload();
  };
  return (
    <>
      {canChoose && (
        <ChooseBar what="pipeline" shown={names} chosen={chosen} onChoose={setChosen}>
          <PipelineBulk meant={shown.filter(({ pipeline }) => chosen.has(pipeline))} done={done} />
        </ChooseBar>
      )}
      <ul class="pipelines" aria-label="Pipelines">
        {shown.map((it) => (
          <PipelineRow
            key={it.pipeline}
            it={it}
            lanes={lanes.filter(({ pipeline }) => pipeline === it.pipeline)}
            findings={findings.filter((finding) => concerns(finding, it))}
            query={query}
            choose={canChoose && <ChooseBox name={it.pipeline} chosen={chosen} onChoose={setChosen} />}
            reload={reload}
          />
        ))}
        {unrouted.map((it) => (
          <UnroutedRow
            key={it.source}
            it={it}
            findings={findings.filter((finding) => finding.check === UNROUTED && finding.what.includes(it.source))}
          />
        ))}
      </ul>
    </>
  );
}

/** Removes the event types that a relay with a type filter appends to the name. */
function plainDestination(destination: string): string {
  return destination.replace(/\[.*\]$/s, "");
}

function isMeant({ pipeline, source, destination }: PipelineStatus, text: string): boolean {
  return holds(`${pipeline} ${source} ${destination}`, text);
}

function holds(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.trim().toLowerCase());
}

/** The doctor's check for events without a route: they belong to no pipeline, and have a row of their own. */
const UNROUTED = "takers";

/** A finding belongs to a pipeline if it names the pipeline, its source or its table. */
function concerns({ check, what }: Finding, { pipeline, source }: PipelineStatus): boolean {
  return check !== UNROUTED && (what.includes(pipeline) || what.includes(source));
}

function NoPipelines() {
  return (
    <Empty title="No pipelines yet" icon="pipelines">
      A pipeline appears once a relay has run with a source and a destination. Start one with{" "}
      <code>outbox-relay run</code>, or run <code>outbox-relay doctor</code> to find what is missing.
    </Empty>
  );
}

/** The findings that no row shows. */
function GeneralFindings({ findings, pipelines, unrouted }: Pick<Status, "pipelines" | "unrouted"> & Findings) {
  const hasRow = ({ check, what }: Finding) =>
    check === UNROUTED && unrouted.some(({ source }) => what.includes(source));
  const general = findings.filter((it) => !hasRow(it) && !pipelines.some((pipeline) => concerns(it, pipeline)));
  return <FindingList label="Findings of outbox-relay doctor" findings={general} />;
}

interface RowProps {
  readonly it: PipelineStatus;
  readonly lanes: readonly Lane[];
  readonly findings: readonly Finding[];
  /** The query of the screen: which pipeline is open. */
  readonly query: Query;
  /** The checkbox, if pipelines can be selected. */
  readonly choose: ComponentChildren;
  reload(): void;
}

function PipelineRow({ it, lanes, findings, query, choose, reload }: RowProps) {
  const { limit, pipeline } = it;
  const isOpen = query.open === pipeline;
  return (
    <li class="card pipeline">
      <div class="pipeline-head">
        {choose}
        <h2>
          <a href={placeHash("/pipelines", { ...query, open: isOpen ? null : pipeline })} aria-expanded={isOpen}>
            <Icon name={isOpen ? "down" : "right"} />
            {pipeline}
          </a>
        </h2>
        <StateBadge state={it.state} />
        <Badge>{it.delivery}</Badge>
        {it.log !== null && <Badge tone="info">{it.log} log</Badge>}
        {limit !== null && (
          <Badge tone="accent" icon="limit" title={limit.reason ?? undefined}>
            {limit.perSecond} /s at most
          </Badge>
        )}
        <span class="spring" />
        <PipelineActions it={it} reload={reload} />
      </div>
      <div class="pipeline-body">
        <div class="flow">
          <span class="end">{it.source}</span>
          <Icon name="pipelines" />
          <a class="end" href={destinationHref(plainDestination(it.destination))}>
            {it.destination}
          </a>
        </div>
        <LanePicture lanes={lanes} />
        <Figures it={it} />
      </div>
      <Notes it={it} />
      <FindingList label={`Findings about ${pipeline}`} findings={findings} />
      {isOpen && <LaneTable lanes={lanes} />}
    </li>
  );
}

function Figures({ it }: { readonly it: PipelineStatus }) {
  const { pipeline } = it;
  const place = `source:${quotedValue(it.source)} destination:${quotedValue(plainDestination(it.destination))}`;
  return (
    <dl class="figures">
      <Figure name="pending" href={eventsHref(`state:pending ${place}`)}>
        <Count value={it.pending} isEstimate={it.isEstimate} />
      </Figure>
      <Figure name="oldest">
        <Span ms={it.oldestAgeMs} />
      </Figure>
      <Figure name="retrying" href={it.retrying > 0 ? placeHash("/keys", { kind: "retrying", pipeline }) : undefined}>
        <Count value={it.retrying} />
      </Figure>
      <Figure
        name="parked keys"
        href={it.parkedKeys > 0 ? placeHash("/keys", { kind: "parked", pipeline }) : undefined}
      >
        <Count value={it.parkedKeys} />
      </Figure>
      <Figure name="dead" href={it.deadLetters > 0 ? placeHash("/dead-letters", { q: place }) : undefined}>
        <Count value={it.deadLetters} />
      </Figure>
      <Figure
        name="behind dead letters"
        href={(it.behindDeadLetters ?? 0) > 0 ? placeHash("/keys", { kind: "parked", pipeline }) : undefined}
      >
        <Count value={it.behindDeadLetters} isEstimate={it.isEstimate} />
      </Figure>
    </dl>
  );
}

/** The pause and the limit of the pipeline: who set them, and why. */
function Notes({ it: { countProblem, limit, pause } }: { readonly it: PipelineStatus }) {
  return (
    <>
      {pause !== null && (
        <p class="aside">
          Paused by {pause.by} <Ago at={pause.at} />
          <Because reason={pause.reason} />
        </p>
      )}
      {limit !== null && limit.by !== null && (
        <p class="aside">
          Limited by {limit.by}
          <Because reason={limit.reason} />
        </p>
      )}
      {countProblem !== null && <p class="aside">Not counted: {countProblem}</p>}
    </>
  );
}

function Figure({
  name,
  href,
  children,
}: {
  readonly name: string;
  readonly href?: string | undefined;
  readonly children: ComponentChildren;
}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{href === undefined ? children : <a href={href}>{children}</a>}</dd>
    </div>
  );
}

function LaneTable({ lanes }: { readonly lanes: readonly Lane[] }) {
  const owners = ownersOf(lanes);
  return (
    <div class="table lanes-table">
      <table aria-label="Lanes">
        <thead>
          <tr>
            <th scope="col">
              Lane <Hint word="lane" />
            </th>
            <th scope="col">Owner</th>
            <th scope="col" class="figure">
              Published
            </th>
            <th scope="col" class="figure">
              Crashes
            </th>
            <th scope="col">Settled</th>
          </tr>
        </thead>
        <tbody>
          {lanes.map(({ crashes, lane, owner, published, settledAt }) => (
            <tr key={lane}>
              <td>lane {lane}</td>
              <td data-label="Owner">
                <span>
                  {owner === null ? <span class="faint">no owner</span> : (owner.name ?? owner.id)}{" "}
                  {owner !== null && !owner.isAlive && <Badge tone="warn">gone</Badge>}
                  {owner !== null && <i class={`swatch owner-${owners.indexOf(owner.id) % 6}`} aria-hidden="true" />}
                </span>
              </td>
              <td class="figure" data-label="Published">
                <Count value={published} />
              </td>
              <td class="figure" data-label="Crashes">
                {crashes > 0 ? <Badge tone="bad">{crashes}</Badge> : 0}
              </td>
              <td data-label="Settled">
                <Ago at={settledAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
