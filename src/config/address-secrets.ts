/** The one place that knows which parts of an address are secret, for whatever is shown or logged. */

const HIDDEN = "***";
const ADDRESS = /^([a-z][a-z0-9+.-]*):\/\/(?:([^/?#]*)@)?([^/?#@]*)([^?#]*)(\?[^#]*)?(#.*)?$/i;
/** Names of parameters and headers whose values are secret, however short they are. */
const SECRET_NAME = /pass|pwd|secret|token|key|credential|auth|cookie|signature|sig$/i;
/** Where a user without a password is a name. Elsewhere it may be a token, as for NATS and many web services. */
const USER_IS_NAME = /^(?:postgres|postgresql|amqps?|kurrentdb|esdb)$/i;
const HOSTS_ONLY = /^[\w.,:[\]-]+$/;
const PATH_SHOWN = /^\/?$/;
/** A colon behind a host leads to a port; with anything else it is a login whose @ is hidden behind a slash. */
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

/** Null for what is no address. */
function partsOf(address: string): Parts | null {
  const [, scheme = "", login, host = "", path = "", query = "", rest] = ADDRESS.exec(address.trim()) ?? [];
  const isWeb = /^https?$/i.test(scheme);
  const plainHost = host.replaceAll(/\[[^\]]*\]|\{[^}]*\}/g, "");
  // An @ behind the host of anything but a web address ends a password that has a slash in it.
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
 * An address for people: without its password, without secret parameters, and of a web address without path and values,
 * where webhooks have their tokens. What is no address is not shown at all, unless it can only be a list of hosts.
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

/** What of an address no log line may show, as written and as meant. */
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

/** A token, not a word: words would be blotted out of every line. Templates stand for what events say. */
function isTokenLike(text: string): boolean {
  return !/[{}]/.test(text) && (text.length >= 16 || (text.length >= 8 && /[\dA-Z]/.test(text)));
}

const HARMLESS_HEADER = /^(?:content-type|user-agent|accept(?:-.+)?)$/i;
const PLAIN_LENGTH_MIN = 8;

/** What of a secret setting's value no log line may show: the whole, and each of its parts by itself. */
export function secretsInValue(value: unknown): string[] {
  if (typeof value === "string") return [value, ...credentialsIn(value)];
  if (Array.isArray(value)) return value.flatMap(secretsInValue);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, part]: [string, unknown]) => {
    if (HARMLESS_HEADER.test(name) || typeof part !== "string") return [];
    // A short value of an innocent name, such as `true`, would be blotted out wherever it stands.
    return SECRET_NAME.test(name) || part.length >= PLAIN_LENGTH_MIN ? secretsInValue(part) : [];
  });
}

/** `Bearer TOKEN`, `Basic BASE64` and `user:password` hold a secret that may turn up alone. */
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
