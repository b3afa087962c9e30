"""The scripts that run inside of Redis. Each is one step that nothing else comes between.

Rules of this file:

* Keys of one log have one hash tag, `{name}`, so a cluster keeps them on one node:
  `{name}:partition` is the stream of a partition, `{name}.meta` the ends, `{name}.ids` the
  published transactions, `{name}.w.ID` what a writer did last. `{name}.g.GROUP` has the owner of
  each partition in a group of readers, `{name}.g.GROUP.m` when each member was there last.
* The id of an entry is `time-position`, in milliseconds and dense. Both never go back in a
  partition. So a time is found by Redis itself, and a position by halving the times.
* `meta` has for each partition `n:` the position of the next element, `e:` that of the oldest one,
  `t:` the time of the newest one, `m:` the bytes of the largest one that it ever had, and `s:` the
  bytes of all, if somebody counts them.
* An entry of another program comes after all of the log, because Redis gives higher ids only. No
  script appends after one, so none is ever between the elements of a log.
* A writer has an epoch, one for each connection, and numbers what it sends in a slot. A command of
  an older connection that arrives late is refused. One that is sent again, because its reply was
  lost, gets the reply of the first time.
"""

from hashlib import sha1
from typing import Final

_FOREIGN: Final = """
-- An error if a stream has an entry after the newest one of the log.
local function foreign_entry(stream, latest, newest)
  local from, last = '-', tonumber(latest) - 1
  if last >= 0 then from = '(' .. newest .. '-' .. string.format('%.0f', last) end
  local entry = redis.call('XRANGE', stream, from, '+', 'COUNT', 1)[1]
  if entry then
    return redis.error_reply('FOREIGN ' .. stream .. ' has an entry of another program ('
      .. entry[1] .. ')')
  end
end
"""

_COMMON: Final = """
local FORGET_WRITER = 3600000

local function before(writer, epoch, slot, number)
  local known = redis.call('HMGET', writer, 'epoch', slot)
  if known[1] and tonumber(known[1]) > tonumber(epoch) then
    return redis.error_reply('FENCED a newer connection of this writer is there')
  end
  if known[2] then
    local last = cjson.decode(known[2])
    if last[1] == tonumber(number) then return last[2] end
  end
end

local function remember(writer, epoch, slot, number, reply)
  redis.call('HSET', writer, 'epoch', epoch, slot, cjson.encode({tonumber(number), reply}))
  redis.call('PEXPIRE', writer, FORGET_WRITER)
end

local function id_of(entry)
  local ms, position = string.match(entry[1], '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(position)
end

local function first_position(stream, latest)
  local entry = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  if not entry then return latest end
  local _, position = id_of(entry)
  return position
end

local function bytes_in(stream)
  local size, from = 0, '-'
  while true do
    local entries = redis.call('XRANGE', stream, from, '+', 'COUNT', 1000)
    if #entries == 0 then return size end
    for _, entry in ipairs(entries) do size = size + #entry[2][2] end
    from = '(' .. entries[#entries][1]
  end
end

-- Drop what a retention does not keep. Returns the earliest position and the bytes that are left.
local function trim(stream, latest, newest, size, keep)
  if keep.count > 0 then redis.call('XTRIM', stream, 'MAXLEN', keep.count) end
  if keep.age > 0 then
    redis.call('XTRIM', stream, 'MINID', math.min(keep.now - keep.age, newest))
  end
  if keep.bytes > 0 then
    if keep.count > 0 or keep.age > 0 then size = bytes_in(stream) end
    while size > keep.bytes do
      local last
      for _, entry in ipairs(redis.call('XRANGE', stream, '-', '+', 'COUNT', 64)) do
        local _, position = id_of(entry)
        if size <= keep.bytes or position == latest - 1 then break end
        size = size - #entry[2][2]
        last = entry[1]
      end
      if not last then break end
      local ms, position = string.match(last, '^(%d+)-(%d+)$')
      redis.call('XTRIM', stream, 'MINID', ms .. '-' .. (position + 1))
    end
  end
  return first_position(stream, latest), size
end

-- What `meta` has of a partition, for `add`. An error if its stream is not as the log has left it.
local function known_of(stream, meta, name)
  local known = redis.call('HMGET', meta, 'n:' .. name, 'e:' .. name, 't:' .. name, 's:' .. name,
    'm:' .. name)
  if not known[1] then
    return redis.error_reply('GONE ' .. meta .. ' does not have the partition')
  end
  local foreign = foreign_entry(stream, known[1], known[3])
  if foreign then return foreign end
  if tonumber(known[1]) > tonumber(known[2]) and redis.call('XLEN', stream) == 0 then
    return redis.error_reply('GONE ' .. stream .. ' was deleted')
  end
  return known
end

local function add(stream, known, name, meta, elements, first, count, keep)
  local latest, earliest = tonumber(known[1]), tonumber(known[2])
  if count == 0 then return {latest, earliest, latest} end
  local newest = math.max(keep.now, tonumber(known[3]))
  local size = tonumber(known[4])
  if keep.bytes > 0 and not size then size = bytes_in(stream) end
  local prefix, largest = string.format('%.0f', newest) .. '-', 0
  for at = 0, count - 1 do
    local element = elements[first + at]
    if #element > largest then largest = #element end
    redis.call('XADD', stream, prefix .. string.format('%.0f', latest + at), 'e', element)
    if size then size = size + #element end
  end
  local after = latest + count
  earliest, size = trim(stream, after, newest, size, keep)
  redis.call('HSET', meta, 'n:' .. name, string.format('%.0f', after),
    'e:' .. name, string.format('%.0f', earliest), 't:' .. name, string.format('%.0f', newest))
  if largest > (tonumber(known[5]) or 0) then
    redis.call('HSET', meta, 'm:' .. name, largest)
  end
  if keep.bytes > 0 then
    redis.call('HSET', meta, 's:' .. name, string.format('%.0f', size))
  elseif known[4] then
    redis.call('HDEL', meta, 's:' .. name)
  end
  return {latest, earliest, after}
end

local function keeping(count, bytes, age)
  local time = redis.call('TIME')
  return {count = tonumber(count), bytes = tonumber(bytes), age = tonumber(age),
    now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)}
end

-- The first entry that is not before a time and a position.
local function look(stream, ms, position)
  local from = string.format('%.0f-%.0f', ms, position)
  local entry = redis.call('XRANGE', stream, from, '+', 'COUNT', 1)[1]
  if not entry then return nil end
  local found, at = id_of(entry)
  return entry[1], found, at
end

-- The entry at a position, and its time. `low` is not above that time, `high` not below.
local function entry_at(stream, position, low, high)
  while low <= high do
    -- An entry of the time `low`, or the first one after it: what a reader needs next.
    local id, ms, at = look(stream, low, position)
    if not id or at == position then return id, ms end
    low = ms
    local middle = math.floor((low + high + 1) / 2)
    id, ms, at = look(stream, middle, position)
    if id and at == position then return id, ms end
    if id and at < position then low = ms else high = middle - 1 end
  end
end
"""

