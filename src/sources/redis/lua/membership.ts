import { script } from "../redis-script.ts";
import { PRELUDE } from "./prelude.ts";

/**
 * `until_ms` and the lease it was given for. No renewal writes an expiry two leases away: then the clock has stepped
 * back since, and it would never end.
 */
export const LIVING = `
local function is_living(row) return row.until_ms > now and row.until_ms <= now + 2 * row.lease end
local function each_instance(visit)
  local flat = redis.call('HGETALL', instances)
  for i = 1, #flat, 2 do visit(flat[i], cmsgpack.unpack(flat[i + 1])) end
end
`;

/** ARGV: '', id, name, lease, what it takes as JSON or '', its pipelines. */
export const joinScript = script(`${PRELUDE}
if redis.call('HEXISTS', instances, ARGV[2]) == 1 then return 0 end
begin_write()
local row = {name = ARGV[3], lease = tonumber(ARGV[4]), until_ms = now + tonumber(ARGV[4]), takes = ARGV[5], serves = {}}
for i = 6, #ARGV do row.serves[ARGV[i]] = true end
redis.call('HSET', instances, ARGV[2], cmsgpack.pack(row))
return 1
`);

/** ARGV: '', id, lease. */
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
