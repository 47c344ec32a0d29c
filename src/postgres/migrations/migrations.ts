import { relaySchemaMigration } from "./001-relay-schema.ts";
import { ledgerMigration } from "./002-ledger.ts";
import { pauseMigration } from "./003-pause.ts";
import { resolutionsMigration } from "./004-resolutions.ts";
import { takesMigration } from "./005-takes.ts";
import { logsMigration } from "./006-logs.ts";
import { operationsMigration } from "./007-operations.ts";
import { deploymentsMigration } from "./008-deployments.ts";
import { pipelineRoutesMigration } from "./009-pipeline-routes.ts";
import { destinationsMigration } from "./010-destinations.ts";
import { errorGroupsMigration } from "./011-error-groups.ts";
import { deadLettersViewMigration } from "./012-dead-letters-view.ts";
import type { Migration } from "./migration.ts";

/** In the order of their versions, without gaps. A released migration never changes. */
export const MIGRATIONS: readonly Migration[] = [
  relaySchemaMigration,
  ledgerMigration,
  pauseMigration,
  resolutionsMigration,
  takesMigration,
  logsMigration,
  operationsMigration,
  deploymentsMigration,
  pipelineRoutesMigration,
  destinationsMigration,
  errorGroupsMigration,
  deadLettersViewMigration,
];

/** This program's version of the schema. */
export const SCHEMA_VERSION = MIGRATIONS.length;
