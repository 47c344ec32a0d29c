import { useState } from "preact/hooks";
import { ActionButton, RoleNote } from "../kit/action-button.tsx";
import { CliButton } from "../kit/button.tsx";
import { Answer, Empty } from "../kit/error-box.tsx";
import { SearchField, SelectField } from "../kit/fields.tsx";
import { plural } from "../kit/format.ts";
import { Card, Page, Tabs } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { Pager, Table } from "../kit/table.tsx";
import type { KeyOfEvents, Keys, Status } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { ViewsMenu } from "../kit/views-menu.tsx";
import { keysLine } from "./cli-lines.ts";
import { columnsOf, KINDS, type Kind, keyHref } from "./keys/key-columns.tsx";
import { askForKey } from "./keys/key-dialogs.tsx";
import type { ScreenProps } from "./screens.tsx";

const LEADS: Readonly<Record<Kind, string>> = {
  parked:
    "Events of a key are delivered in order: while its first event is dead, the later ones wait. Resolve the first one, and they follow.",
  retrying:
    "The first event of these keys failed. The relay retries it; the later events of the key wait until it arrives.",
  hot: "These keys are healthy but busy: many of the newest events have the same key and are delivered one after another.",
};

const NOTHING: Readonly<Record<Kind, readonly [title: string, text: string]>> = {
  parked: ["No key is parked", "No key is blocked by a dead event."],
  retrying: ["No key is being retried", "No event has failed on its last attempt."],
  hot: ["No key is hot", "No key has far more pending events than the others."],
};

const REFRESH_MS = 5_000;

export function KeysScreen({ query }: ScreenProps) {
  const kind = KINDS.find((it) => it === query.kind) ?? "parked";
  const { pipeline = "", cursor, q = "" } = query;
  const asked = useApi<Keys>("/keys", { kind, pipeline, q, cursor, limit: 50 }, { everyMs: REFRESH_MS });
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const pipelines = useApi<Status>("/status").data?.pipelines.map((it) => it.pipeline) ?? [];
  const tabs = KINDS.map((it) => ({
    label: `${it.charAt(0).toUpperCase()}${it.slice(1)}`,
    href: placeHash("/keys", { kind: it === "parked" ? null : it, pipeline, q }),
    isOpen: it === kind,
  }));
  return (
    <Page
      title="Keys"
      lead={LEADS[kind]}
      actions={
        <>
          <RoleNote />
          <ViewsMenu />
          <CliButton command={keysLine(kind, pipeline, q)} />
        </>
      }
    >
      <div class="tabs-row">
        <Tabs label="Kinds of keys" tabs={tabs} />
        {pipelines.length > 1 && (
          <SelectField
            label="Pipeline"
            name="pipeline"
            value={pipeline}
            options={[["", "all"], ...pipelines.map((it) => [it, it] as const)]}
          />
        )}
      </div>
      <SearchField label="Keys that contain" name="q" value={q} placeholder="part of a key" />
      <Answer asked={asked} command={keysLine(kind, pipeline, q)}>
        {(page) => (
          <>
            {page.keys.length === 0 ? (
              q === "" ? (
                <Empty title={NOTHING[kind][0]}>{NOTHING[kind][1]}</Empty>
              ) : (
                <Empty title={`No ${kind} key contains “${q}”`} icon="search">
                  <a href={placeHash("/keys", { kind: query.kind, pipeline })}>Show all</a>
                </Empty>
              )
            ) : (
              <KeyTable
                kind={kind}
                keys={page.keys}
                isOnePipeline={pipelines.length <= 1}
                chosen={chosen}
                setChosen={setChosen}
                reload={asked.reload}
              />
            )}
            <Pager cursor={cursor} next={page.cursor} />
          </>
        )}
      </Answer>
    </Page>
  );
}

interface KeyTableProps {
  readonly kind: Kind;
  readonly keys: readonly KeyOfEvents[];
  readonly isOnePipeline: boolean;
  readonly chosen: ReadonlySet<string>;
  setChosen(chosen: ReadonlySet<string>): void;
  reload(): void;
}

const nameOf = ({ key, pipeline }: KeyOfEvents) => JSON.stringify([pipeline, key]);

/** Actions apply only to selected keys that are still listed: keys that left the list are no longer blocked. */
function KeyTable({ kind, keys, isOnePipeline, chosen, setChosen, reload }: KeyTableProps) {
  const meant = keys
    .filter((it) => chosen.has(nameOf(it)))
    .flatMap(({ head, key, pipeline }) =>
      head === null ? [] : [{ key, pipeline, headId: head.id, state: head.state }],
    );
  const isHot = kind === "hot";
  const done = () => {
    setChosen(new Set());
    reload();
  };
  return (
    <Card
      isFlush
      title={
        isHot
          ? undefined
          : meant.length === 0
            ? "Select keys to act on several at once"
            : `${plural(meant.length, "key")} selected`
      }
      actions={isHot ? undefined : <BulkButtons meant={meant} done={done} />}
    >
      <Table
        label={`${kind.charAt(0).toUpperCase()}${kind.slice(1)} keys`}
        columns={columnsOf(kind, isOnePipeline, reload)}
        rows={keys}
        keyOf={nameOf}
        hrefOf={keyHref}
        chosen={isHot ? undefined : chosen}
        onChoose={setChosen}
      />
    </Card>
  );
}

const BULK = [
  ["discard", "Discard", "bin"],
  ["skip", "Skip", "skip"],
  ["resume", "Retry all failed of", "play"],
  ["retry", "Retry", "retry"],
] as const;

function BulkButtons({
  meant,
  done,
}: {
  readonly meant: readonly { key: string; pipeline: string; headId: string; state: string }[];
  done(): void;
}) {
  if (meant.length === 0) return null;
  const isDead = meant.every(({ state }) => state === "dead");
  return (
    <span class="row">
      {BULK.map(([verb, label, icon]) => (
        <ActionButton
          key={verb}
          icon={icon}
          kind={verb === "retry" ? "primary" : "plain"}
          whyNot={
            isDead || verb === "retry" || verb === "resume"
              ? null
              : "The relay still retries some of them. Only dead events can be skipped or discarded."
          }
          onClick={() => askForKey(verb, meant, done)}
        >
          {`${label} ${plural(meant.length, "key")}`}
        </ActionButton>
      ))}
    </span>
  );
}
