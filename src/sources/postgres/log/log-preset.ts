/** How a log is read: a table of the relay's own make or an existing one by snapshots, or the write-ahead log. */
export type LogPreset = "managed" | "tail" | "wal";

/** What stands for the schema of a log that is no table: messages in the write-ahead log, by their prefix. */
export const MESSAGE_SCHEMA = "message";
