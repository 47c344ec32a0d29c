import { readFileSync } from "node:fs";
import { join } from "node:path";

/** An event as it stands in the store's file. */
export interface StoredEvent {
  readonly id: string;
  readonly type: string;
  readonly stream: string;
  readonly revision: number;
  readonly createdMs: number;
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** All events of the store's requests, past its client and its server. */
export function storedEvents(folder: string): StoredEvent[] {
  const lines = readFileSync(join(folder, "events"), "utf8").split("\n").slice(0, -1);
  return lines.flatMap((line) => {
    const { data, metadata, ...rest } = JSON.parse(line) as StoredEvent & { data: string; metadata: string };
    return /^\$\$|\.checkpoint$/.test(rest.stream)
      ? []
      : [{ ...rest, data: objectIn(data), metadata: objectIn(metadata) }];
  });
}

function objectIn(base64: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(base64, "base64").toString("utf8") || "{}");
}
