/** The one module that knows which parts of an address are secret, for all output and logs. */

const HIDDEN = "***";
const ADDRESS = /^([a-z][a-z0-9+.-]*):\/\/(?:([^/?#]*)@)?([^/?#@]*)([^?#]*)(\?[^#]*)?(#.*)?$/i;
/** Parameters and headers with such names are secret, however short their values. */
const SECRET_NAME = /pass|pwd|secret|token|key|credential|auth|cookie|signature|sig$/i;
/** In these schemes a user without a password is a plain name. In others it can be a token, as for NATS. */
const USER_IS_NAME = /^(?:postgres|postgresql|amqps?|kurrentdb|esdb)$/i;
const HOSTS_ONLY = /^[\w.,:[\]-]+$/;
const PATH_SHOWN = /^\/?$/;
/** A colon after a host starts a port. Anything else is a login whose @ is hidden after a slash. */
const PORTLESS_COLON = /:(?!\d{1,5}(?:,|$))/;

interface Parts {
  readonly scheme: string;
  readonly user: string;
  /** Null without a colon in the login. */
  readonly password: string | null;
  readonly host: string;
  readonly path: string;
  readonly parameters: readonly (readonly [name: string, value: string | null])[];
  readonly isWeb: boolean;
}

/** Null if it is not an address. */
function partsOf(address: string): Parts | null {
  const [, scheme = "", login, host = "", path = "", query = "", rest] = ADDRESS.exec(address.trim()) ?? [];
  const isWeb = /^https?$/i.test(scheme);
  const plainHost = host.replaceAll(/\[[^\]]*\]|\{[^}]*\}/g, "");
  // Except in web addresses, an @ after the host ends a password that contains a slash.
  const isLoginCut = PORTLESS_COLON.test(plainHost) || (!isWeb && path.includes("@"));
  if (scheme === "" || rest !== undefined || isLoginCut) return null;
  const at = login?.indexOf(":") ?? -1;
  const parameters = query
    .slice(1)
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      const sign = pair.indexOf("=");
      return sign < 0 ? ([pair, null] as const) : ([pair.slice(0, sign), pair.slice(sign + 1)] as const);
    });
  const user = at < 0 ? (login ?? "") : login!.slice(0, at);
  return { scheme, user, password: at < 0 ? null : login!.slice(at + 1), host, path, parameters, isWeb };
}

/**
 * An address that is safe to show: without its password and secret parameters. Of a web address it hides path and
 * values too, because webhooks have tokens there. What is not an address is hidden completely, unless it is a list of
 * hosts.
 */
export function shownAddress(address: string): string {
  const parts = partsOf(address);
  if (parts !== null) {
    const { host, isWeb, parameters, path, scheme } = parts;
    const question = parameters.map(([name, value]) => {
      const isHidden = isWeb || SECRET_NAME.test(name);
      return value === null ? (isWeb ? HIDDEN : name) : `${name}=${isHidden ? HIDDEN : value}`;
    });
    const way = isWeb && !PATH_SHOWN.test(path) ? `/${HIDDEN}` : path;
    return `${scheme}://${shownLogin(parts)}${host}${way}${question.length === 0 ? "" : `?${question.join("&")}`}`;
  }
  if (/^[a-z]+:$/i.test(address) || HOSTS_ONLY.test(address)) return address;
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(address)?.[0] ?? "";
  return `${scheme}${HIDDEN}`;
}

function shownLogin({ password, scheme, user }: Parts): string {
  if (user === "" && password === null) return "";
  if (password === null) return `${USER_IS_NAME.test(scheme) ? user : HIDDEN}@`;
  return `${password === "" ? HIDDEN : user}:${HIDDEN}@`;
}

/** The parts of an address that no log line may show, encoded and decoded. */
export function secretsInAddress(address: string): string[] {
  const parts = partsOf(address);
  if (parts === null) return /[@=]/.test(address) ? [address] : [];
  const { isWeb, parameters, password, path, scheme, user } = parts;
  const found: string[] = [];
  if (password !== null && password !== "") found.push(password);
  else if (!USER_IS_NAME.test(scheme)) found.push(user);
  for (const [name, value] of parameters) {
    if (value !== null && (SECRET_NAME.test(name) || (isWeb && isTokenLike(value)))) found.push(value);
  }
  if (isWeb) found.push(...path.split("/").filter(isTokenLike));
  return [...new Set(found.flatMap((secret) => [secret, decoded(secret)]))].filter((secret) => secret !== "");
}

/** A token, not a word: redacting words would remove them from every line. Templates are not secrets. */
function isTokenLike(text: string): boolean {
  return !/[{}]/.test(text) && (text.length >= 16 || (text.length >= 8 && /[\dA-Z]/.test(text)));
}

const HARMLESS_HEADER = /^(?:content-type|user-agent|accept(?:-.+)?)$/i;
const PLAIN_LENGTH_MIN = 8;

/** The texts of a secret setting that no log line may show: the whole value, and each of its parts. */
export function secretsInValue(value: unknown): string[] {
  if (typeof value === "string") return [value, ...credentialsIn(value)];
  if (Array.isArray(value)) return value.flatMap(secretsInValue);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, part]: [string, unknown]) => {
    if (HARMLESS_HEADER.test(name) || typeof part !== "string") return [];
    // A short value of a harmless header, such as `true`, would be redacted everywhere.
    return SECRET_NAME.test(name) || part.length >= PLAIN_LENGTH_MIN ? secretsInValue(part) : [];
  });
}

/** `Bearer TOKEN`, `Basic BASE64` and `user:password` contain a secret that can appear by itself. */
function credentialsIn(value: string): string[] {
  const [, scheme = "", credential] = /^(Bearer|Basic|Token|Digest|ApiKey) +(\S+)$/i.exec(value) ?? [];
  if (credential !== undefined) {
    const plain = /^basic$/i.test(scheme) ? Buffer.from(credential, "base64").toString() : "";
    return [credential, ...passwordIn(plain)];
  }
  return passwordIn(value);
}

function passwordIn(login: string): string[] {
  const [, password] = /^[^:\s]{1,100}:([^:\s]{4,})$/.exec(login) ?? [];
  if (password === undefined) return [];
  return [password, Buffer.from(login).toString("base64")];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
