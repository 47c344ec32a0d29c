import type { RequestGroup } from "../../ports/request-queue.ts";
import { checkpointName } from "../../requests/request-names.ts";

/** What a group keeps in Redis besides its markers. */
interface GroupKeys {
  readonly position: string;
  /** Whose turn it is; gone when nobody renews it. */
  readonly lease: string;
  /** Rises with every turn and never goes: without it Redis has forgotten everything. */
  readonly turns: string;
  /** By event id. */
  readonly dead: string;
}

export function groupKeys(group: RequestGroup): GroupKeys {
  const position = checkpointName(group);
  return { position, lease: `${position}:lease`, turns: `${position}:turns`, dead: `${position}:dead` };
}
