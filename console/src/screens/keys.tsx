import { CliButton } from "../kit/button.tsx";
import { Answer, Empty } from "../kit/error-box.tsx";
import { SelectField } from "../kit/fields.tsx";
import { Card, Page, Tabs } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { RoleNote } from "../kit/role-note.tsx";
import { Pager, Table } from "../kit/table.tsx";
import type { Keys, Status } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { keysLine } from "./cli-lines.ts";
import { columnsOf, KINDS, type Kind, keyHref } from "./keys/key-columns.tsx";
import type { ScreenProps } from "./screens.tsx";

const LEADS: Readonly<Record<Kind, string>> = {
  parked:
    "Order is kept within a key: while its first event is dead, the others wait. Put the first one right, and they follow.",
  retrying: "The first event of these keys failed and is tried again by itself; what is behind it waits so long.",
  hot: "Nothing is wrong with these: many of the newest events have one key, and go out one after the other.",
};

const NOTHING: Readonly<Record<Kind, readonly [title: string, text: string]>> = {
  parked: ["No key is parked", "No event of a key is dead, so nothing waits behind one."],
  retrying: ["No key is being retried", "What was sent last has arrived."],
  hot: ["No key is hot", "No key has much more to send than the others."],
};

const LOOK_AGAIN_MS = 5_000;

export function KeysScreen({ query }: ScreenProps) {
  const kind = KINDS.find((it) => it === query.kind) ?? "parked";
  const { pipeline = "", cursor } = query;
  const asked = useApi<Keys>("/keys", { kind, pipeline, cursor, limit: 50 }, { everyMs: LOOK_AGAIN_MS });
  const pipelines = useApi<Status>("/status").data?.pipelines.map((it) => it.pipeline) ?? [];
  const tabs = KINDS.map((it) => ({
    label: `${it.charAt(0).toUpperCase()}${it.slice(1)}`,
    href: placeHash("/keys", { kind: it === "parked" ? null : it, pipeline }),
    isOpen: it === kind,
  }));
  return (
    <Page
      title="Keys"
      lead={LEADS[kind]}
      actions={
        <>
          <RoleNote />
          <CliButton command={keysLine(kind, pipeline)} />
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
      <Answer asked={asked} command={keysLine(kind, pipeline)}>
        {(page) => (
          <>
            {page.keys.length === 0 ? (
              <Empty title={NOTHING[kind][0]}>{NOTHING[kind][1]}</Empty>
            ) : (
              <Card isFlush>
                <Table
                  label={`Keys that are ${kind}`}
                  columns={columnsOf(kind, pipelines.length <= 1, asked.reload)}
                  rows={page.keys}
                  keyOf={({ key, pipeline: of }) => JSON.stringify([of, key])}
                  hrefOf={keyHref}
                />
              </Card>
            )}
            <Pager cursor={cursor} next={page.cursor} />
          </>
        )}
      </Answer>
    </Page>
  );
}