_CONNECT: Final = """
-- KEYS: writer. Returns the epoch of a new connection of this writer.
local epoch = redis.call('HINCRBY', KEYS[1], 'epoch', 1)
redis.call('PEXPIRE', KEYS[1], 3600000)
return epoch
"""

_APPEND: Final = """
-- KEYS: stream, meta, writer. ARGV: epoch, slot, number, partition, count, bytes, age, elements...
local reply = before(KEYS[3], ARGV[1], ARGV[2], ARGV[3])
if reply then return reply end
local keep = keeping(ARGV[5], ARGV[6], ARGV[7])
local known = known_of(KEYS[1], KEYS[2], ARGV[4])
if known.err then return known end
reply = add(KEYS[1], known, ARGV[4], KEYS[2], ARGV, 8, #ARGV - 7, keep)
remember(KEYS[3], ARGV[1], ARGV[2], ARGV[3], reply)
return reply
"""

_PUBLISH: Final = """
-- KEYS: meta, writer, ids, streams... ARGV: epoch, slot, number, id, most ids, count, bytes, age,
-- then for each stream its partition, its number of elements, and the elements.
-- Returns the replies of the appends, or an empty list if the id was published before.
local reply = before(KEYS[2], ARGV[1], ARGV[2], ARGV[3])
if reply then return reply end
local keep = keeping(ARGV[6], ARGV[7], ARGV[8])
reply = {}
if not redis.call('ZSCORE', KEYS[3], ARGV[4]) then
  local from, known = 9, {}
  -- Before the first change: a script that fails takes nothing back.
  for at = 4, #KEYS do
    known[at] = known_of(KEYS[at], KEYS[1], ARGV[from])
    if known[at].err then return known[at] end
    from = from + 2 + tonumber(ARGV[from + 1])
  end
  local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')
  redis.call('ZADD', KEYS[3], (tonumber(last[2]) or 0) + 1, ARGV[4])
  redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -tonumber(ARGV[5]) - 1)
  from = 9
  for at = 4, #KEYS do
    local count = tonumber(ARGV[from + 1])
    reply[at - 3] = add(KEYS[at], known[at], ARGV[from], KEYS[1], ARGV, from + 2, count, keep)
    from = from + 2 + count
  end
end
remember(KEYS[2], ARGV[1], ARGV[2], ARGV[3], reply)
return reply
"""

