import pg from "pg";

/**
 * The tests' own clients read times as the test servers print them: the driver knows no other form than ISO. It does
 * not concern the relay, which asks the server for a form of its own.
 */
function parseTime(text: string): Date | null {
  const german = /^(\d\d)\.(\d\d)\.(\d{4}) (\d\d:\d\d:\d\d(?:\.\d+)?)(?: (CES?T))?$/.exec(text);
  if (german === null) return null;
  const [, day, month, year, time, zone] = german;
  const offset = zone === undefined ? "" : zone === "CEST" ? "+02:00" : "+01:00";
  return new Date(`${year}-${month}-${day}T${time}${offset}`);
}

for (const oid of [pg.types.builtins.TIMESTAMP, pg.types.builtins.TIMESTAMPTZ]) {
  const parseIso = pg.types.getTypeParser(oid) as (text: string) => unknown;
  pg.types.setTypeParser(oid, (text: string) => parseTime(text) ?? parseIso(text));
}
