import type { PageEnd } from "./event-page.sql.ts";
import { wrongCursor } from "./event-read.ts";

/** How far each listing has been shown; null: to its end. */
export type Progress = Readonly<Record<string, PageEnd | null>>;

export function writeCursor(progress: Progress): string {
  return Buffer.from(JSON.stringify(progress)).toString("base64url");
}

export function readCursor(cursor: string): Progress {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (isProgress(value)) return value;
  } catch {
    // Falls through to the one message for all that is no cursor.
  }
  throw wrongCursor();
}

function isProgress(value: unknown): value is Progress {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((end) => end === null || isPageEnd(end));
}

function isPageEnd(end: unknown): end is PageEnd {
  if (!Array.isArray(end) || end.length !== 2) return false;
  const [place, tie] = end as unknown[];
  return (place === null || typeof place === "string") && typeof tie === "string";
}
