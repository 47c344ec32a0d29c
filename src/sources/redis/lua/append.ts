/**
 * Defines `outbox_append(base, args, first, last)` for use in any script. It takes six arguments per event: id, type,
 * key, payload, headers as a JSON object or '', correlation id. Key and correlation id are '' for none, else '=' and
 * the text. It returns the ids that were new. It raises an error either before its first write or never, so call it
 * before those writes of your script that must not happen without the events.
 *
 * The sequence is assigned in the same atomic step that makes the event visible: no event ever appears behind one that
 * was already seen. That lets a relay read page by page without a snapshot.
 */
export const APPEND = `
local function outbox_append(base, args, first, last)
  local heads, payloads = base .. ':heads', base .. ':payloads'
  if (last - first + 1) % 6 ~= 0 then error('outbox: expected six arguments per event') end
  for i = first, last, 6 do
    if args[i] == '' or args[i + 1] == '' then error('outbox: an event needs an id and a type') end
    for _, at in ipairs({i + 2, i + 5}) do
      if args[at] ~= '' and string.sub(args[at], 1, 1) ~= '=' then
        error("outbox: key and correlation id are written with '=' in front, or are empty for none")
      end
    end
  end
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local function optional(text) return text ~= '' and string.sub(text, 2) end
  local added = {}
  for i = first, last, 6 do
    local id, key = args[i], optional(args[i + 2])
    if redis.call('HEXISTS', heads, id) == 0 and not redis.call('ZSCORE', base .. ':delivered', id) then
      local sequence = redis.call('INCR', base .. ':sequence')
      local head = {type = args[i + 1], key = key, size = #args[i + 3], created = now, headers = args[i + 4], sequence = sequence,
        correlation = optional(args[i + 5]), hash = tonumber(string.sub(redis.sha1hex(key or id), 1, 8), 16)}
      redis.call('HSET', heads, id, cmsgpack.pack(head))
      redis.call('HSET', payloads, id, args[i + 3])
      redis.call('ZADD', base .. ':pending', sequence, id)
      added[#added + 1] = id
    end
  end
  return added
end
`;
