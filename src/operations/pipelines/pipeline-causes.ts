import { consoleLink, destinationLink, endsOf, type HealthCause, pipelineLink } from "../../core/health-cause.ts";
import { destinationOf } from "../../postgres/pipelines.ts";
import { quotedValue } from "../filter/filter-words.ts";

/** What the relay's schema contains on a pipeline. */
export interface PipelineFacts {
  readonly pipeline: string;
  readonly deadLetters: number;
  /** ISO 8601; null when unknown. */
  readonly deadSince: string | null;
  /** Keys parked by a dead event: those behind a retried event continue on their own. */
  readonly parkedKeys: number;
  readonly parkedSince: string | null;
  readonly pause: { readonly at: string | null; readonly by: string | null } | null;
}

/** Causes that wait for an operator. Nothing is broken, so none is worse than `attention`. */
export function pipelineCauses(pipelines: readonly PipelineFacts[]): readonly HealthCause[] {
  return [...pipelines.flatMap(deadLetterCause), ...pipelines.flatMap(parkedCause), ...pauseCauses(pipelines)];
}

function deadLetterCause({ deadLetters, deadSince, pipeline }: PipelineFacts): readonly HealthCause[] {
  if (deadLetters === 0) return [];
  const ends = endsOf(pipeline);
  return [
    {
      ...{ code: "dead-letters", grade: "attention", ...ends },
      what: `${pipeline} has ${many(deadLetters, "dead letter")}: failed events that are not retried automatically`,
      fix: "Fix what made them fail, then replay or discard them.",
      since: deadSince,
      link: consoleLink(
        "/dead-letters",
        ends.source === null
          ? {}
          : { q: `source:${quotedValue(tableOf(ends.source))} destination:${quotedValue(destinationOf(pipeline))}` },
      ),
    },
  ];
}

function parkedCause({ parkedKeys, parkedSince, pipeline }: PipelineFacts): readonly HealthCause[] {
  if (parkedKeys === 0) return [];
  return [
    {
      ...{ code: "keys-parked", grade: "attention", ...endsOf(pipeline) },
      what: `${many(parkedKeys, "key")} of ${pipeline} ${parkedKeys === 1 ? "is" : "are"} parked: later events wait behind a failed one`,
      fix: "Replay, edit or discard the first event of each key.",
      since: parkedSince,
      link: consoleLink("/keys", { pipeline }),
    },
  ];
}

/** Pauses of all pipelines of a destination become one cause, because the destination was paused. */
function pauseCauses(pipelines: readonly PipelineFacts[]): readonly HealthCause[] {
  const byDestination = Map.groupBy(pipelines, ({ pipeline }) => endsOf(pipeline).destination ?? pipeline);
  return [...byDestination].flatMap(([destination, own]) => {
    const paused = own.filter(({ pause }) => pause !== null);
    if (paused.length < 2 || paused.length < own.length) return paused.map(pauseCause);
    const since = paused.map(({ pause }) => pause!.at).reduce(earliest);
    return [
      {
        ...{ code: "destination-paused", grade: "attention", pipeline: null, source: null, destination },
        what: `All ${paused.length} pipelines to ${destination} are paused${byText(paused)}: no events are sent there`,
        ...{ fix: RESUME, since, link: destinationLink(destination) },
      },
    ];
  });
}

const RESUME = "Resume it in the console or with `outbox-relay resume`.";

function pauseCause(paused: PipelineFacts): HealthCause {
  const { pause, pipeline } = paused;
  return {
    ...{ code: "pipeline-paused", grade: "attention", ...endsOf(pipeline) },
    what: `${pipeline} is paused${byText([paused])}: none of its events are sent`,
    ...{ fix: RESUME, since: pause?.at ?? null, link: pipelineLink(pipeline) },
  };
}

function byText(paused: readonly PipelineFacts[]): string {
  const names = [...new Set(paused.map(({ pause }) => pause?.by ?? ""))].filter((name) => name !== "");
  return names.length === 0 ? "" : ` by ${names.join(", ")}`;
}

function earliest(left: string | null, right: string | null): string | null {
  return left === null || (right !== null && right < left) ? right : left;
}

/** `shop.log` of `shop.log@audit`: subscribers read the same table. */
function tableOf(source: string): string {
  return source.replace(/@[^@]*$/, "");
}

function many(count: number, noun: string): string {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}
