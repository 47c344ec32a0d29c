import { isRelayError, reasonOf } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import type { HttpTarget } from "../../publishers/http/http-config.ts";
import { compileTemplate, type Template } from "../../routing/template.ts";

const ADDRESS = /^(https?):\/\/(?:([^@/?#]*)@)?([^/?#]+)([^#]*)$/i;
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/i;
const PLACEHOLDER = /(\{[^{}]*\})/;
/** What an event may insert into a host: letters, digits, single dots and hyphens. None of these ends the host. */
const HOST_VALUE = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i;
const DOT_SEGMENT = /(?:^|[\\/])\.\.?(?:[\\/]|$)/;
/** Fields of the source, which a destination does not know. */
const SOURCE_FIELD = /^\{(?:schema|table)[|}]/;

/** A parsed address of the HTTP destination. */
export interface HttpAddress {
  /** Fixed, or computed for each event. */
  readonly url: string | HttpTarget;
  /** `host:port`; null where events name the host. */
  readonly hostAndPort: string | null;
  readonly isEncrypted: boolean;
  /** User and password of the address, as an Authorization header. */
  readonly authorization: string | null;
}

/** Parses an address; a text says what is wrong with it. */
export function httpAddress(written: string): HttpAddress | string {
  const [, scheme = "", login, host = "", rest = ""] = ADDRESS.exec(written) ?? [];
  if (scheme === "") return "is not an address of the form https://host/path";
  const isEncrypted = scheme.toLowerCase() === "https";
  const [name, port] = splitPort(host);
  const whole = `${scheme.toLowerCase()}://${sample(name)}${port}`;
  if (!HOST.test(`${sample(name)}${port}`) || URL.parse(whole) === null)
    return "has a host that is not of the form host:port";
  const authorization = login === undefined ? null : basicAuthorization(login);
  const common = { isEncrypted, authorization };
  if (!PLACEHOLDER.test(host + rest)) {
    const url = URL.parse(`${whole}${rest}`);
    if (url === null || /[{}]/.test(rest)) return "has a brace that is not part of a {name}";
    return { ...common, url: url.href, hostAndPort: hostAndPortOf(url, isEncrypted) };
  }
  try {
    const hostParts = partsOf(name);
    const restParts = partsOf(normalRest(rest));
    const isHostFixed = hostParts.every((part) => typeof part === "string");
    const origin = isHostFixed ? new URL(whole).origin : null;
    const of = (message: Message) => {
      const begin = origin ?? `${scheme.toLowerCase()}://${filled(hostParts, message, hostValue)}${port}`;
      return checked(begin, filled(restParts, message, pathValue));
    };
    const byType = [...hostParts, ...restParts].every(
      (part) => typeof part === "string" || /^\{type[|}]/.test(part.name),
    );
    const url: HttpTarget = { of, origin, scope: byType ? "topic" : "event" };
    return { ...common, url, hostAndPort: origin === null ? null : hostAndPortOf(new URL(origin), isEncrypted) };
  } catch (error) {
    // The message of a template error quotes only the text between the braces, which holds no secret.
    if (isRelayError(error) || error instanceof UnfitTemplate) return `is not a valid template: ${reasonOf(error)}`;
    throw error;
  }
}

class UnfitTemplate extends Error {}

interface Placeholder {
  readonly name: string;
  readonly value: Template;
}

type Part = string | Placeholder;

function partsOf(text: string): readonly Part[] {
  return text
    .split(PLACEHOLDER)
    .filter((part) => part !== "")
    .map((part) => {
      if (!PLACEHOLDER.test(part)) return part;
      if (SOURCE_FIELD.test(part)) throw new UnfitTemplate(`an address cannot use ${part}; the route's topic can`);
      return { name: part, value: compileTemplate(part) };
    });
}

/**
 * Normalizes path and query as the URL parser would. After that, a change by the parser comes from an event's value.
 */
function normalRest(rest: string): string {
  const marked = rest.split(PLACEHOLDER);
  const literal = marked.filter((_, at) => at % 2 === 0).join("");
  if (/[{}]/.test(literal)) throw new UnfitTemplate("it has a brace that is not part of a {name}");
  const plain = marked.map((part, at) => (at % 2 === 1 ? `~${at}~` : part)).join("");
  const url = new URL(`http://host${plain}`);
  return `${url.pathname}${url.search}`.replace(/~(\d+)~/g, (_, at: string) => marked[Number(at)]!);
}

function filled(parts: readonly Part[], message: Message, encode: (value: string, name: string) => string): string {
  const event = { ...message.event, key: message.key, headers: message.headers };
  return parts
    .map((part) => {
      if (typeof part === "string") return part;
      const value = part.value(event, { schema: "", table: "" });
      if (value === null || value === "")
        throw new Error(`the address needs ${part.name}, but the event has no such value`);
      return encode(value, part.name);
    })
    .join("");
}

function pathValue(value: string, name: string): string {
  if (!value.isWellFormed()) throw new Error(`the value of ${name} contains half a character (a lone surrogate)`);
  // A receiver that decodes before it splits would resolve `..`.
  if (DOT_SEGMENT.test(value)) throw new Error(`the value of ${name} would leave the address's path`);
  return encodeURIComponent(value).replaceAll("'", "%27");
}

function hostValue(value: string, name: string): string {
  if (value.length > 253 || value.includes("..") || !HOST_VALUE.test(value)) {
    throw new Error(`the value of ${name} cannot be part of a host name`);
  }
  return value;
}

/** If the parser changes the path, it contains `..` or similar and would lead elsewhere. */
function checked(begin: string, rest: string): string {
  const url = URL.parse(`${begin}${rest}`);
  if (url === null) throw new Error("the event's values do not form a valid URL");
  if (`${url.pathname}${url.search}` !== rest) throw new Error("the event's values would leave the address's path");
  return url.href;
}

function splitPort(host: string): readonly [name: string, port: string] {
  const [, name = host, port = ""] = /^(.*?)(:\d{1,5})?$/.exec(host) ?? [];
  return [name, port];
}

/** The host with sample values, to check its form. */
function sample(host: string): string {
  return host.replace(/\{[^{}]*\}/g, "x");
}

function hostAndPortOf({ hostname, port }: URL, isEncrypted: boolean): string {
  return `${hostname}:${port === "" ? (isEncrypted ? 443 : 80) : port}`;
}

function basicAuthorization(login: string): string {
  const at = login.indexOf(":");
  const parts = at < 0 ? [login, ""] : [login.slice(0, at), login.slice(at + 1)];
  return `Basic ${Buffer.from(parts.map(decoded).join(":")).toString("base64")}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
