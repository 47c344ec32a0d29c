import type {
  AppendReq,
  BatchAppendReq,
  DeleteReq,
} from "@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/streams_pb.js";
import type { AppendResult, Expected, KurrentDbLog } from "./kurrentdb-log.ts";
import type { Proposed } from "./kurrentdb-record.ts";
import {
  Any,
  type Call,
  Empty,
  failure,
  frameOf,
  type Reply,
  sharedPb,
  statusPb,
  streamName,
  streamsPb,
} from "./kurrentdb-wire.ts";

type Message = AppendReq.ProposedMessage | BatchAppendReq.ProposedMessage;
type Revisions = { hasNoStream(): boolean; hasAny(): boolean; hasStreamExists(): boolean };

interface Open {
  readonly options: BatchAppendReq.Options;
  readonly messages: Message[];
}

/** The writing side of the protocol. */
export function appendHandlers(log: KurrentDbLog) {
  return {
    append: (call: Call<AppendReq>, reply: Reply) => {
      let options: AppendReq.Options | undefined;
      const messages: Message[] = [];
      call.on("data", (request) => {
        options ??= request.getOptions();
        const message = request.getProposedMessage();
        if (message !== undefined) messages.push(message);
      });
      call.on("end", () => {
        const name = streamName(options?.getStreamIdentifier());
        const expected = expectedOf(options, () => options?.getRevision());
        const result = log.append(name, expected, messages.map(proposedOf));
        if (result.kind === "deleted") reply(streamDeleted(name));
        else reply(null, appendResponse(result, expected));
      });
    },
    batchAppend: (call: Call<BatchAppendReq>) => {
      const open = new Map<string, Open>();
      call.on("data", (request) => {
        const id = request.getCorrelationId()?.getString() ?? "";
        const options = request.getOptions();
        if (options !== undefined) open.set(id, { options, messages: [] });
        const batch = open.get(id);
        if (batch === undefined) return;
        batch.messages.push(...request.getProposedMessagesList());
        if (!request.getIsFinal()) return;
        open.delete(id);
        call.write(batchResponse(log, id, batch));
      });
      call.on("end", () => call.end());
    },
    delete: (call: Call<DeleteReq>, reply: Reply) => endStream(call, reply, (...to) => log.delete(...to)),
    tombstone: (call: Call<DeleteReq>, reply: Reply) => endStream(call, reply, (...to) => log.tombstone(...to)),
  };
}

function endStream(
  { request }: Call<DeleteReq>,
  reply: Reply,
  end: (name: string, expected: Expected) => AppendResult,
): void {
  const options = request.getOptions();
  const name = streamName(options?.getStreamIdentifier());
  const result = end(
    name,
    expectedOf(options, () => options?.getRevision()),
  );
  if (result.kind === "appended") {
    const position = new streamsPb.DeleteResp.Position();
    position.setCommitPosition(String(result.position));
    position.setPreparePosition(String(result.position));
    const response = new streamsPb.DeleteResp();
    response.setPosition(position);
    reply(null, frameOf(response));
  } else if (result.kind === "deleted") {
    reply(streamDeleted(name));
  } else {
    const trailers = { exception: "wrong-expected-version", "stream-name": name, "expected-version": "-1" };
    reply(failure("FAILED_PRECONDITION", "Append failed due to WrongExpectedVersion.", trailers));
  }
}

function appendResponse(result: Exclude<AppendResult, { kind: "deleted" }>, expected: Expected): Buffer {
  const response = new streamsPb.AppendResp();
  if (result.kind === "appended") {
    const position = new streamsPb.AppendResp.Position();
    position.setCommitPosition(String(result.position));
    position.setPreparePosition(String(result.position));
    const success = new streamsPb.AppendResp.Success();
    success.setCurrentRevision(String(result.revision));
    success.setPosition(position);
    response.setSuccess(success);
    return frameOf(response);
  }
  const wrong = new streamsPb.AppendResp.WrongExpectedVersion();
  if (result.current === null) wrong.setCurrentNoStream(new sharedPb.Empty());
  else wrong.setCurrentRevision(String(result.current));
  if (typeof expected === "bigint") wrong.setExpectedRevision(String(expected));
  else if (expected === "no stream") wrong.setExpectedNoStream(new sharedPb.Empty());
  else wrong.setExpectedStreamExists(new sharedPb.Empty());
  response.setWrongExpectedVersion(wrong);
  return frameOf(response);
}

function batchResponse(log: KurrentDbLog, id: string, { options, messages }: Open): Buffer {
  const name = streamName(options.getStreamIdentifier());
  const expected = expectedOf(options, () => options.getStreamPosition());
  const result = log.append(name, expected, messages.map(proposedOf));
  const response = new streamsPb.BatchAppendResp();
  const correlation = new sharedPb.UUID();
  correlation.setString(id);
  response.setCorrelationId(correlation);
  response.setStreamIdentifier(options.getStreamIdentifier());
  if (result.kind === "appended") {
    const position = new sharedPb.AllStreamPosition();
    position.setCommitPosition(String(result.position));
    position.setPreparePosition(String(result.position));
    const success = new streamsPb.BatchAppendResp.Success();
    success.setCurrentRevision(String(result.revision));
    success.setPosition(position);
    response.setSuccess(success);
    return frameOf(response);
  }
  const status = new statusPb.Status();
  const details = new Any();
  const [message, type] =
    result.kind === "deleted"
      ? [new sharedPb.StreamDeleted(), "StreamDeleted"]
      : [wrongVersion(result.current, expected), "WrongExpectedVersion"];
  details.pack(message.serializeBinary(), `event_store.client.${type}`);
  status.setMessage(type);
  status.setDetails(details);
  response.setError(status);
  return frameOf(response);
}

function wrongVersion(current: number | null, expected: Expected) {
  const wrong = new sharedPb.WrongExpectedVersion();
  if (current === null) wrong.setCurrentNoStream(new Empty());
  else wrong.setCurrentStreamRevision(String(current));
  if (typeof expected === "bigint") wrong.setExpectedStreamPosition(String(expected));
  else if (expected === "no stream") wrong.setExpectedNoStream(new Empty());
  else wrong.setExpectedStreamExists(new Empty());
  return wrong;
}

function streamDeleted(name: string) {
  const trailers = { exception: "stream-deleted", "stream-name": name };
  return failure("FAILED_PRECONDITION", `Event stream '${name}' is deleted.`, trailers);
}

function expectedOf(options: Revisions | undefined, revision: () => string | undefined): Expected {
  if (options === undefined || options.hasAny()) return "any";
  if (options.hasNoStream()) return "no stream";
  if (options.hasStreamExists()) return "stream exists";
  return BigInt(revision() ?? "0");
}

function proposedOf(message: Message): Proposed {
  const metadata = message.getMetadataMap();
  return {
    id: message.getId()?.getString() ?? "",
    type: metadata.get("type") ?? "",
    contentType: metadata.get("content-type") ?? "",
    data: Buffer.from(message.getData_asU8()),
    metadata: Buffer.from(message.getCustomMetadata_asU8()),
  };
}
