import { script } from "../redis-script.ts";
import { LIVING } from "./membership.ts";
import { FENCE, HOLDS, PRELUDE } from "./prelude.ts";

/**
 * Creates the pipeline and its lanes unless they exist. ARGV: pipeline, proposed lanes, an id for the outbox if it has
 * none yet. Returns the number of lanes and the server's maxmemory-policy.
 */
export const prepareScript = script(`${PRELUDE}
local row = base .. ':pipeline:' .. pipeline
local lanes = redis.call('HGET', row, 'lanes')
if not lanes then
  begin_write()
  lanes = ARGV[2]
  redis.call('HSET', row, 'lanes', lanes)
  for lane = 0, tonumber(lanes) - 1 do
    redis.call('HSET', of_lane('lane', lane), 'epoch', '0', 'settled', '0', 'ledgered', '0', 'crashes', '0')
  end
  redis.call('SADD', base .. ':pipelines', pipeline)
  redis.call('SET', base .. ':identity', ARGV[3], 'NX')
end
return {tonumber(lanes), string.match(redis.call('INFO', 'memory'), 'maxmemory_policy:([%w-]+)') or ''}
`);

/**
 * Assigns the pipeline's ledger slots once. ARGV: pipeline. Returns the outbox's id, the first slot and the number of
 * lanes.
 */
export const identityScript = script(`${PRELUDE}
local row = base .. ':pipeline:' .. pipeline
local lanes, slot = unpack(redis.call('HMGET', row, 'lanes', 'slot'))
if not lanes then return false end
if not slot then
  slot = redis.call('INCRBY', base .. ':slots', lanes) - lanes
  redis.call('HSET', row, 'slot', slot)
end
return {redis.call('GET', base .. ':identity'), tonumber(slot), tonumber(lanes)}
`);

/** ARGV: pipeline. Returns the living instances that serve it, the lanes, and the pause if there is one. */
export const surveyScript = script(`${PRELUDE}${LIVING}
local lanes, by, reason, hands_over = unpack(redis.call('HMGET', base .. ':pipeline:' .. pipeline,
  'lanes', 'paused_by', 'pause_reason', 'hands_over'))
local serving, rows = {}, {}
each_instance(function(id, row)
  if is_living(row) and row.serves[pipeline] then serving[#serving + 1] = id end
end)
for lane = 0, tonumber(lanes or 0) - 1 do
  local owner, epoch, settled = unpack(redis.call('HMGET', of_lane('lane', lane), 'owner', 'epoch', 'settled'))
  rows[#rows + 1] = {lane, owner, epoch, settled}
end
return {serving, rows, by and {by, reason, hands_over} or false}
`);

/**
 * Takes free lanes over and raises their epochs, which fences the former owners. ARGV: pipeline, owner, the number of
 * lanes the caller assumes, lanes. The epoch also follows the server's clock in milliseconds, so that a server that
 * lost its last writes cannot issue an epoch twice.
 */
export const takeOverScript = script(`${PRELUDE}${HOLDS}
local owner = ARGV[2]
local taken = {}
if redis.call('HEXISTS', instances, owner) == 0 then return taken end
if redis.call('HGET', base .. ':pipeline:' .. pipeline, 'lanes') ~= ARGV[3] then return taken end
begin_write()
for i = 4, #ARGV do
  local lane = ARGV[i]
  local row = of_lane('lane', lane)
  local former, epoch, settled, ledgered, crashes = unpack(redis.call('HMGET', row,
    'owner', 'epoch', 'settled', 'ledgered', 'crashes'))
  local is_free = not former or former == owner or redis.call('HEXISTS', instances, former) == 0
  if epoch and is_free then
    epoch = string.format('%.0f', math.max(tonumber(epoch) + 1, now))
    if former and former ~= owner then crashes = redis.call('HINCRBY', row, 'crashes', 1) end
    redis.call('HSET', row, 'owner', owner, 'epoch', epoch)
    taken[#taken + 1] = {lane, epoch, settled, ledgered, crashes, list_holds(lane)}
  end
end
return taken
`);

/**
 * ARGV: pipeline, lane, owner, epoch, suspects of this owner. The events noted as about to be sent crashed no process,
 * so their last crash does not count.
 */
export const releaseScript = script(`${PRELUDE}${HOLDS}${FENCE}
if not is_ours then return 0 end
redis.call('HDEL', of_lane('lane', lane), 'owner')
for i = 5, #ARGV do
  local hold = read_hold(lane, ARGV[i])
  if hold and hold.state == 'suspect' then
    hold.state = 'retrying'
    hold.crashes = hold.crashes - 1
    redis.call('HSET', of_lane('holds', lane), ARGV[i], cmsgpack.pack(hold))
  end
end
return 1
`);
