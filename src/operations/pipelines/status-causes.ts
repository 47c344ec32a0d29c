import { endsOf, type HealthCause, inOrder, pipelineLink, runbookLink } from "../../core/health-cause.ts";
import { type PipelineFacts, pipelineCauses } from "./pipeline-causes.ts";

interface StatusFacts extends PipelineFacts {
  readonly isServed: boolean;
  readonly pending: number | null;
  readonly oldestAgeMs: number | null;
  /** Why it could not be counted; null when it was. */
  readonly countProblem: string | null;
}

/** An older event is late. */
export const LAG_MAX_MS = 60_000;

/** Why the relay is not healthy, as far as the database shows. A paused pipeline may be late. */
export function statusCauses(
  pipelines: readonly StatusFacts[],
  unrouted: readonly { readonly source: string; readonly what: string }[],
): readonly HealthCause[] {
  return inOrder([...pipelines.flatMap(waitingCauses), ...pipelineCauses(pipelines), ...unrouted.map(unroutedCause)]);
}

function unroutedCause({ source, what }: { readonly source: string; readonly what: string }): HealthCause {
  return {
    ...{ code: "types-untaken", grade: "attention", pipeline: null, source, destination: null, what, since: null },
    ...{ fix: "Add a route for them, or start the relay that handles them.", link: runbookLink("types-untaken") },
  };
}

function waitingCauses({ countProblem, isServed, oldestAgeMs, pause, pending, pipeline }: StatusFacts): HealthCause[] {
  const about = { grade: "degraded", ...endsOf(pipeline), fix: null, since: null } as const;
  const link = pipelineLink(pipeline);
  const ageMs = oldestAgeMs ?? 0;
  const causes: HealthCause[] = [];
  if (countProblem !== null) {
    const what = `${pipeline} cannot be counted: ${countProblem}`;
    causes.push({ ...about, code: "count-failed", what, link, runbook: runbookLink("source-broken") });
  }
  if (pause !== null) return causes;
  if (!isServed && (pending ?? 0) > 0) {
    const what = `${pipeline} has events waiting and no live instance`;
    causes.push({ ...about, code: "pipeline-unserved", what, link, runbook: runbookLink("relay-absent") });
  }
  if (ageMs > LAG_MAX_MS) {
    const what = `${pipeline} is ${Math.round(ageMs / 1_000)} s late`;
    causes.push({ ...about, code: "pipeline-late", what, link });
  }
  return causes;
}
