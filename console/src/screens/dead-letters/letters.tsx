import { useState } from "preact/hooks";
import { ActionButton } from "../../kit/action-button.tsx";
import { StateBadge } from "../../kit/badge.tsx";
import { Answer, Empty } from "../../kit/error-box.tsx";
import { Ago } from "../../kit/figures.tsx";
import { withField } from "../../kit/filter/filter-text.ts";
import { countText, plural } from "../../kit/format.ts";
import { Card } from "../../kit/page.tsx";
import { PlainText, ShortId } from "../../kit/plain-text.tsx";
import { session } from "../../kit/session.ts";
import { useStore } from "../../kit/store.ts";
import { type Column, Pager, Table } from "../../kit/table.tsx";
import type { Letter, LetterPage } from "../../kit/types.ts";
import { useApi } from "../../kit/use-api.ts";
import { lettersLine } from "../cli-lines.ts";
import { eventHref, eventsHref, keyFilter } from "../links.ts";
import { askForPlan } from "../replays/plan-dialog.tsx";

interface LettersProps {
  readonly q: string;
  /** Null for all errors. */
  readonly group: string | null;
  /** How many there are; null if they are not counted. */
  readonly total: number | null;
  readonly cursor: string | undefined;
}

/** The dead letters that match a filter. Actions apply to the selected ones, or to all matches if none is selected. */
export function Letters({ q, group, total, cursor }: LettersProps) {
  const filter = group === null ? q : withField(q, "group", group);
  const asked = useApi<LetterPage>("/dead-letters", { q: filter, cursor, limit: 50 });
  const [chosen, setChosen] = useState<Chosen>(new Map());
  return (
    <Answer asked={asked} command={lettersLine(filter)}>
      {({ deadLetters, cursor: next }) => {
        const ids = [...chosen.values()];
        return deadLetters.length === 0 ? (
          <Empty title="No dead letters match">Remove a term from the filter.</Empty>
        ) : (
          <>
            <Card
              isFlush
              title={ids.length === 0 ? "Newest first" : `${plural(ids.length, "letter")} selected`}
              actions={<PlanButtons filter={filter} ids={ids} total={total} />}
            >
              <Table
                label="Dead letters"
                columns={LETTER_COLUMNS}
                rows={deadLetters}
                keyOf={({ letterId }) => letterId}
                hrefOf={(letter) => eventHref(letter)}
                chosen={new Set(chosen.keys())}
                onChoose={(keys) => setChosen(chosenOf(chosen, deadLetters, keys))}
                isDim={asked.isLoading}
              />
            </Card>
            <Pager cursor={cursor} next={next} />
          </>
        );
      }}
    </Answer>
  );
}

/** Event ids by the ids of their dead letters, including letters on other pages. */
type Chosen = ReadonlyMap<string, string>;

function chosenOf(before: Chosen, shown: LetterPage["deadLetters"], keys: ReadonlySet<string>): Chosen {
  const next = new Map(before);
  for (const { id, letterId } of shown) {
    if (keys.has(letterId)) next.set(letterId, id);
    else next.delete(letterId);
  }
  return next;
}

interface PlanButtonsProps {
  readonly filter: string;
  readonly ids: readonly string[];
  readonly total: number | null;
}

/** Each creates a plan; nothing changes until the operator runs it. */
export function PlanButtons({ filter, ids, total }: PlanButtonsProps) {
  const what =
    ids.length > 0
      ? plural(ids.length, "event")
      : total === null
        ? "them all"
        : total === 1
          ? "it"
          : `all ${countText(total)}`;
  const maySee = useStore(session)?.identity?.maySeePayloads ?? false;
  const plan = (action: "replay" | "discard", isPatch = false) =>
    askForPlan(
      {
        action,
        isPatch,
        subject: "dead",
        q: filter,
        ids: ids.length > 0 ? ids : undefined,
        all: filter.trim() === "" && ids.length === 0,
      },
      what,
    );
  return (
    <span class="row">
      <ActionButton icon="bin" onClick={() => plan("discard")}>
        {`Plan to discard ${what}`}
      </ActionButton>
      <ActionButton
        icon="edit"
        whyNot={maySee ? null : "You have no permission to see payloads, so you cannot change them."}
        onClick={() => plan("replay", true)}
      >
        {`Plan to patch ${what}`}
      </ActionButton>
      <ActionButton icon="replays" kind="primary" onClick={() => plan("replay")}>
        {`Plan to replay ${what}`}
      </ActionButton>
    </span>
  );
}

const LETTER_COLUMNS: readonly Column<Letter>[] = [
  { name: "Type", cell: ({ type }) => <PlainText text={type} /> },
  {
    name: "Key",
    cell: ({ key, source }) =>
      key === null ? (
        <span class="faint">none</span>
      ) : (
        <a class="mono cut-end" href={eventsHref(keyFilter(key, source))}>
          <PlainText text={key} />
        </a>
      ),
  },
  {
    name: "Id",
    cell: ({ id }) => <ShortId id={id} />,
  },
  { name: "Source", isExtra: true, cell: ({ source }) => <span class="soft">{source}</span> },
  { name: "Failures", isFigure: true, isExtra: true, cell: ({ failures }) => failures },
  { name: "Died", cell: ({ lastFailedAt }) => <Ago at={lastFailedAt} /> },
  {
    name: "Error",
    isWide: true,
    cell: ({ reason, resolution }) => (
      <span class="cut two">
        {resolution !== null && <StateBadge state={resolution.how} />} <PlainText text={reason} charsMax={300} />
      </span>
    ),
  },
];
