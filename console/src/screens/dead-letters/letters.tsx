import { useState } from "preact/hooks";
import { ActionButton } from "../../kit/action-button.tsx";
import { Answer, Empty } from "../../kit/error-box.tsx";
import { withField } from "../../kit/filter/filter-text.ts";
import { countText, plural } from "../../kit/format.ts";
import { Card } from "../../kit/page.tsx";
import { Pager, Table } from "../../kit/table.tsx";
import type { LetterPage } from "../../kit/types.ts";
import { useApi } from "../../kit/use-api.ts";
import { lettersLine } from "../cli-lines.ts";
import { eventHref } from "../links.ts";
import { askForPlan } from "../replays/plan-dialog.tsx";
import { LETTER_COLUMNS } from "./letter-columns.tsx";

interface LettersProps {
  readonly q: string;
  /** Null for all errors. */
  readonly group: string | null;
  /** How many there are; null where nobody has counted. */
  readonly total: number | null;
  readonly cursor: string | undefined;
}

/** The letters of a filter. What is chosen is meant, or else all that the filter finds. */
export function Letters({ q, group, total, cursor }: LettersProps) {
  const filter = group === null ? q : withField(q, "group", group);
  const asked = useApi<LetterPage>("/dead-letters", { q: filter, cursor, limit: 50 });
  const [chosen, setChosen] = useState<Chosen>(new Map());
  return (
    <Answer asked={asked} command={lettersLine(filter)}>
      {({ deadLetters, cursor: next }) => {
        const ids = [...chosen.values()];
        return deadLetters.length === 0 ? (
          <Empty title="No dead letter is like that">Take a word out of the filter.</Empty>
        ) : (
          <>
            <Card
              isFlush
              title={ids.length === 0 ? "The last that died first" : `${plural(ids.length, "letter")} chosen`}
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

/** Ids of events by those of their letters; also of pages that are not shown. */
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

/** Both write a plan first; nothing is done before somebody has looked at it. */
export function PlanButtons({ filter, ids, total }: PlanButtonsProps) {
  const what =
    ids.length > 0
      ? plural(ids.length, "event")
      : total === null
        ? "them all"
        : total === 1
          ? "it"
          : `all ${countText(total)}`;
  const plan = (action: "replay" | "discard") =>
    askForPlan(
      {
        action,
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
      <ActionButton icon="replays" kind="primary" onClick={() => plan("replay")}>
        {`Plan to replay ${what}`}
      </ActionButton>
    </span>
  );
}