_READ: Final = """
-- KEYS: stream, meta. ARGV: partition, position, stop, bytes, time or ''.
-- Returns earliest, latest, the time of the last element, elements...
local known = redis.call('HMGET', KEYS[2], 'e:' .. ARGV[1], 'n:' .. ARGV[1], 't:' .. ARGV[1])
if not known[2] then return redis.error_reply('GONE ' .. KEYS[2] .. ' does not have it') end
local reply = {tonumber(known[1]), tonumber(known[2]), 0}
local position, stop = tonumber(ARGV[2]), math.min(tonumber(ARGV[3]), reply[2])
if position < reply[1] or position >= stop then return reply end
local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
if not oldest then return redis.error_reply('GONE ' .. KEYS[1] .. ' is empty') end
local low = id_of(oldest)
low = math.max(low, tonumber(ARGV[5]) or 0)
local from = entry_at(KEYS[1], position, low, tonumber(known[3]))
if not from then return redis.error_reply('GONE ' .. KEYS[1] .. ' lacks ' .. ARGV[2]) end
local left, most, bytes = stop - position, tonumber(ARGV[4]), 0
local last, ms, at
while left > 0 and bytes < most do
  -- Few at once: an element may have megabytes, and `bytes` bounds them between two looks.
  local entries = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', math.min(left, 16))
  if #entries == 0 then break end
  for _, entry in ipairs(entries) do
    local element = entry[2][2]
    ms, at = id_of(entry)
    if entry[2][1] ~= 'e' or at ~= stop - left then
      return redis.error_reply('FOREIGN ' .. KEYS[1] .. ' has an entry of another program ('
        .. entry[1] .. ')')
    end
    reply[#reply + 1] = element
    bytes = bytes + #element
    left = left - 1
    last = entry[1]
    if bytes >= most then break end
  end
  from = '(' .. last
end
reply[3] = ms
return reply
"""

_TIMES: Final = """
-- KEYS: stream, meta. ARGV: partition, start, stop, most. Returns earliest, latest, then a position
-- and a time for each piece.
local known = redis.call('HMGET', KEYS[2], 'e:' .. ARGV[1], 'n:' .. ARGV[1], 't:' .. ARGV[1])
if not known[2] then return redis.error_reply('GONE ' .. KEYS[2] .. ' does not have it') end
local reply = {tonumber(known[1]), tonumber(known[2])}
local position, stop = tonumber(ARGV[2]), tonumber(ARGV[3])
if position < reply[1] then return reply end
local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
if not oldest then return reply end
local low = id_of(oldest)
local _, ms = entry_at(KEYS[1], position, low, tonumber(known[3]))
while ms and position < stop and #reply < 2 * tonumber(ARGV[4]) do
  reply[#reply + 1] = position
  reply[#reply + 1] = ms
  local entry = redis.call('XRANGE', KEYS[1], string.format('%.0f', ms + 1), '+', 'COUNT', 1)[1]
  if not entry then break end
  ms, position = id_of(entry)
end
return reply
"""

_MAKE: Final = """
-- KEYS: meta, streams. ARGV: format, a partition for each stream. Returns the format and all
-- fields.
local found = redis.call('HGET', KEYS[1], 'format')
for at = 2, #ARGV do
  -- A partition that is new begins with an empty stream.
  if redis.call('HEXISTS', KEYS[1], 'n:' .. ARGV[at]) == 0 then
    local foreign = foreign_entry(KEYS[at], 0, 0)
    if foreign then return foreign end
  end
end
if not found then redis.call('HSET', KEYS[1], 'format', ARGV[1]) end
if not found or found == ARGV[1] then
  for at = 2, #ARGV do
    local name = ARGV[at]
    if redis.call('HSETNX', KEYS[1], 'n:' .. name, 0) == 1 then
      redis.call('HSET', KEYS[1], 'e:' .. name, 0, 't:' .. name, 0)
    end
  end
end
return redis.call('HGETALL', KEYS[1])
"""


