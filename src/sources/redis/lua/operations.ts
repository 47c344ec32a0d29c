import { script } from "../redis-script.ts";
import { APPEND } from "./append.ts";
import { HEADS, PRELUDE } from "./prelude.ts";

/** ARGV: six values per event, see `outbox_append`. */
export const appendScript = script(`${APPEND}
return outbox_append(KEYS[1], ARGV, 1, #ARGV)
`);

/**
 * ARGV: pipeline, how many. Returns dead letters with their events, in no particular order, and reads no more than are
 * wanted.
 */
export const deadLettersScript = script(`${PRELUDE}${HEADS}
local letters, wanted, cursor = {}, tonumber(ARGV[2]), '0'
local function take(id, packed_letter)
  local packed, letter = redis.call('HGET', heads, id), cmsgpack.unpack(packed_letter)
  if not packed then return end
  letters[#letters + 1] = {head_row(id, '0', cmsgpack.unpack(packed), 0), redis.call('HGET', payloads, id),
    letter.attempts, letter.parks and 1 or 0, cjson.encode(letter.errors)}
end
repeat
  local flat
  cursor, flat = unpack(redis.call('HSCAN', dead_letters, cursor, 'COUNT', 100))
  for i = 1, #flat, 2 do
    if #letters < wanted then take(flat[i], flat[i + 1]) end
  end
until cursor == '0' or #letters >= wanted
return letters
`);

/**
 * Puts a dead event back at its original sequence. Its hold stays until the lane's owner revives it at its next review,
 * so that no later event of the key overtakes it. ARGV: pipeline, id.
 */
export const replayScript = script(`${PRELUDE}
if redis.call('HEXISTS', dead_letters, ARGV[2]) == 0 then return 0 end
local head = cmsgpack.unpack(redis.call('HGET', heads, ARGV[2]))
begin_write()
redis.call('HDEL', dead_letters, ARGV[2])
redis.call('ZADD', pending, head.sequence, ARGV[2])
return 1
`);

/** Removes an event in any state. ARGV: '', id, '1' if it counts as delivered, pipelines. */
export const removeScript = script(`${PRELUDE}
local id = ARGV[2]
local known = redis.call('HDEL', heads, id)
redis.call('HDEL', payloads, id)
redis.call('ZREM', pending, id)
for i = 4, #ARGV do redis.call('HDEL', base .. ':dead:' .. ARGV[i], id) end
if known == 1 and ARGV[3] == '1' then redis.call('ZADD', delivered, now, id) end
return known
`);

/** ARGV: pipeline, then who, '=' and why or '', '1' to hand over lanes; without them the pipeline resumes. */
export const pauseScript = script(`${PRELUDE}
local row = base .. ':pipeline:' .. pipeline
if redis.call('EXISTS', row) == 0 then return 0 end
begin_write()
redis.call('HDEL', row, 'paused_by', 'pause_reason', 'hands_over')
if ARGV[2] then redis.call('HSET', row, 'paused_by', ARGV[2], 'hands_over', ARGV[4]) end
if ARGV[2] and ARGV[3] ~= '' then redis.call('HSET', row, 'pause_reason', optional(ARGV[3])) end
return 1
`);
