/**
 * KEYS lock, the tenant's fence. ARGV owner, ms. Returns { 1, fence } when the owner holds the lock now, else { 0, ms
 * until it may be free }. An owner that already holds it, because an answer was lost, gets it again. The fence rises
 * even after Redis lost its data, because it is never below the server's clock.
 */
export const TAKE = `
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, -#ARGV[1]) ~= ARGV[1] then return { 0, tostring(redis.call('PTTL', KEYS[1])) } end
local now = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
local fence = string.format('%.0f', math.max(last + 1, now[1] * 1000 + math.floor(now[2] / 1000)))
redis.call('SET', KEYS[2], fence)
redis.call('SET', KEYS[1], fence .. ':' .. ARGV[1], 'PX', ARGV[2])
return { 1, fence }
`;
