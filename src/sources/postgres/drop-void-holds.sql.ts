import type { RelayTables } from "../../postgres/relay-tables.ts";
import { unmarkedSql } from "../../postgres/unmarked.ts";
import type { TableShape } from "./table-shape.ts";

/**
 * Deletes holds whose row is gone, or was delivered or claimed by another relay. A dead hold stays while its row is
 * pending or dead; an unmarked hold stays until its row can be marked. The dead letter always stays: it may be the only
 * copy. Takes `$1` pipeline and `$2` lane.
 */
export const dropVoidHoldsSql = ({ holds }: RelayTables, shape: TableShape, owner: string): string => {
  const { claims, givenUp, id, idType, main, quotedName, unsettled } = shape;
  const stays = [claims === undefined ? unsettled : main];
  if (givenUp !== null) stays.push(`(h.state = 'dead' and ${givenUp})`);
  if (claims !== undefined) {
    stays.push(`(${claims.isOurs(owner)})`, `(${claims.claimed} and ${unmarkedSql("h.")} is not null)`);
  }
  return `delete from ${holds} h where h.pipeline = $1 and h.lane = $2 and not exists (
  select from ${quotedName} t
  where ${id} = h.event_id::${idType} and (${stays.join(" or ")}))`;
};
