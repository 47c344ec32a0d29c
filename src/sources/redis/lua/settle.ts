import { script } from "../redis-script.ts";
import { FENCE, HOLDS, PRELUDE } from "./prelude.ts";

/**
 * Attempts whose errors are kept: the first and the newest. An event may be retried forever; its history is bounded.
 */
const ERRORS_MAX = 100;
/** Values passed in one call: Lua's stack is small. */
const CALL_MAX = 1_000;

/**
 * Writes the outcomes of claimed events, all or nothing. ARGV: pipeline, lane, owner, epoch, previous batch, batch,
 * ledger, how long to keep ids of delivered events, then the numbers of delivered ids, failures (six values each),
 * holds to release and suspects (two values each), then these.
 */
export const settleScript = script(`${PRELUDE}${HOLDS}${FENCE}
if not is_ours then return {'fenced', lane_row[2] or ''} end
if lane_row[3] ~= ARGV[5] then return {'fenced', 'batch ' .. lane_row[3]} end
begin_write()
local heals = ARGV[7] == 'heal'
local kept_ms = tonumber(ARGV[8])
local missing, dead, position = {}, {}, 13

local function drop_and_note(ids)
  for from = 1, #ids, ${CALL_MAX} do
    local some, scored = {}, {}
    for i = from, math.min(from + ${CALL_MAX} - 1, #ids) do
      some[#some + 1] = ids[i]
      scored[#scored + 1] = now
      scored[#scored + 1] = ids[i]
    end
    redis.call('HDEL', heads, unpack(some))
    redis.call('HDEL', payloads, unpack(some))
    redis.call('ZADD', delivered, unpack(scored))
  end
  local old = redis.call('ZRANGEBYSCORE', delivered, '-inf', '(' .. (now - kept_ms), 'LIMIT', 0,
    math.min(2 * #ids, ${CALL_MAX}))
  if #old > 0 then redis.call('ZREM', delivered, unpack(old)) end
end

local function note_error(id, attempt, reason)
  local text = redis.call('HGET', of_lane('errors', lane), id)
  local errors = text and cmsgpack.unpack(text) or {}
  if #errors >= ${ERRORS_MAX} then table.remove(errors, 2) end
  errors[#errors + 1] = {at = now, attempt = attempt, reason = reason}
  redis.call('HSET', of_lane('errors', lane), id, cmsgpack.pack(errors))
  return errors
end

local function writeDeadLetter(id, attempts, parks, errors)
  redis.call('ZREM', pending, id)
  redis.call('HSET', dead_letters, id, cmsgpack.pack({attempts = attempts, parks = parks, errors = errors}))
  local head = cmsgpack.unpack(redis.call('HGET', heads, id))
  dead[#dead + 1] = {id, head.type, head.correlation, cjson.encode(errors)}
end

local function fail(id, key, reason, attempts, next, value)
  local before = read_hold(lane, id)
  local crashes = before and before.crashes or 0
  -- A failed suspect crashed no process, so its last crash does not count.
  if before and before.state == 'suspect' then crashes = crashes - 1 end
  local errors = note_error(id, attempts, reason)
  local hold = {key = key, state = 'retrying', parks = key ~= false, attempts = attempts, crashes = crashes}
  if next == 'dead' then
    hold.state, hold.parks, hold.due = 'dead', value == '1', false
  else
    hold.due = now + tonumber(value)
  end
  put_hold(lane, id, before, hold)
  if next == 'dead' then writeDeadLetter(id, attempts, hold.parks, errors) end
end

local function suspect(id, key)
  local before = read_hold(lane, id)
  put_hold(lane, id, before, {key = key, state = 'suspect', parks = key ~= false, due = now,
    attempts = before and before.attempts or 0, crashes = (before and before.crashes or 0) + 1})
end

local done = {}
for i = position, position + ARGV[9] - 1 do
  -- The ledger proves the delivery, so healing also corrects an event that died with the owner who delivered it.
  if redis.call('ZREM', pending, ARGV[i]) == 1 or heals and redis.call('HDEL', dead_letters, ARGV[i]) == 1 then
    done[#done + 1] = ARGV[i]
  else
    missing[#missing + 1] = ARGV[i]
  end
end
drop_and_note(done)
position = position + ARGV[9]
for i = position, position + 6 * ARGV[10] - 1, 6 do
  if redis.call('ZSCORE', pending, ARGV[i]) then
    fail(ARGV[i], optional(ARGV[i + 1]), ARGV[i + 2], tonumber(ARGV[i + 3]), ARGV[i + 4], ARGV[i + 5])
  else
    missing[#missing + 1] = ARGV[i]
  end
end
position = position + 6 * ARGV[10]
for i = position, position + ARGV[11] - 1 do drop_hold(lane, ARGV[i]) end
position = position + ARGV[11]
for i = position, position + 2 * ARGV[12] - 1, 2 do
  if redis.call('ZSCORE', pending, ARGV[i]) then
    suspect(ARGV[i], optional(ARGV[i + 1]))
  else
    missing[#missing + 1] = ARGV[i]
  end
end
local row = of_lane('lane', lane)
redis.call('HSET', row, 'settled', ARGV[6])
if ARGV[7] ~= 'none' then redis.call('HSET', row, 'ledgered', ARGV[6]) end
-- A settle that delivers nothing proves nothing, so it does not lower the lane's crash count.
if tonumber(ARGV[9]) > 0 and tonumber(lane_row[4]) > 0 then redis.call('HINCRBY', row, 'crashes', -1) end
return {'settled', missing, dead}
`);

/**
 * Follows what operators did to the events. Deletes holds of events that are gone, and retries dead events that are
 * pending again from the start. ARGV: pipeline, lane, owner, epoch.
 */
export const reviewHoldsScript = script(`${PRELUDE}${HOLDS}${FENCE}
if not is_ours then return {'fenced', lane_row[2] or ''} end
begin_write()
for _, id in ipairs(redis.call('HKEYS', of_lane('holds', lane))) do
  local waits = redis.call('ZSCORE', pending, id)
  if not waits and redis.call('HEXISTS', dead_letters, id) == 0 then
    drop_hold(lane, id)
  elseif waits then
    local hold = read_hold(lane, id)
    if hold.state == 'dead' then
      redis.call('HDEL', of_lane('errors', lane), id)
      put_hold(lane, id, hold, {key = hold.key, state = 'retrying', parks = hold.key ~= false, due = now, attempts = 0,
        crashes = 0})
    end
  end
end
return {'reviewed', list_holds(lane)}
`);
