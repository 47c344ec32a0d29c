/** Errors are compared by their beginning; what comes later is mostly the server's chatter. */
const COMPARED_CHARACTERS = 500;

/**
 * What differs from event to event though the error is the same, and what stands in its place. In this order. A column
 * of the relay's schema is made by it: whoever changes it needs a migration.
 */
const VARIABLE_PARTS: readonly (readonly [pattern: string, place: string])[] = [
  ["[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}", "<uuid>"],
  [`"[^"]*"|'[^']*'|\`[^\`]*\``, "<value>"],
  ["\\m(?:0x)?(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{8,}\\M", "<hex>"],
  ["[0-9]+(?:[.,:][0-9]+)*", "<n>"],
  ["\\s+", " "],
];

/** The error without what is special to one event. */
export function errorFormSql(reason: string): string {
  return VARIABLE_PARTS.reduce(
    (text, [pattern, place]) => `regexp_replace(${text}, ${literal(pattern)}, ${literal(place)}, 'g')`,
    `left(${reason}, ${COMPARED_CHARACTERS})`,
  );
}

/** Twelve digits that are equal for equal errors. */
export function fingerprintSql(reason: string): string {
  return `left(md5(${errorFormSql(reason)}), 12)`;
}

/** Whatever `standard_conforming_strings` says. */
function literal(text: string): string {
  return `E'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}
