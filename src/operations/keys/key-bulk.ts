import { isRelayError, reasonOf } from "../../core/errors.ts";
import type { Author } from "../audit/author.ts";
import type { OperationTarget } from "../events/event-source.ts";
import { actOnKey, type KeyAction } from "./key-actions.ts";

interface NamedKey {
  readonly pipeline: string;
  readonly key: string;
}

/** The result of an action on several keys. */
export interface BulkReport {
  /** Ids of the changed events. */
  readonly changed: readonly string[];
  /** Keys that could not be changed, each with the reason; the others were changed. */
  readonly failed: readonly (NamedKey & { readonly reason: string })[];
}

/** More than an operator selects by hand. */
export const BULK_KEYS_MAX = 500;

/** Acts on several keys independently: a failure of one does not affect the others. */
export async function actOnKeys(
  target: OperationTarget,
  action: KeyAction,
  keys: readonly NamedKey[],
  author: Author,
): Promise<BulkReport> {
  const changed: string[] = [];
  const failed: (NamedKey & { reason: string })[] = [];
  for (const { key, pipeline } of keys) {
    try {
      const ids = await actOnKey(target, action, { pipeline, key, author });
      if (ids === null) failed.push({ pipeline, key, reason: `No pipeline ${pipeline}` });
      else if (ids.length === 0) failed.push({ pipeline, key, reason: "This key has no failed events any more" });
      else changed.push(...ids);
    } catch (error) {
      if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE" || error.code === "CONFIG_INVALID") throw error;
      failed.push({ pipeline, key, reason: reasonOf(error) });
    }
  }
  return { changed, failed };
}
