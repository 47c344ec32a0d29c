import { quoteLiteral } from "../../../postgres/identifiers.ts";

/** Whether the role may take a SHARE lock on the table, and who it is. Older servers do not know MAINTAIN. */
export function mayLockSql(quotedTable: string): string {
  const table = quoteLiteral(quotedTable);
  return `select has_table_privilege(${table}, 'update, delete, truncate')
  or case when current_setting('server_version_num')::int >= 170000
    then has_table_privilege(${table}, 'maintain') else false end, current_user`;
}
