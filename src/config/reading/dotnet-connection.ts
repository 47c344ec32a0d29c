/** Keywords of a .NET connection string for the parts of an address, in lower case and without blanks. */
const HOST = ["host", "server", "datasource", "address"];
const USER = ["username", "userid", "user", "uid"];
const PASSWORD = ["password", "pwd"];
const DATABASE = ["database", "db", "initialcatalog"];

/** `Prefer` and `Allow` are missing: they guarantee nothing. */
const SSL_MODES = new Map([
  ["disable", "disable"],
  ["require", "require"],
  ["verifyca", "verify-ca"],
  ["verifyfull", "verify-full"],
]);

/**
 * Converts a connection string such as `Host=db;Port=5432;Database=shop;Username=me;Password=secret` into an address.
 * Other texts stay unchanged: they are already an address, or are rejected later. Keywords that only concern the .NET
 * driver are ignored.
 */
export function postgresAddress(written: string): string {
  if (/^[a-z]+:\/\//i.test(written.trim())) return written;
  const words = new Map(
    [...written.matchAll(/\s*([^=;]+?)\s*=\s*("(?:[^"]|"")*"|'(?:[^']|'')*'|[^;]*)\s*(?:;|$)/g)].map(
      ([, word, value]) => [word!.toLowerCase().replaceAll(/\s/g, ""), unquoted(value!)],
    ),
  );
  const find = (names: readonly string[]) => names.map((name) => words.get(name)).find((value) => value !== undefined);
  const host = find(HOST);
  if (host === undefined) return written;
  const login = [find(USER), find(PASSWORD)].map((part) => encodeURIComponent(part ?? ""));
  const port = words.get("port");
  const mode = SSL_MODES.get((words.get("sslmode") ?? "").toLowerCase());
  const at = login[0] === "" && login[1] === "" ? "" : `${login[0]}${login[1] === "" ? "" : `:${login[1]}`}@`;
  const server = `${host.includes(":") ? `[${host}]` : host}${port === undefined ? "" : `:${port}`}`;
  const database = encodeURIComponent(find(DATABASE) ?? "");
  return `postgres://${at}${server}/${database}${mode === undefined ? "" : `?sslmode=${mode}`}`;
}

function unquoted(value: string): string {
  const trimmed = value.trim();
  const quote = trimmed[0];
  if (quote !== '"' && quote !== "'") return trimmed;
  return trimmed.slice(1, -1).replaceAll(quote + quote, quote);
}
