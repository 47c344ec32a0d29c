import { DEFAULT_LIMITS } from "../core/limits.ts";
import type { Backlog } from "../ports/queue-store.ts";
import { openOutboxSource } from "../sources/openoutbox/openoutbox-source.ts";
import { postgresSource } from "../sources/postgres/postgres-source.ts";
import type { OperationTarget } from "./event-source.ts";
import type { KnownPipeline } from "./pipelines.ts";
import { tableKind } from "./table-kind.ts";

/**
 * What waits for a pipeline, counted as a running relay counts it. The types that a pipeline takes are known only to the
 * program that runs it: where several share a table, each is told all that waits there.
 */
export async function pipelineBacklog(target: OperationTarget, known: KnownPipeline): Promise<Backlog> {
  const { database, columns } = target;
  const table = { schema: known.schema, table: known.table };
  const isOpen = (await tableKind(database, table)) === "openoutbox";
  const source = isOpen ? openOutboxSource({ database, table }) : postgresSource({ database, table, columns });
  const { payloadBytesMax, headersMax } = DEFAULT_LIMITS;
  const spec = { name: known.pipeline, types: null, lanes: known.lanes, attemptsMax: 1, payloadBytesMax, headersMax };
  return await source.pipeline(spec).backlog();
}
