import { createHash } from "node:crypto";
import { dedupeId } from "../../core/dedupe-id.ts";
import type { Message } from "../../core/event.ts";
import type { RedisSettings } from "./redis-config.ts";
import type { Call } from "./redis-plan.ts";

/**
 * Adds events to one stream in order, each only if its marker does not exist, and sets the marker. Stops at the first
 * failure, so that nothing overtakes it. Redis runs a script atomically: no client sees a marker without its entry.
 *
 * KEYS: the stream, then one marker per event if ids are deduplicated.
 * ARGV: window in ms or 0, length of the stream or 0, whether a duplicate must write too; then for each event the
 * number of strings that follow, the fields and values of its entry.
 *
 * With replicas, a duplicate renews its marker: WAIT covers only the writes of this connection.
 */
const SCRIPT = `
local stream, window, maxlen, rewrite = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local at, done = 4, 0
while at <= #ARGV do
  local last = at + tonumber(ARGV[at])
  local marker = KEYS[done + 2]
  local isNew = window == "0" or redis.pcall("SET", marker, 1, "NX", "PX", window)
  if type(isNew) == "table" and isNew.err then return { done, isNew.err } end
  if isNew then
    local added
    if maxlen == "0" then added = redis.pcall("XADD", stream, "*", unpack(ARGV, at + 1, last))
    else added = redis.pcall("XADD", stream, "MAXLEN", "~", maxlen, "*", unpack(ARGV, at + 1, last)) end
    if type(added) == "table" and added.err then
      if window ~= "0" then redis.call("DEL", marker) end
      return { done, added.err }
    end
  elseif rewrite == "1" then
    redis.call("PEXPIRE", marker, window)
  end
  done, at = done + 1, last + 1
end
return done`;

const SHA = createHash("sha1").update(SCRIPT).digest("hex");

export type Argument = string | number | Buffer;

/** The arguments of EVALSHA. */
export function scriptArguments(call: Call, settings: RedisSettings): Argument[] {
  const { dedupeMs, maxlen, prefix, replicas } = settings;
  const stem = markerStem(prefix, call.stream);
  const hasMarkers = dedupeMs > 0;
  const args: Argument[] = [SHA, hasMarkers ? call.items.length + 1 : 1, call.stream];
  if (hasMarkers) for (const { message } of call.items) args.push(stem + dedupeId(message));
  args.push(dedupeMs, maxlen, hasMarkers && replicas > 0 ? 1 : 0);
  for (const { message } of call.items) pushEntry(args, message);
  return args;
}

/** The same arguments for EVAL, for a server that does not have the script. */
export function withSource([, ...args]: readonly Argument[]): Argument[] {
  return [SCRIPT, ...args];
}

/** More fields than this do not fit on the script's stack. */
export const HEADERS_MAX = 1_000;

function pushEntry(args: Argument[], { event, headers, key, payload }: Message): void {
  const countAt = args.length;
  args.push(0, "id", event.id, "payload", payload);
  if (key !== null) args.push("partition_key", key);
  for (const name in headers) args.push(`h:${name}`, headers[name]!);
  args[countAt] = args.length - countAt - 1;
}

/**
 * The prefix of a stream's marker keys. In a cluster a script may only use keys of one hash slot, and the text in a
 * key's first braces determines its slot. So the stream's name is put in braces, unless it has its own. The length
 * before it distinguishes any two streams, whatever their names and ids contain.
 */
export function markerStem(prefix: string, stream: string): string {
  const isWrapped = !stream.includes("}");
  return `${prefix}${stream.length}:${isWrapped ? `{${stream}}` : stream}:`;
}
