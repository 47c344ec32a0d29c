import type { Redis } from "ioredis";

interface StreamEvent {
  readonly id: string;
  readonly key: string | null;
  readonly payload: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** All events of a stream in the order in which a consumer sees them. */
export async function readEvents(redis: Redis, stream: string): Promise<StreamEvent[]> {
  const entries = (await redis.callBuffer("XRANGE", stream, "-", "+")) as [Buffer, Buffer[]][];
  return entries.map(([, texts]) => {
    const fields = new Map<string, Buffer>();
    for (let at = 0; at < texts.length; at += 2) fields.set(String(texts[at]), texts[at + 1]!);
    const headers = [...fields].filter(([name]) => name.startsWith("h:"));
    return {
      id: String(fields.get("id")),
      key: fields.get("partition_key")?.toString() ?? null,
      payload: fields.get("payload")!,
      headers: Object.fromEntries(headers.map(([name, value]) => [name.slice(2), String(value)])),
    };
  });
}
