/**
 * KEYS lease, lease count, position. ARGV owner, ms. Returns nothing while another owner holds the lease, else the
 * token and the position.
 */
export const ACQUIRE = `
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
local turns = redis.call('INCR', KEYS[2])
local token = ARGV[1] .. ':' .. turns
redis.call('SET', KEYS[1], token, 'PX', ARGV[2])
return { token, redis.call('GET', KEYS[3]) }
`;

/**
 * KEYS position, the queue's lists wait and paused, its set delayed, then the marker of each job. ARGV the markers'
 * lifetime in ms, the new position, then the id of each job. A Redis transaction continues after a failed command, and
 * BullMQ's script may have stopped halfway. So a marker is set only for a job that workers will find: it is at the head
 * of a list, since nothing can come in between. Moves the position, unless it is empty, when all jobs exist. Returns
 * the ids of missing jobs.
 */
export const MARK = `
local count = #KEYS - 4
local added = {}
for list = 2, 3 do
  for _, id in ipairs(count > 0 and redis.call('LRANGE', KEYS[list], 0, count - 1) or {}) do added[id] = true end
end
local missing = {}
for i = 1, count do
  local id = ARGV[i + 2]
  if added[id] or redis.call('ZSCORE', KEYS[4], id) then
    redis.call('SET', KEYS[i + 4], '1', 'PX', ARGV[1])
  else
    missing[#missing + 1] = id
  end
end
if #missing == 0 and ARGV[2] ~= '' then redis.call('SET', KEYS[1], ARGV[2]) end
return missing
`;
