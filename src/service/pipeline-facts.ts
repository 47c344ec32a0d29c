import type { AnswerBook } from "../core/answer-times.ts";
import type { CauseFacts, SlowDestination } from "../http/health/health-causes.ts";
import type { Condition } from "../telemetry/condition.ts";
import type { FlowMeter } from "../telemetry/metrics/flow-meter.ts";
import { type KnownStanding, stallOf, standingOfPipeline } from "../telemetry/pipeline-standing.ts";
import type { Engine } from "./engine.ts";

/** The destinations that answer slower than usual. */
export function slowIn(answers: AnswerBook): readonly SlowDestination[] {
  return [...answers.all()].flatMap(([destination, times]) => {
    const { slow } = times.figures();
    return slow === null ? [] : [{ destination, ...slow }];
  });
}

/** The facts from which health judges each pipeline of this process. */
export function pipelineFacts(
  engine: Pick<Engine, "backlog" | "pipelines"> | null,
  condition: Condition,
  flow: FlowMeter,
  standings: ReadonlyMap<string, KnownStanding>,
  unreachable: readonly string[],
): Pick<CauseFacts, "pipelines" | "stalled" | "untaken"> {
  const ends = engine?.pipelines ?? [];
  const of = (pipeline: string) => ({
    count: engine?.backlog.counts.get(pipeline),
    known: standings.get(pipeline) ?? null,
  });
  return {
    pipelines: ends.map(({ pipeline }) => {
      const { known, count } = of(pipeline);
      return standingOfPipeline(pipeline, known, count, condition);
    }),
    stalled: ends.flatMap(({ destination, pipeline }) => {
      const idleForMs = flow.idleForMs(pipeline);
      return stallOf({ pipeline, destination, ...of(pipeline), idleForMs, unreachable }, condition) ?? [];
    }),
    untaken: ends.flatMap(({ pipeline }) => {
      const types = condition.unmatchedTypesOf(pipeline);
      const sinceMs = condition.unmatchedSinceMs(pipeline);
      return types === 0 ? [] : [{ pipeline, types, ...(sinceMs === undefined ? {} : { sinceMs }) }];
    }),
  };
}
