/** A table as the log describes it: before its first row, and again after every change. */
export interface Relation {
  readonly id: number;
  readonly schema: string;
  readonly table: string;
  readonly columns: readonly { readonly name: string; readonly typeOid: number }[];
}

/** A message of `pg_logical_emit_message`. `content` lies in a buffer that is reused: copy what you keep. */
export interface LogicalMessage {
  readonly isTransactional: boolean;
  readonly lsn: bigint;
  readonly prefix: string;
  readonly content: Buffer;
}

/** Receives the changes in the order of their commits: only committed transactions appear, each in one piece. */
export interface ChangeSink {
  /** `lsn` is the start of the commit record. */
  begin(lsn: bigint, committedAtMs: number | null): void;
  /** `endLsn` is the end of the commit record. */
  commit(endLsn: bigint): void;
  relation(relation: Relation): void;
  /** The row's columns begin at `at`, in a buffer that is reused: copy what you keep. */
  insert(relationId: number, buffer: Buffer, at: number): void;
  message(message: LogicalMessage): void;
}

/** From the Unix epoch to the server's, the year 2000. */
const EPOCH_MS = 946_684_800_000;

const BEGIN = 66; // B
const COMMIT = 67; // C
const INSERT = 73; // I
const MESSAGE = 77; // M
const RELATION = 82; // R

/**
 * Reads one message of the output plugin pgoutput, protocol version 1. An outbox needs no updates, deletes, truncates,
 * types or origins, but an existing publication may send them.
 */
export function readChange(buffer: Buffer, at: number, sink: ChangeSink): void {
  const kind = buffer[at];
  // The relation, then `N` for the new row.
  if (kind === INSERT) sink.insert(buffer.readUInt32BE(at + 1), buffer, at + 6);
  else if (kind === BEGIN) sink.begin(buffer.readBigUInt64BE(at + 1), serverTimeMs(buffer, at + 9));
  // Flags, the commit record's beginning, its end.
  else if (kind === COMMIT) sink.commit(buffer.readBigUInt64BE(at + 10));
  else if (kind === RELATION) sink.relation(readRelation(buffer, at + 1));
  else if (kind === MESSAGE) sink.message(readMessage(buffer, at + 1));
}

function serverTimeMs(buffer: Buffer, at: number): number {
  return Number(buffer.readBigInt64BE(at) / 1000n) + EPOCH_MS;
}

function readRelation(buffer: Buffer, start: number): Relation {
  const text = (from: number) => buffer.toString("utf8", from, buffer.indexOf(0, from));
  const behind = (from: number) => buffer.indexOf(0, from) + 1;
  const schemaAt = start + 4;
  const tableAt = behind(schemaAt);
  // Skip one byte for the replica identity, which matters only for updates.
  const countAt = behind(tableAt) + 1;
  const columns: { name: string; typeOid: number }[] = [];
  let at = countAt + 2;
  for (let left = buffer.readUInt16BE(countAt); left > 0; left -= 1) {
    const typeAt = behind(at + 1);
    columns.push({ name: text(at + 1), typeOid: buffer.readUInt32BE(typeAt) });
    at = typeAt + 8;
  }
  // The server leaves out the schema of its own catalog.
  return {
    id: buffer.readUInt32BE(start),
    schema: text(schemaAt) || "pg_catalog",
    table: text(tableAt),
    columns,
  };
}

function readMessage(buffer: Buffer, start: number): LogicalMessage {
  const prefixAt = start + 9;
  const prefixEnd = buffer.indexOf(0, prefixAt);
  const length = buffer.readUInt32BE(prefixEnd + 1);
  return {
    isTransactional: (buffer.readUInt8(start) & 1) === 1,
    lsn: buffer.readBigUInt64BE(start + 1),
    prefix: buffer.toString("utf8", prefixAt, prefixEnd),
    content: buffer.subarray(prefixEnd + 5, prefixEnd + 5 + length),
  };
}
