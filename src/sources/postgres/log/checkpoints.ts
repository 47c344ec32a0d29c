import { RelayError } from "../../../core/errors.ts";
import type { Grant } from "../../../ports/queue-store.ts";
import { grantCondition } from "../../../postgres/grant-condition.ts";
import { quoteLiteral } from "../../../postgres/identifiers.ts";
import { systemId } from "../../../postgres/identity.ts";
import { fenced, writeSettings } from "../../../postgres/lanes.ts";
import type { Database } from "../../../postgres/pool.ts";
import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import type { Session } from "../../../postgres/session.ts";
import { glance, statement, transaction } from "../../../postgres/transaction.ts";
import type { Checkpoint, LogKind } from "./log-kind.ts";
import type { LogLane, TakenLane } from "./log-lane.ts";

interface LaneCheckpoint<Segment> {
  readonly lane: number;
  readonly checkpoint: Checkpoint<Segment>;
}

/** Reads the checkpoints of these lanes. A lane that has never begun gets its start position now, under its grant. */
export async function takeCheckpoints<Segment>(
  database: Database,
  pipeline: string,
  kind: LogKind<Segment>,
  grants: readonly Grant[],
): Promise<readonly TakenLane<Segment>[]> {
  if (grants.length === 0) return [];
  const { passed } = database.tables;
  const lanes = grants.map(({ lane }) => lane).join(", ");
  let positions = await readPositions(database, pipeline);
  if (grants.some(({ lane }) => !positions.has(lane))) {
    await begin(database, pipeline, await kind.start(), grants);
    positions = await readPositions(database, pipeline);
  }
  const [incarnation, notes] = await transaction(
    database.pool,
    writeSettings(database, "reading the checkpoints"),
    async (session) => [
      (await session.rows(`select ${SERVER_INCARNATION}`))[0]?.[0] ?? "",
      await session.rows(
        `select lane, event_id from ${passed} where pipeline = ${quoteLiteral(pipeline)} and lane in (${lanes})`,
      ),
    ],
  );
  const taken: TakenLane<Segment>[] = [];
  for (const grant of grants) {
    const checkpoint = await kind.decode(positions.get(grant.lane) ?? "");
    const own = notes.filter((note) => Number(note[0]) === grant.lane).map((note) => note[1] ?? "");
    taken.push({ grant, checkpoint, incarnation, passed: own });
  }
  return taken;
}

/** Reads the checkpoints of all lanes that have begun, for counting. */
export async function readCheckpoints<Segment>(
  database: Database,
  pipeline: string,
  kind: LogKind<Segment>,
): Promise<readonly LaneCheckpoint<Segment>[]> {
  const found: LaneCheckpoint<Segment>[] = [];
  for (const [lane, text] of await readPositions(database, pipeline)) {
    found.push({ lane, checkpoint: await kind.decode(text) });
  }
  return found;
}

async function readPositions(database: Database, pipeline: string): Promise<ReadonlyMap<number, string>> {
  const text = `select lane, position::text from ${database.tables.lanes}
    where pipeline = ${quoteLiteral(pipeline)} and position is not null`;
  const context = database.errorContext("reading the checkpoints");
  const rows = await glance(database.pool, context, database.timeouts.readMs, text);
  return new Map(rows.map((row) => [Number(row[0]), row[1] ?? ""]));
}

async function begin(database: Database, pipeline: string, start: string, grants: readonly Grant[]): Promise<void> {
  await transaction(database.pool, writeSettings(database, "beginning a log"), async (session) => {
    for (const grant of grants) {
      const rows = await session.rows(
        `update ${database.tables.lanes} set position = coalesce(position, ${quoteLiteral(start)}::jsonb)
         where ${grantCondition(pipeline, grant)} returning 1`,
      );
      if (rows.length === 0) throw fenced(pipeline, grant);
    }
  });
}

/** Writes the checkpoints of these lanes. A lane that is no longer ours is skipped: its new owner writes its own. */
export async function writeCheckpoints<Segment>(
  database: Database,
  pipeline: string,
  kind: LogKind<Segment>,
  lanes: readonly LogLane<Segment>[],
  nowMs: number,
): Promise<void> {
  for (const lane of lanes) {
    await lane.inTurn(async () => {
      const { low } = lane.window;
      const position = kind.encode(low, lane.ahead());
      lane.writtenAtMs = nowMs;
      if (position === lane.written) return;
      const rows = await statement(
        database.pool,
        { ...writeSettings(database, "writing a checkpoint"), synchronousCommit: "local" },
        `update ${database.tables.lanes} set position = ${quoteLiteral(position)}::jsonb
         where ${grantCondition(pipeline, lane.grant)} and ${lane.condition} returning 1`,
      );
      if (rows.length === 0) return;
      lane.wrote(position, nowMs, []);
      kind.settled?.([low]);
    });
  }
}

/** Call this before any other write of the transaction: the row lock keeps the lane from changing its owner. */
export async function moveCheckpoint<Segment>(
  session: Session,
  database: Database,
  pipeline: string,
  { condition, grant }: LogLane<Segment>,
  position: string,
): Promise<void> {
  const rows = await session.rows(
    `update ${database.tables.lanes} set position = ${quoteLiteral(position)}::jsonb
     where ${grantCondition(pipeline, grant)} and ${condition} returning 1`,
  );
  if (rows.length === 0) throw fenced(pipeline, grant);
}

/**
 * Throws unless the log is on the server where the relay's schema was created. Positions mean nothing on another
 * server, whose transactions have other numbers.
 */
export async function requireSameServer(database: Database, pipeline: string): Promise<void> {
  await transaction(database.pool, writeSettings(database, "reading the identity"), async (session) => {
    const [row] = await session.rows(`select system_id from ${database.tables.identity}`);
    const runsOn = await systemId(session);
    if (row?.[0] == null || runsOn === null || row[0] === runsOn) return;
    const what = `The relay's schema of ${pipeline} was created on another server, so its log positions are not valid here. Run the relay against the original server, or reset the subscriber.`;
    throw new RelayError("IDENTITY_CHANGED", what);
  });
}
