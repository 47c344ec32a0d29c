import type { Grant } from "../ports/queue-store.ts";
import { quoteLiteral } from "./identifiers.ts";
import { timelineCondition } from "./timeline.ts";

/** True for the lane's row while the grant is valid. Put this fragment into every statement that writes. */
export function grantCondition(pipeline: string, { lane, owner, epoch, timeline }: Grant): string {
  return `pipeline = ${quoteLiteral(pipeline)} and lane = ${lane} and owner = ${quoteLiteral(owner)} and epoch = ${epoch}
    and ${timelineCondition(timeline)}`;
}
