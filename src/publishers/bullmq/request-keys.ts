import type { RequestGroup } from "../../ports/request-queue.ts";
import { checkpointName } from "../../requests/request-names.ts";

/** The keys of a group besides its markers. */
interface GroupKeys {
  readonly position: string;
  /** The token of the current owner; it expires unless renewed. */
  readonly lease: string;
  /** Rises with every lease and never expires: if it is missing, Redis has lost its data. */
  readonly leaseCount: string;
  /** The dead events by id. */
  readonly dead: string;
}

/** The keys of a group. */
export function groupKeys(group: RequestGroup): GroupKeys {
  const position = checkpointName(group);
  return { position, lease: `${position}:lease`, leaseCount: `${position}:turns`, dead: `${position}:dead` };
}
