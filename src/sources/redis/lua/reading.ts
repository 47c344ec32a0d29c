import { script } from "../redis-script.ts";
import { LIVING } from "./membership.ts";
import { HEADS, HOLDS, PRELUDE } from "./prelude.ts";

/** Identifies the server process. Another process may have lost the last writes and assign their sequences again. */
const RUN_ID = `
local function run_id() return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') end
`;

/** ARGV: pipeline, lanes. Returns the server process, the last assigned sequence, and these lanes. */
export const beginScript = script(`${PRELUDE}${RUN_ID}
local rows = {}
for i = 2, #ARGV do
  local owner, epoch, settled = unpack(redis.call('HMGET', of_lane('lane', ARGV[i]), 'owner', 'epoch', 'settled'))
  if epoch then rows[#rows + 1] = {ARGV[i], owner, epoch, settled} end
end
return {run_id(), redis.call('GET', base .. ':sequence') or '0', rows}
`);

/**
 * Returns the next events of some lanes, without their payloads. ARGV: pipeline, the server process or '', the number
 * of lanes, the sequence after which to begin, the last one, how many events to scan, lanes. Held events and those of
 * parked keys are left out; the parked keys that were met are returned. Returns where it stopped, whether that is the
 * end, the events, the keys.
 */
export const scanScript = script(`${PRELUDE}${RUN_ID}${HEADS}
if ARGV[2] ~= '' and ARGV[2] ~= run_id() then return {'moved'} end
local lane_count = tonumber(ARGV[3])
local wanted = {}
for i = 7, #ARGV do
  local lane = tonumber(ARGV[i])
  wanted[lane] = {holds = redis.call('HLEN', of_lane('holds', lane)) > 0 and of_lane('holds', lane),
    parked = redis.call('HLEN', of_lane('parked', lane)) > 0 and of_lane('parked', lane)}
end
local found = redis.call('ZRANGEBYSCORE', pending, '(' .. ARGV[4], ARGV[5], 'WITHSCORES', 'LIMIT', 0, ARGV[6])
local rows, parked = {}, {}
local seen = each_head(found, function(id, sequence, head)
  local lane = head.hash % lane_count
  local of = wanted[lane]
  if not of then return end
  if of.parked and head.key and redis.call('HEXISTS', of.parked, head.key) == 1 then
    parked[#parked + 1] = head.key
  elseif not (of.holds and redis.call('HEXISTS', of.holds, id) == 1) then
    rows[#rows + 1] = head_row(id, sequence, head, lane)
  end
end)
local is_end = 2 * seen == #found and seen < tonumber(ARGV[6])
return {'page', found[2 * seen] or ARGV[5], is_end and 1 or 0, rows, parked}
`);

/**
 * Scans pending events for a count. ARGV: pipeline, the number of lanes, the sequence after which to begin, how many
 * events to scan. Returns where it stopped, how many were scanned, whether that is the end, the events, those parked
 * behind a dead letter, how many are pending in all, the dead letters, the time.
 */
export const countScript = script(`${PRELUDE}${HEADS}
local lane_count = tonumber(ARGV[2])
local found = redis.call('ZRANGEBYSCORE', pending, '(' .. ARGV[3], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[4])
local stops, rows, stopped = {}, {}, {}
for lane = 0, lane_count - 1 do stops[lane] = redis.call('HLEN', of_lane('stopped', lane)) > 0 end
local seen = each_head(found, function(id, sequence, head)
  local lane = head.hash % lane_count
  local is_stopped = head.key and stops[lane] and redis.call('HEXISTS', of_lane('stopped', lane), head.key) == 1
  local list = is_stopped and stopped or rows
  list[#list + 1] = head_row(id, sequence, head, lane)
end)
local is_end = 2 * seen == #found and seen < tonumber(ARGV[4])
return {found[2 * seen] or ARGV[3], seen, is_end and 1 or 0, rows, stopped, redis.call('ZCARD', pending), redis.call('HLEN', dead_letters), now}
`);

/**
 * Reads held events by id. ARGV: pipeline, lane, ids. Returns the heads of due events with their failures, and the ids
 * of events that are no longer pending. A dead letter that waits for an operator is in neither list. Nor is an event
 * beyond the size limit of one call; it stays due.
 */
export const claimHeadsScript = script(`${PRELUDE}${HOLDS}${HEADS}
local lane = ARGV[2]
local due, gone, bytes = {}, {}, 0
for i = 3, #ARGV do
  local id = ARGV[i]
  local sequence, hold = redis.call('ZSCORE', pending, id), read_hold(lane, id)
  if sequence then
    local packed = redis.call('HGET', heads, id)
    if packed and (not hold or hold.due and hold.due <= now) and bytes < 4194304 then
      bytes = bytes + #packed
      due[#due + 1] = {head_row(id, sequence, cmsgpack.unpack(packed), tonumber(lane)), hold and hold.attempts or 0}
    end
  elseif not (hold and hold.state == 'dead') or redis.call('HEXISTS', dead_letters, id) == 0 then
    gone[#gone + 1] = id
  end
end
return {due, gone}
`);

/** Reads events that are not delivered, dead or not. ARGV: pipeline, the number of lanes, ids. */
export const lookAtScript = script(`${PRELUDE}${HEADS}
local rows = {}
for i = 3, #ARGV do
  local packed = redis.call('HGET', heads, ARGV[i])
  local head = packed and cmsgpack.unpack(packed)
  if head then rows[#rows + 1] = head_row(ARGV[i], '0', head, head.hash % tonumber(ARGV[2])) end
end
return rows
`);

/**
 * What the living instances read: pipeline, the type filters of all its instance's pipelines as JSON or '', whether it
 * owns lane 0.
 */
export const takenScript = script(`${PRELUDE}${LIVING}
local rows = {}
each_instance(function(id, row)
  if not is_living(row) then return end
  for name in pairs(row.serves) do
    local owner = redis.call('HGET', base .. ':lane:0:' .. name, 'owner')
    rows[#rows + 1] = {name, row.takes, owner == id and 1 or 0}
  end
end)
return rows
`);

/** ARGV: '', older than this many ms, how many. */
export const pruneScript = script(`${PRELUDE}
local old = redis.call('ZRANGEBYSCORE', delivered, '-inf', '(' .. (now - tonumber(ARGV[2])), 'LIMIT', 0, ARGV[3])
for from = 1, #old, 1000 do
  redis.call('ZREM', delivered, unpack(old, from, math.min(from + 999, #old)))
end
return #old
`);
