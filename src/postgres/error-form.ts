/** The columns of a failure by which errors are grouped, as SQL. */
interface FailureColumns {
  readonly reason: string;
  /** A response often contains the key, which differs in every event. */
  readonly key: string;
}

/** Errors are grouped by their beginning; what follows is mostly noise of the server. */
const READ_CHARACTERS = 1_000;
/** The length of the normalized form: long values must not decide how much of the text is compared. */
const COMPARED_CHARACTERS = 300;
/** A shorter key may stand in any text by chance. */
const KEY_CHARACTERS_MIN = 4;

/**
 * Fields of a JSON response whose text says what happened. The values of all other fields differ from event to event.
 */
const DISTINGUISHING_FIELDS =
  "message|msg|error|error_description|errormessage|detail|details|title|reason|description|code|error_code|errorcode|type";
/** The characters of a word: everything but spaces, quotes and the punctuation of sentences, addresses and JSON. */
const OF_A_WORD = "[^\\s\"'`,;:=/\\\\(){}<>|&?!#@*+\\[\\]]";
const MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec";

/**
 * What differs from event to event although the error is the same, and its replacement. The order matters. A generated
 * column of the relay's schema uses this expression: a change here needs a migration that creates the column again.
 */
const VARIABLE_PARTS: readonly (readonly [pattern: string, place: string])[] = [
  // The distinguishing texts lose their quotes, so that only the values inside them are replaced below.
  [`(?i)"(${DISTINGUISHING_FIELDS})"\\s*:\\s*"((?:[^"\\\\]|\\\\.)*)"`, "\\1: \\2"],
  [`\\\\(["'])`, "\\1"],
  [`"[^"]*("|$)|\`[^\`]*\``, "<value>"],
  // ASCII only: a database may have another encoding. An apostrophe inside a word opens no quote.
  ["(?<![A-Za-z0-9])'[^']*'(?![A-Za-z0-9])", "<value>"],
  ["[^\\s\"'<>@,;:()]+@[^\\s\"'<>@,;:()]+", "<value>"],
  [`([0-9]{1,2}[ -])?\\m(${MONTHS})\\M[ -][0-9]{1,4}|\\m(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\\M(?=,? +[0-9A-Z])`, "<n>"],
  // Numbers, dates, addresses and ids of every kind: each word with a digit in it.
  [`${OF_A_WORD}*[0-9]${OF_A_WORD}*`, "<n>"],
  [":\\s*(true|false|null)\\M", ":<n>"],
  // Lists of values of any length, and the other fields of a JSON response.
  ["<n>([\\s,:;=+/.()-]*<n>)+", "<n>"],
  ["<(n|value)>([\\s,:;={}+/()\\[\\]]*<(n|value)>)+", "<value>"],
  ["\\s+", " "],
];

/** The error without the parts that are specific to one event. */
export function errorFormSql({ key, reason }: FailureColumns): string {
  const read = `left(${reason}, ${READ_CHARACTERS})`;
  const withoutKey = `case when length(${key}) >= ${KEY_CHARACTERS_MIN} then replace(${read}, ${key}, '<value>') else ${read} end`;
  const form = VARIABLE_PARTS.reduce(
    (text, [pattern, place]) => `regexp_replace(${text}, ${literal(pattern)}, ${literal(place)}, 'g')`,
    withoutKey,
  );
  return `left(regexp_replace(${form}, ' answered <(n|value)>', ${statusSql(reason)}), ${COMPARED_CHARACTERS})${codeSql(reason)}`;
}

/** Keeps the status of an HTTP response: 400 and 422 are different errors. */
function statusSql(reason: string): string {
  return `coalesce(' answered ' || substring(${reason} from ' answered ([1-9][0-9]{2})(?![0-9])'), ' answered <n>')`;
}

/** Keeps a code with a short number, such as E1001. A code without a number is part of the form anyway. */
function codeSql(reason: string): string {
  const pattern = '(?i)"(?:code|error_code|errorcode)"\\s*:\\s*"([a-z_]{1,40}[0-9]{1,4})"';
  return ` || coalesce(' (' || substring(left(${reason}, ${READ_CHARACTERS}) from ${literal(pattern)}) || ')', '')`;
}

/** Twelve digits that are equal for equal errors. */
export function fingerprintSql(columns: FailureColumns): string {
  return `left(md5(${errorFormSql(columns)}), 12)`;
}

/** Valid whatever the setting `standard_conforming_strings` is. */
function literal(text: string): string {
  return `E'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}
