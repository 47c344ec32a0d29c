import type { z } from "zod";
import type { changeSchema, groupsSchema, letterPageSchema } from "../../../src/http/schemas/dead-letters.ts";
import type {
  attemptSchema,
  correlationSchema,
  editSchema,
  eventPageSchema,
  payloadSchema,
  shownEventSchema,
  sourcesSchema,
} from "../../../src/http/schemas/events.ts";
import type { keyBulkSchema, keysSchema } from "../../../src/http/schemas/keys.ts";
import type {
  destinationSchema,
  overviewSchema,
  pointSchema,
  seriesSchema,
} from "../../../src/http/schemas/overview.ts";
import type {
  changedPipelinesSchema,
  destinationsSchema,
  forgetSchema,
  lanesSchema,
  statusSchema,
} from "../../../src/http/schemas/pipelines.ts";
import type {
  patchPreviewSchema,
  planItemsSchema,
  planPageSchema,
  planSchema,
} from "../../../src/http/schemas/replays.ts";
import type {
  auditActionSchema,
  auditEntrySchema,
  auditSchema,
  configSchema,
  findingsSchema,
  logsSchema,
  sessionSchema,
} from "../../../src/http/schemas/service.ts";

/** Types of the API's answers, derived from its schemas: a change there is a type error here. */
export type Session = z.output<typeof sessionSchema>;
export type Overview = z.output<typeof overviewSchema>;
export type HealthCause = Overview["causes"][number];
export type Destination = z.output<typeof destinationSchema>;
export type KnownDestinations = z.output<typeof destinationsSchema>;
export type KnownDestination = KnownDestinations["destinations"][number];
export type ChangedPipelines = z.output<typeof changedPipelinesSchema>;
export type Point = z.output<typeof pointSchema>;
export type Series = z.output<typeof seriesSchema>;
export type Status = z.output<typeof statusSchema>;
export type PipelineStatus = Status["pipelines"][number];
export type ForgottenPipeline = z.output<typeof forgetSchema>;
export type Lanes = z.output<typeof lanesSchema>;
export type Lane = Lanes["lanes"][number];
export type Sources = z.output<typeof sourcesSchema>;
export type EventPage = z.output<typeof eventPageSchema>;
export type EventRow = EventPage["events"][number];
export type ShownEvent = z.output<typeof shownEventSchema>;
export type Attempt = z.output<typeof attemptSchema>;
export type Edit = z.output<typeof editSchema>;
export type Correlation = z.output<typeof correlationSchema>;
export type Payload = z.output<typeof payloadSchema>;
export type LetterPage = z.output<typeof letterPageSchema>;
export type Letter = LetterPage["deadLetters"][number];
export type LetterGroups = z.output<typeof groupsSchema>;
export type LetterGroup = LetterGroups["groups"][number];
export type LetterChange = z.output<typeof changeSchema>;
export type Keys = z.output<typeof keysSchema>;
export type KeyOfEvents = Keys["keys"][number];
export type KeyBulk = z.output<typeof keyBulkSchema>;
export type Plan = z.output<typeof planSchema>;
export type PatchPreview = z.output<typeof patchPreviewSchema>;
export type PlanStratum = Plan["strata"][number];
export type PlanPage = z.output<typeof planPageSchema>;
export type PlanItems = z.output<typeof planItemsSchema>;
export type Audit = z.output<typeof auditSchema>;
export type AuditAction = z.output<typeof auditActionSchema>;
export type AuditEntry = z.output<typeof auditEntrySchema>;
export type Config = z.output<typeof configSchema>;
export type Findings = z.output<typeof findingsSchema>;
export type Finding = Findings["findings"][number];
export type Logs = z.output<typeof logsSchema>;
export type LogReader = Logs["logs"][number];
