import { randomUUID } from "node:crypto";

/** Begins with the time, so that the index on the id grows at its end. */
export function uuidV7(): string {
  const time = Date.now().toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}