class Script:
    """A script, and the digest by which the server knows it."""

    __slots__ = ("digest", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest: str = sha1(text.encode(), usedforsecurity=False).hexdigest()


CONNECT: Final = Script(_CONNECT)
APPEND: Final = Script(_FOREIGN + _COMMON + _APPEND)
PUBLISH: Final = Script(_FOREIGN + _COMMON + _PUBLISH)
READ: Final = Script(_COMMON + _READ)
TIMES: Final = Script(_COMMON + _TIMES)
MAKE: Final = Script(_FOREIGN + _MAKE)

_GROUPS: Final = """
local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
"""

_JOIN: Final = """
-- KEYS: streams. ARGV: group, where it begins. Makes the group where it is not there.
for _, stream in ipairs(KEYS) do
  local made = redis.pcall('XGROUP', 'CREATE', stream, ARGV[1], ARGV[2], 'MKSTREAM')
  if type(made) == 'table' and made.err and not string.find(made.err, 'BUSYGROUP') then
    return made
  end
end
"""

_BEAT: Final = """
-- KEYS: owners, members. ARGV: member, milliseconds. Returns the members that live, and the owners.
local time = now()
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', time - tonumber(ARGV[2]))
redis.call('ZADD', KEYS[2], time, ARGV[1])
return {redis.call('ZRANGE', KEYS[2], 0, -1), redis.call('HGETALL', KEYS[1])}
"""

_TAKE: Final = """
-- KEYS: owners, members, stream. ARGV: group, member, partition. Returns the last id that the group
-- has got, or nothing if the partition has an owner that lives.
local owner = redis.call('HGET', KEYS[1], ARGV[3])
if owner and owner ~= ARGV[2] and redis.call('ZSCORE', KEYS[2], owner) then return false end
local cursor, before = '0-0', {}
repeat
  local found = redis.call('XAUTOCLAIM', KEYS[3], ARGV[1], ARGV[2], 0, cursor, 'COUNT', 1000,
    'JUSTID')
  cursor = found[1]
until cursor == '0-0'
redis.call('HSET', KEYS[1], ARGV[3], ARGV[2])
for _, each in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[3], ARGV[1])) do
  -- They have left, and nothing of theirs is pending.
  if each[2] ~= ARGV[2] and each[4] == 0 then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[3], ARGV[1], each[2])
  end
end
for _, each in ipairs(redis.call('XINFO', 'GROUPS', KEYS[3])) do
  for at = 1, #each, 2 do before[each[at]] = each[at + 1] end
  if before['name'] == ARGV[1] then return before['last-delivered-id'] end
end
return '0-0'
"""

_LEAVE: Final = """
-- KEYS: owners, members. ARGV: member, a partition or none for all, which ends the member.
if ARGV[2] then
  if redis.call('HGET', KEYS[1], ARGV[2]) == ARGV[1] then redis.call('HDEL', KEYS[1], ARGV[2]) end
  return
end
local owners = redis.call('HGETALL', KEYS[1])
for at = 1, #owners, 2 do
  if owners[at + 1] == ARGV[1] then redis.call('HDEL', KEYS[1], owners[at]) end
end
redis.call('ZREM', KEYS[2], ARGV[1])
"""

_FETCH: Final = """
-- KEYS: owners, members, stream, meta. ARGV: group, member, partition, count, id. Returns entries
-- with how often each was delivered; nothing if the partition has another owner.
if redis.call('HGET', KEYS[1], ARGV[3]) ~= ARGV[2] then return false end
-- Before anything is read: an entry of another program must not become a pending one.
local ends = redis.call('HMGET', KEYS[4], 'n:' .. ARGV[3], 't:' .. ARGV[3])
local foreign = ends[1] and foreign_entry(KEYS[3], ends[1], ends[2])
if foreign then return foreign end
local found, count = {}, tonumber(ARGV[4])
local function read(from, times)
  local reply = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', count, 'STREAMS',
    KEYS[3], from)
  for _, entry in ipairs(reply and reply[1][2] or {}) do
    if entry[2] then
      found[#found + 1] = {entry[1], times[entry[1]] or 1, entry[2]}
    else
      -- The retention has dropped it, so no member can get it.
      redis.call('XACK', KEYS[3], ARGV[1], entry[1])
    end
  end
end
local times = {}
local pending = redis.call('XPENDING', KEYS[3], ARGV[1], '(' .. ARGV[5], '+', count, ARGV[2])
for _, each in ipairs(pending) do times[each[1]] = each[4] + 1 end
if #pending > 0 then read(ARGV[5], times) end
count = count - #found
if count > 0 then read('>', {}) end
return found
"""

JOIN: Final = Script(_JOIN)
BEAT: Final = Script(_GROUPS + _BEAT)
TAKE: Final = Script(_TAKE)
LEAVE: Final = Script(_LEAVE)
FETCH: Final = Script(_FOREIGN + _FETCH)
