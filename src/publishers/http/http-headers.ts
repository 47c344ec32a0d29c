import type { Message } from "../../core/event.ts";

const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
/** Visible ASCII with spaces only inside: some servers truncate, reject or misread anything else. */
const PLAIN_VALUE = /^(?:[!-~](?:[ -~]*[!-~])?)?$/;

const CLOUD_EVENTS_PREFIX = "ce-";
const DISPLACED_PREFIX = "event-header-";
const ENCODED_NAMES = "percent-encoded-headers";

/**
 * Headers that frame the request, belong to the connection or are the relay's own: an event's header of that name gets
 * a prefix.
 */
const RESERVED: ReadonlySet<string> = new Set([
  ...["host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "upgrade", "te"],
  ...["trailer", "expect", "proxy-authorization", "proxy-authenticate", "http2-settings", "user-agent"],
  ...["idempotency-key", "partition-key", "event-type", "event-topic", ENCODED_NAMES],
  ...["webhook-id", "webhook-timestamp", "webhook-signature"],
]);

/** Whether a header of this name can be configured. */
export function isHeaderName(name: string): boolean {
  return TOKEN.test(name) && !isFraming(name.toLowerCase());
}

/** Whether HTTP can carry this value unencoded. */
export function isHeaderValue(value: string): boolean {
  return PLAIN_VALUE.test(value);
}

function isFraming(name: string): boolean {
  return RESERVED.has(name) && name !== "user-agent";
}

/** The headers of one request: alternating names and values, as the client expects them. */
interface RequestHeaders {
  readonly flat: readonly string[];
  /** The event's id as it is sent. */
  readonly id: string;
}

/** The message's headers, or why HTTP cannot carry them. */
export function requestHeaders(message: Message, configured: ReadonlyMap<string, string>): RequestHeaders | string {
  try {
    return new HeaderList(configured).of(message);
  } catch (error) {
    // `encodeURIComponent` throws for a lone surrogate, which cannot be encoded.
    if (error instanceof URIError) return "a header, the key or the id contains half a character (a lone surrogate)";
    if (error instanceof UncarriableHeader) return error.message;
    throw error;
  }
}

class UncarriableHeader extends Error {}

class HeaderList {
  readonly #flat: string[] = [];
  readonly #names = new Set<string>();
  readonly #encoded: string[] = [];
  readonly #configured: ReadonlyMap<string, string>;

  constructor(configured: ReadonlyMap<string, string>) {
    this.#configured = configured;
  }

  of({ event, headers, key, topic }: Message): RequestHeaders {
    const id = this.#add("idempotency-key", event.id);
    this.#add("event-type", event.type);
    if (topic !== event.type) this.#add("event-topic", topic);
    if (key !== null) this.#add("partition-key", key);
    for (const name in headers) this.#add(this.#wireName(name), headers[name]!);
    for (const [name, value] of this.#configured) if (!this.#names.has(name)) this.#flat.push(name, value);
    if (!this.#has("content-type")) this.#flat.push("content-type", "application/json");
    if (!this.#has("user-agent")) this.#flat.push("user-agent", "outbox-relay");
    if (this.#encoded.length > 0) this.#flat.push(ENCODED_NAMES, this.#encoded.join(", "));
    return { flat: this.#flat, id };
  }

  #has(name: string): boolean {
    return this.#names.has(name) || this.#configured.has(name);
  }

  /**
   * The header's name on the wire: in lower case, because HTTP ignores case. Illegal characters and the percent sign
   * are percent-encoded.
   */
  #wireName(written: string): string {
    if (written === "") throw new UncarriableHeader("a header without a name cannot be sent");
    const name = written.toLowerCase();
    const encoded =
      TOKEN.test(name) && !name.includes("%") ? name : percentEncoded(name, /[^!#$&'*+.^_`|~0-9a-z-]/gu).toLowerCase();
    const isOurs = RESERVED.has(encoded) || (this.#configured.has(encoded) && encoded !== "content-type");
    return isOurs ? `${DISPLACED_PREFIX}${encoded}` : encoded;
  }

  #add(name: string, value: string): string {
    if (this.#names.has(name)) {
      throw new UncarriableHeader(`two headers have the name ${name}: HTTP ignores upper and lower case`);
    }
    this.#names.add(name);
    const sent = this.#wireValue(name, value);
    this.#flat.push(name, sent);
    return sent;
  }

  #wireValue(name: string, value: string): string {
    // The HTTP binding of CloudEvents percent-encodes every attribute, so its readers decode them all.
    if (name.startsWith(CLOUD_EVENTS_PREFIX)) return percentEncoded(value, /[^!#$&-~]/gu);
    if (PLAIN_VALUE.test(value)) return value;
    this.#encoded.push(name);
    return percentEncoded(value, /[^!#$&-~]/gu);
  }
}

/** Percent-encodes the UTF-8 bytes of all characters that match. */
function percentEncoded(text: string, characters: RegExp): string {
  return text.replace(characters, (character) => {
    const encoded = encodeURIComponent(character);
    return encoded === character ? `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}` : encoded;
  });
}
