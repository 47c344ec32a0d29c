import type { Headers, OutboxEvent } from "../core/event.ts";

/** CloudEvents 1.0: the attributes as headers beside the payload, or as members of a JSON document around it. */
export interface Envelope {
  readonly format: "cloudevents-binary" | "cloudevents-structured";
  /** The attribute `source`: who speaks, as a URI reference. */
  readonly source: string | ((event: OutboxEvent) => string);
  /** Of the payload; a header `content-type` of the event wins. */
  readonly contentType?: string;
}

interface Enveloped {
  readonly headers: Headers;
  readonly payload: Buffer;
}

const DEFAULT_CONTENT_TYPE = "application/json";
const STRUCTURED_CONTENT_TYPE = "application/cloudevents+json; charset=utf-8";
const CONTENT_TYPE = "content-type";
/** Of a JSON media type: `application/json`, `application/vnd.api+json; charset=utf-8`. */
const JSON_TYPE = /^(?:[^;]*\/json|[^;]*\+json)\s*(?:;|$)/i;

/** The same message in the envelope. Throws when the payload cannot be put into it. */
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

/** `partitionkey` and `correlationid` are extensions; names of attributes are lower-case letters and digits only. */
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

/** The payload's bytes stand in the document as they are: nothing is parsed and written anew, so no number changes. */
function documentOf(attributes: Readonly<Record<string, string>>, payload: Buffer, isJson: boolean): Buffer {
  const open = JSON.stringify(attributes).slice(0, -1);
  if (!isJson) return Buffer.from(`${open},"data_base64":"${payload.toString("base64")}"}`);
  if (payload.length === 0) return Buffer.from(`${open}}`);
  requireJson(payload);
  return Buffer.concat([Buffer.from(`${open},"data":`), payload, Buffer.from("}")]);
}

/** Only to know that it is a document: one that is none would break the whole envelope for its reader. */
function requireJson(payload: Buffer): void {
  try {
    JSON.parse(payload.toString("utf8"));
  } catch (cause) {
    throw new Error("the payload is no JSON, and its content type says that it is", { cause });
  }
}
