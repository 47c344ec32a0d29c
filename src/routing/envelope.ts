import type { EventHeaders, OutboxEvent } from "../core/event.ts";

/** CloudEvents 1.0: the attributes as headers beside the payload, or as members of a JSON document around it. */
export interface Envelope {
  readonly format: "cloudevents-binary" | "cloudevents-structured";
  /** The attribute `source`: the producer of the event, as a URI reference. */
  readonly source: string | ((event: OutboxEvent) => string);
  /** The content type of the payload. A header `content-type` of the event wins. */
  readonly contentType?: string;
}

interface Enveloped {
  readonly headers: EventHeaders;
  readonly payload: Buffer;
}

const DEFAULT_CONTENT_TYPE = "application/json";
const STRUCTURED_CONTENT_TYPE = "application/cloudevents+json; charset=utf-8";
const CONTENT_TYPE = "content-type";
/** Matches JSON media types: `application/json`, `application/vnd.api+json; charset=utf-8`. */
const JSON_TYPE = /^(?:[^;]*\/json|[^;]*\+json)\s*(?:;|$)/i;

/** Wraps a message in the envelope. Throws when the payload does not fit into it. */
export function enveloped(
  envelope: Envelope,
  event: OutboxEvent,
  { headers, payload }: Enveloped,
  attributePrefix: string,
): Enveloped {
  const contentType = headers[CONTENT_TYPE] ?? envelope.contentType ?? DEFAULT_CONTENT_TYPE;
  const attributes = attributesOf(envelope, event);
  if (envelope.format === "cloudevents-binary") {
    const prefixed = Object.entries(attributes).map(([name, value]) => [attributePrefix + name, value]);
    return { payload, headers: { ...headers, [CONTENT_TYPE]: contentType, ...Object.fromEntries(prefixed) } };
  }
  return {
    payload: documentOf({ ...attributes, datacontenttype: contentType }, payload, JSON_TYPE.test(contentType)),
    headers: { ...headers, [CONTENT_TYPE]: STRUCTURED_CONTENT_TYPE },
  };
}

/**
 * `partitionkey` and `correlationid` are extensions. Names of attributes may have lower-case letters and digits only.
 */
function attributesOf({ source }: Envelope, event: OutboxEvent): Record<string, string> {
  return {
    specversion: "1.0",
    id: event.id,
    source: typeof source === "string" ? source : source(event),
    type: event.type,
    ...(event.createdAt === null ? {} : { time: event.createdAt }),
    ...(event.key === null ? {} : { partitionkey: event.key }),
    ...(event.correlationId === null ? {} : { correlationid: event.correlationId }),
  };
}

/** Copies the payload's bytes into the document unchanged. Parsing and rewriting them could change numbers. */
function documentOf(attributes: Readonly<Record<string, string>>, payload: Buffer, isJson: boolean): Buffer {
  const open = JSON.stringify(attributes).slice(0, -1);
  if (!isJson) return Buffer.from(`${open},"data_base64":"${payload.toString("base64")}"}`);
  if (payload.length === 0) return Buffer.from(`${open}}`);
  requireJson(payload);
  return Buffer.concat([Buffer.from(`${open},"data":`), payload, Buffer.from("}")]);
}

/** Checks that the payload is JSON: a payload that is not would make the whole envelope unreadable. */
function requireJson(payload: Buffer): void {
  try {
    JSON.parse(payload.toString("utf8"));
  } catch (cause) {
    throw new Error("the payload is not JSON, although its content type says so", { cause });
  }
}
