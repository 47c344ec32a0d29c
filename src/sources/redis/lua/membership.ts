import { script } from "../redis-script.ts";
import { PRELUDE } from "./prelude.ts";

/**
 * `until_ms` and the lease it was given for. A renewal never writes an expiry more than one lease ahead. An expiry
 * beyond two leases means the clock stepped back: the lease would never end, so the instance counts as dead.
 */
export const LIVING = `
local function is_living(row) return row.until_ms > now and row.until_ms <= now + 2 * row.lease end
local function each_instance(visit)
  local flat = redis.call('HGETALL', instances)
  for i = 1, #flat, 2 do visit(flat[i], cmsgpack.unpack(flat[i + 1])) end
end
`;

/** ARGV: '', id, name, lease, its type filters as JSON or '', its pipelines. Returns 0 when the id exists already. */
export const joinScript = script(`${PRELUDE}
if redis.call('HEXISTS', instances, ARGV[2]) == 1 then return 0 end
begin_write()
local row = {name = ARGV[3], lease = tonumber(ARGV[4]), until_ms = now + tonumber(ARGV[4]), takes = ARGV[5], serves = {}}
for i = 6, #ARGV do row.serves[ARGV[i]] = true end
redis.call('HSET', instances, ARGV[2], cmsgpack.pack(row))
return 1
`);

/**
 * ARGV: '', id, lease. Returns 0 when the lease has expired: an expired instance may have lost its lanes and must not
 * return.
 */
export const renewScript = script(`${PRELUDE}
local packed = redis.call('HGET', instances, ARGV[2])
local row = packed and cmsgpack.unpack(packed)
if not row or row.until_ms <= now then return 0 end
begin_write()
row.lease = tonumber(ARGV[3])
row.until_ms = now + row.lease
redis.call('HSET', instances, ARGV[2], cmsgpack.pack(row))
return 1
`);

/** Removes instances whose lease has expired, which frees their lanes. Returns their ids. */
export const reapScript = script(`${PRELUDE}${LIVING}
local reaped = {}
each_instance(function(id, row)
  if not is_living(row) then
    redis.call('HDEL', instances, id)
    reaped[#reaped + 1] = id
  end
end)
return reaped
`);

/** ARGV: '', id. */
export const leaveScript = script(`${PRELUDE}
return redis.call('HDEL', instances, ARGV[2])
`);
