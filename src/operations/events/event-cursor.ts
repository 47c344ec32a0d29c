import type { PageEnd } from "./event-page.sql.ts";
import { wrongCursor } from "./event-read.ts";

/** Where each listing's last page ended; null: at its end. */
export type Progress = Readonly<Record<string, PageEnd | null>>;

/** How many rows of each listing were searched one by one, over all pages. */
type Looked = Readonly<Record<string, number>>;

/** Where a list continues. */
export interface ListPlace {
  readonly progress: Progress;
  readonly looked: Looked;
}

/** The start of a list. */
export const FIRST_PAGE: ListPlace = { progress: {}, looked: {} };

/** Encodes where a list continues. */
export function writeCursor({ looked, progress }: ListPlace): string {
  return Buffer.from(JSON.stringify([progress, looked])).toString("base64url");
}

/** Decodes a cursor; throws CONFIG_INVALID for anything else. */
export function readCursor(cursor: string): ListPlace {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    const [progress, looked] = Array.isArray(value) && value.length === 2 ? (value as unknown[]) : [];
    if (isProgress(progress) && isLooked(looked)) return { progress, looked };
  } catch {
    // Falls through to the one error for all invalid cursors.
  }
  throw wrongCursor();
}

function isLooked(value: unknown): value is Looked {
  return isRecord(value) && Object.values(value).every((count) => Number.isSafeInteger(count) && Number(count) >= 0);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isProgress(value: unknown): value is Progress {
  if (!isRecord(value)) return false;
  return Object.values(value).every((end) => end === null || isPageEnd(end));
}

function isPageEnd(end: unknown): end is PageEnd {
  if (!Array.isArray(end) || end.length !== 2) return false;
  const [place, tie] = end as unknown[];
  return (place === null || typeof place === "string") && typeof tie === "string";
}
