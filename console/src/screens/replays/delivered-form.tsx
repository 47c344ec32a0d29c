import { useState } from "preact/hooks";
import { ActionButton } from "../../kit/action-button.tsx";
import { apiPost } from "../../kit/api.ts";
import { Button, CliButton } from "../../kit/button.tsx";
import { ErrorBox } from "../../kit/error-box.tsx";
import { SelectField } from "../../kit/fields.tsx";
import { FilterBox } from "../../kit/filter/filter-box.tsx";
import { withField } from "../../kit/filter/filter-text.ts";
import { Card } from "../../kit/page.tsx";
import type { Query } from "../../kit/place.ts";
import { changeQuery } from "../../kit/router.ts";
import type { Plan, Sources, Status } from "../../kit/types.ts";
import { useAction, useApi } from "../../kit/use-api.ts";
import { planLine } from "../cli-lines.ts";
import { planHref } from "../links.ts";
import { isoOfInput, localInput } from "./local-time.ts";
import { planBody } from "./plan-dialog.tsx";

/** Replays delivered events for a consumer that lost data. The address holds all fields except rate and reason. */
export function DeliveredForm({ query }: { readonly query: Query }) {
  const { q = "", since = "", until = "", pipeline = "" } = query;
  const [rate, setRate] = useState("");
  const [reason, setReason] = useState("");
  const sources = useApi<Sources>("/sources").data?.sources.map(({ source }) => source) ?? [];
  const pipelines = useApi<Status>("/status").data?.pipelines.map((it) => it.pipeline) ?? [];
  const wish = { action: "replay", subject: "delivered", q: wholeFilter(q, since, until), pipeline } as const;
  const action = useAction(async () => {
    const plan = await apiPost<Plan>("/replays", planBody(wish, reason.trim(), rate.trim()));
    location.hash = planHref(plan.id);
  });
  return (
    <Card
      title="Replay delivered events"
      actions={<Button kind="quiet" icon="cross" label="Close" onClick={() => changeQuery(CLOSED)} />}
    >
      <div class="plan-form">
        <p class="soft">
          For a consumer that lost data: events that were delivered before are sent again, in order. Consumers that are
          not idempotent process them twice. This creates a plan; nothing is sent until you run it.
        </p>
        <FilterBox
          label="Delivered events that match"
          value={q}
          known={{ source: sources, state: ["delivered"] }}
          error={action.error}
          placeholder="type:order.* key:42 source:shop.outbox"
          onFilter={(text) => changeQuery({ q: text }, "replace")}
        />
        <PlanFields query={query} rate={rate} onRate={setRate} reason={reason} onReason={setReason} />
        {action.error !== null && <ErrorBox error={action.error} />}
        <div class="row">
          {pipelines.length > 1 && (
            <SelectField
              label="To"
              name="pipeline"
              value={pipeline}
              options={[["", "the pipeline that delivered them"], ...pipelines.map((it) => [it, it] as const)]}
            />
          )}
          <span class="spring" />
          <CliButton command={planLine(wish, reason.trim(), rate.trim())} />
          <ActionButton
            icon="replays"
            kind="primary"
            isBusy={action.isBusy}
            whyNot={wish.q === "" ? "Enter a filter or a time range." : null}
            onClick={() => void action.run()}
          >
            Create the plan
          </ActionButton>
        </div>
      </div>
    </Card>
  );
}

interface PlanFieldsProps {
  readonly query: Query;
  readonly rate: string;
  onRate(rate: string): void;
  readonly reason: string;
  onReason(reason: string): void;
}

function PlanFields({ query: { since = "", until = "" }, rate, onRate, reason, onReason }: PlanFieldsProps) {
  return (
    <div class="plan-fields">
      <TimeField label="Written from" value={since} onTime={(at) => changeQuery({ since: at }, "replace")} />
      <TimeField label="until" value={until} onTime={(at) => changeQuery({ until: at }, "replace")} />
      <label class="field">
        <span>Maximum events per second</span>
        <input
          inputMode="decimal"
          value={rate}
          placeholder="no limit"
          onInput={(it) => onRate(it.currentTarget.value)}
        />
      </label>
      <label class="field">
        <span>Reason (optional)</span>
        <input value={reason} maxLength={500} onInput={(it) => onReason(it.currentTarget.value)} />
      </label>
    </div>
  );
}

const CLOSED = { new: null, q: null, since: null, until: null, pipeline: null };

function wholeFilter(q: string, since: string, until: string): string {
  const from = since === "" ? q : withField(q, "since", since);
  return (until === "" ? from : withField(from, "until", until)).replace(/\b(since|until):"([^"]*)"/g, "$1:$2");
}

function TimeField({
  label,
  value,
  onTime,
}: {
  readonly label: string;
  readonly value: string;
  onTime(at: string): void;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="datetime-local"
        value={localInput(value)}
        onChange={(it) => onTime(isoOfInput(it.currentTarget.value))}
      />
    </label>
  );
}
