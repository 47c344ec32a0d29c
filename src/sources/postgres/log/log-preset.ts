/** How a log is read: the relay's own table or an existing one by snapshots, or the write-ahead log. */
export type LogPreset = "managed" | "tail" | "wal";

/** Stands for the schema of a log that is not a table: messages in the write-ahead log, named by their prefix. */
export const MESSAGE_SCHEMA = "message";
