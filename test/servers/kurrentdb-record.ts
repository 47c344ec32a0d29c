import { randomUUID } from "node:crypto";
import { frameOf, sharedPb, streamIdentifier, streamsPb } from "./kurrentdb-wire.ts";

/** An event as a writer gives it. */
export interface Proposed {
  readonly id: string;
  readonly type: string;
  readonly contentType: string;
  readonly data: Buffer;
  readonly metadata: Buffer;
}

const POSITION_STEP = 100n;

/** An event in the log; what it looks like on the wire is made when it is first asked for, and kept. */
export class Recorded implements Proposed {
  readonly id: string;
  readonly type: string;
  readonly contentType: string;
  readonly data: Buffer;
  readonly metadata: Buffer;
  readonly stream: string;
  readonly revision: number;
  readonly createdMs: number;
  /** Its place in the log. */
  index = -1;
  #frame: Buffer | undefined;

  constructor(fields: Proposed & { readonly stream: string; readonly revision: number; readonly createdMs: number }) {
    this.id = fields.id || randomUUID();
    this.type = fields.type;
    this.contentType = fields.contentType;
    this.data = fields.data;
    this.metadata = fields.metadata;
    this.stream = fields.stream;
    this.revision = fields.revision;
    this.createdMs = fields.createdMs;
  }

  get position(): bigint {
    return positionOf(this.index);
  }

  /** As it stands in the file. */
  line(): string {
    const { id, type, contentType, stream, revision, createdMs } = this;
    const [data, metadata] = [this.data.toString("base64"), this.metadata.toString("base64")];
    return `${JSON.stringify({ id, type, contentType, stream, revision, createdMs, data, metadata })}\n`;
  }

  /** The answer of a read or a subscription that shows it. */
  frame(): Buffer {
    this.#frame ??= frameOf(readResponse(this.message(), undefined, this.position));
    return this.#frame;
  }

  message() {
    const event = new streamsPb.ReadResp.ReadEvent.RecordedEvent();
    const id = new sharedPb.UUID();
    id.setString(this.id);
    event.setId(id);
    event.setStreamIdentifier(streamIdentifier(this.stream));
    event.setStreamRevision(String(this.revision));
    event.setCommitPosition(String(this.position));
    event.setPreparePosition(String(this.position));
    const metadata = event.getMetadataMap();
    metadata.set("type", this.type);
    metadata.set("content-type", this.contentType);
    metadata.set("created", String(BigInt(this.createdMs) * 10_000n));
    event.setData(this.data);
    event.setCustomMetadata(this.metadata);
    return event;
  }
}

/** From a writer, or from a line of the file. */
export function recordOf(
  fields: {
    readonly [Key in keyof Proposed]: Key extends "data" | "metadata" ? Buffer | string : Proposed[Key];
  } & { readonly stream: string; readonly revision: number; readonly createdMs: number },
): Recorded {
  return new Recorded({ ...fields, data: bytesOf(fields.data), metadata: bytesOf(fields.metadata) });
}

const bytesOf = (value: Buffer | string) => (typeof value === "string" ? Buffer.from(value, "base64") : value);

/** Positions have gaps, as real ones do, which are places in files. */
export const positionOf = (index: number) => BigInt(index + 1) * POSITION_STEP;

/** How many events of the log are at or before the position. */
export const countUpTo = (position: bigint) => Number(position / POSITION_STEP);

type EventMessage = ReturnType<Recorded["message"]>;

/** With resolved links: the link, and what it points at unless that is gone. */
export function linkFrame(
  category: string,
  revision: number,
  target: Recorded,
  shown: "target" | "gone" | "link",
): Buffer {
  const link = new Recorded({
    id: target.id.replace(/^.{8}/, "00000000"),
    type: "$>",
    contentType: "application/octet-stream",
    data: Buffer.from(`${target.revision}@${target.stream}`),
    metadata: Buffer.alloc(0),
    stream: `$ce-${category}`,
    revision,
    createdMs: target.createdMs,
  });
  link.index = target.index;
  if (shown === "link") return link.frame();
  return frameOf(readResponse(shown === "gone" ? undefined : target.message(), link.message(), target.position));
}

function readResponse(event: EventMessage | undefined, link: EventMessage | undefined, position: bigint) {
  const read = new streamsPb.ReadResp.ReadEvent();
  if (event !== undefined) read.setEvent(event);
  if (link !== undefined) read.setLink(link);
  read.setCommitPosition(String(position));
  const response = new streamsPb.ReadResp();
  response.setEvent(read);
  return response;
}
