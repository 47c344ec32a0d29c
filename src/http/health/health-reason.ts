/** The part of the service that a health reason is about. */
export type Part = "database" | "source" | "destination" | "relay";

/**
 * Removes values of rows that PostgreSQL quotes, ids that ROW_UNMARKED lists, and texts that receivers answered.
 * Everyone can read the health, so it must show no value of an event.
 */
export function withoutValues(reason: string): string {
  return reason
    .replaceAll(/(invalid input (?:syntax|value) for [^:"]{1,100}: )"[^"]*"/g, '$1"..."')
    .replaceAll(/(?<=\bvalue )"[^"]*"(?= is out of range)/g, '"..."')
    .replaceAll(/Key \([^)]*\)=\([^)]*\)/g, "Key (...)")
    .replaceAll(/Failing row contains \(.*?\)/gs, "Failing row contains (...)")
    .replaceAll(/; it said: .*$/gs, "")
    .replaceAll(/ Ids: .*?(?= \[ROW_UNMARKED\])/gs, "");
}

/** Our own errors name the fix in their text, after the code. */
const OUR_CODE = / \[[A-Z_]+\] ?/;

/** The reason without the fix that one of our own errors appends. */
export function reasonPart(reason: string): string {
  return reason.split(OUR_CODE)[0] ?? reason;
}

const FIXES: Readonly<Record<Part, string | null>> = {
  database: "Check that the database runs and can be reached from here. No events are lost: they wait in it.",
  source: "Run `outbox-relay doctor`: it checks the table and prints the fix.",
  destination:
    "Check that it runs and can be reached from here. Events wait, and the relay sends them as soon as it answers.",
  relay: null,
};

/** What to do about a reason; null where nothing general helps. */
export function partFix(part: Part, reason: string): string | null {
  return reason.split(OUR_CODE)[1] || FIXES[part];
}
