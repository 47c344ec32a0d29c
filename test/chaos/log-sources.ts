import type { PipelineSpec, QueueSource } from "../../src/ports/queue-store.ts";
import { displayTable } from "../../src/postgres/identifiers.ts";
import { type Database, openDatabase } from "../../src/postgres/pool.ts";
import { logSource } from "../../src/sources/postgres/log/log-source.ts";
import { tailKind } from "../../src/sources/postgres/tail/tail-kind.ts";
import { walKind } from "../../src/sources/postgres/wal/wal-kind.ts";
import { variable } from "../e2e/relay-of-process.ts";
import { MANAGED, WAL, WAL_PUBLICATION, WAL_SLOT } from "./log-tables.ts";

/** What a relay process reads that was told to read a log; undefined for one of flag tables. */
export function logsOfProcess(): readonly QueueSource[] | undefined {
  const source = process.env.SOURCE ?? "flag";
  if (source === "flag") return undefined;
  const leaseMs = Number(variable("LEASE_MS"));
  // A write that waits longer than half a lease could come back to a lane that is somebody else's.
  const timeouts = {
    statementMs: Math.min(4_000, leaseMs / 2),
    lockMs: Math.min(2_000, leaseMs / 4),
    connectMs: 2_000,
  };
  const database = openDatabase({ url: variable("DATABASE_URL"), relaySchema: variable("RELAY_SCHEMA"), timeouts });
  const opened = source === "managed" ? managedLog(database) : walLog(database);
  const close = async () => {
    await opened.close();
    await database.close();
  };
  return [{ ...opened, close }];
}

function managedLog(database: Database): QueueSource {
  const kind = (spec: PipelineSpec) =>
    tailKind({ database, reference: MANAGED, columns: {}, spec, start: "beginning" });
  return logSource({ database, name: displayTable(MANAGED), table: MANAGED, kind });
}

function walLog(database: Database): QueueSource {
  const kind = (spec: PipelineSpec) =>
    walKind({
      ...{ database, spec, table: WAL, messages: null, columns: {}, preset: "plain", start: "beginning" },
      ...{ slot: WAL_SLOT, publication: WAL_PUBLICATION },
    });
  return logSource({ database, name: displayTable(WAL), table: WAL, kind });
}
