import type { OperationTarget } from "../../operations/events/event-source.ts";
import type { Route } from "../route.ts";
import { auditRoute } from "./audit-routes.ts";
import { deadLetterChangeRoutes, editRoute } from "./dead-letter-changes.ts";
import { deadLetterRoutes } from "./dead-letter-routes.ts";
import { destinationRoutes } from "./destination-routes.ts";
import { eventRoutes } from "./event-routes.ts";
import { exportRoutes } from "./export-routes.ts";
import { keyRoutes } from "./key-routes.ts";
import { pipelineRoutes } from "./pipeline-routes.ts";
import { replayRoutes } from "./replay-routes.ts";

/** What people do with a relay: everything that needs the database alone. The client is generated from these. */
export function operationRoutes(target: () => OperationTarget): Route[] {
  return [
    auditRoute(target),
    ...pipelineRoutes(target),
    ...destinationRoutes(target),
    ...eventRoutes(target),
    ...exportRoutes(target),
    ...deadLetterRoutes(target),
    ...deadLetterChangeRoutes(target),
    editRoute(target),
    ...replayRoutes(target),
    ...keyRoutes(target),
  ];
}
