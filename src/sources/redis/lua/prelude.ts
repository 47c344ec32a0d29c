import { HEADERS_BYTES_MAX, TEXT_BYTES_MAX, tooLarge } from "../../../core/event.ts";

/** The heads that one script returns stay below this many bytes, plus one batch. */
const SCAN_BYTES_MAX = 1024 * 1024;

/**
 * Every script of a relay begins with this. All keys of an outbox begin with the same name in braces, which keeps them
 * on one node of a cluster; that name is the only key passed. `of_lane` puts the lane before the pipeline, because a
 * pipeline's name can contain any character.
 *
 * `void` is deleted before the first write: when its memory is full, Redis refuses a script whose first write could
 * need more memory, but not one that has already written. A full outbox must still be drained.
 */
export const PRELUDE = `
local base = KEYS[1]
local pipeline = ARGV[1]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local pending, heads, payloads, delivered = base .. ':pending', base .. ':heads', base .. ':payloads', base .. ':delivered'
local instances, dead_letters = base .. ':instances', base .. ':dead:' .. pipeline
local function of_lane(what, lane) return base .. ':' .. what .. ':' .. lane .. ':' .. pipeline end
local function begin_write() redis.call('DEL', base .. ':void') end
local function optional(text) return text ~= '' and string.sub(text, 2) end
`;

/** The holds of a lane, and how many of them park each key: `parked` counts all, `stopped` only the dead. */
export const HOLDS = `
local function count_key(what, lane, key, by)
  if redis.call('HINCRBY', of_lane(what, lane), key, by) <= 0 then redis.call('HDEL', of_lane(what, lane), key) end
end
local function count_hold(lane, hold, by)
  if not hold or not hold.parks or not hold.key then return end
  count_key('parked', lane, hold.key, by)
  if hold.state == 'dead' then count_key('stopped', lane, hold.key, by) end
end
local function read_hold(lane, id)
  local packed = redis.call('HGET', of_lane('holds', lane), id)
  return packed and cmsgpack.unpack(packed)
end
local function put_hold(lane, id, before, hold)
  count_hold(lane, before, -1)
  count_hold(lane, hold, 1)
  redis.call('HSET', of_lane('holds', lane), id, cmsgpack.pack(hold))
end
local function drop_hold(lane, id)
  local hold = read_hold(lane, id)
  if not hold then return end
  count_hold(lane, hold, -1)
  redis.call('HDEL', of_lane('holds', lane), id)
  redis.call('HDEL', of_lane('errors', lane), id)
end
local function list_holds(lane)
  local list = {}
  local flat = redis.call('HGETALL', of_lane('holds', lane))
  for i = 1, #flat, 2 do
    local hold = cmsgpack.unpack(flat[i + 1])
    local due = hold.due and hold.due - now
    list[#list + 1] = {flat[i], hold.key, hold.state, hold.parks and 1 or 0, hold.attempts, hold.crashes, due}
  end
  return list
end
`;

/**
 * The fence: `is_ours` when ARGV[3] and ARGV[4] are the owner and epoch of lane ARGV[2]. Checked in the same atomic
 * step as the writes it protects.
 */
export const FENCE = `
local lane = ARGV[2]
local lane_row = redis.call('HMGET', of_lane('lane', lane), 'owner', 'epoch', 'settled', 'crashes')
local is_ours = lane_row[1] == ARGV[3] and lane_row[2] == ARGV[4]
`;

/** The event as `headOf` parses it: id, sequence, lane, then what was packed at its append. */
export const HEADS = `
local function head_row(id, sequence, head, lane)
  local excess = {}
  local function bounded(text, what, bytes_max)
    if not text or #text <= bytes_max then return text end
    excess[#excess + 1] = string.gsub(what, '#', tostring(#text))
    return false
  end
  local key = bounded(head.key, '${tooLarge("key", "#", TEXT_BYTES_MAX)}', ${TEXT_BYTES_MAX})
  local correlation = bounded(head.correlation, '${tooLarge("correlation id", "#", TEXT_BYTES_MAX)}', ${TEXT_BYTES_MAX})
  local headers = bounded(head.headers, '${tooLarge("headers", "#", HEADERS_BYTES_MAX)}', ${HEADERS_BYTES_MAX}) or ''
  local kind = bounded(head.type, '${tooLarge("type", "#", TEXT_BYTES_MAX)}', ${TEXT_BYTES_MAX})
    or string.sub(head.type or '', 1, ${TEXT_BYTES_MAX})
  return {id, sequence, lane, kind, key, head.size, head.created, headers, correlation, table.concat(excess, '; ')}
end
-- Visits members of a list of (member, score) pairs, 20 at a time, and stops after SCAN_BYTES_MAX.
local function each_head(found, visit)
  local seen, bytes = 0, 0
  while 2 * seen < #found and bytes < ${SCAN_BYTES_MAX} do
    local first, ids = seen, {}
    for i = first + 1, math.min(first + 20, #found / 2) do ids[#ids + 1] = found[2 * i - 1] end
    for i, packed in ipairs(redis.call('HMGET', heads, unpack(ids))) do
      seen = seen + 1
      if packed then
        bytes = bytes + #packed
        visit(ids[i], found[2 * (first + i)], cmsgpack.unpack(packed))
      end
    end
  end
  return seen
end
`;
