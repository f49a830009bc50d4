-- What a script sees of Lua's own libraries. Nothing that reaches outside is there, and what would not be the same on every
-- replay is replaced: the order of keys, sorting, addresses, random numbers.

local env, text_of = ...

local error, getmetatable, load, next, pcall, rawget, select, setmetatable, type =
  error, getmetatable, load, next, pcall, rawget, select, setmetatable, type
local find, format, gsub, rep = string.find, string.format, string.gsub, string.rep
local pack, unpack, quick_sort = table.pack, table.unpack, table.sort
local floor, tointeger = math.floor, math.tointeger
local metatable_of, random = debug.getmetatable, env.random

for _, name in next, {
  "assert", "error", "getmetatable", "ipairs", "pcall", "rawequal", "rawget", "rawlen", "rawset", "select", "tonumber", "type",
  "_VERSION",
} do
  env[name] = _G[name]
end
for _, name in next, { "string", "table", "math", "utf8" } do
  env[name] = {}
  for key, value in next, _G[name] do
    env[name][key] = value
  end
end
env._G, env.tostring, env.string.dump = env, text_of, nil
getmetatable("").__index = env.string

function env.setmetatable(value, meta)
  if type(meta) == "table" and rawget(meta, "__gc") ~= nil then error("__gc is not available to a workflow", 2) end
  return setmetatable(value, meta)
end

local function handled(handler, ok, ...)
  if ok then return true, ... end
  return false, select(2, pcall(handler, ...))
end

--- The library's own calls the handler where the error is, which may be where a script is being stopped.
function env.xpcall(call, handler, ...)
  return handled(handler, pcall(call, ...))
end

function env.load(chunk, name, mode, ...)
  if mode ~= nil and not find(mode, "t", 1, true) then return nil, "only text can be loaded, no binary chunk" end
  if select("#", ...) > 0 then return load(chunk, name, "t", (...)) end
  return load(chunk, name, "t", env)
end

--- What went wrong in here is the fault of the line that called it.
local function for_caller(ok, value)
  if ok then return value end
  error(type(value) == "string" and gsub(value, "^sandbox:%d+: ", "") or value, 2)
end

function env.string.rep(text, n, between)
  if text == "" and (between == nil or between == "") then return "" end
  return for_caller(pcall(rep, text, n, between))
end

function env.string.format(pattern, ...)
  local given = pack(...)
  for i = 1, given.n do
    local kind = type(given[i])
    if kind == "table" or kind == "function" or kind == "thread" then given[i] = text_of(given[i]) end
  end
  if type(pattern) == "string" and find((gsub(pattern, "%%%%", "")), "%%[^%a%%]*p") then
    error("an address (%p) is not the same on every replay", 2)
  end
  return for_caller(pcall(format, pattern, unpack(given, 1, given.n)))
end

function env.math.random(low, high)
  if low == nil then return random() end
  if high == nil then low, high = 1, low end
  low, high = tointeger(low), tointeger(high)
  if not low or not high then error("math.random() takes whole numbers", 2) end
  if low > high or high - low < 0 then error("math.random() cannot choose from " .. low .. " to " .. high, 2) end
  return low + floor(random() * (high - low + 1))
end

function env.math.randomseed()
  error("math.randomseed() is not available: random numbers are kept in the journal, and are the same on every replay", 2)
end

-- Keys in the same order every time: numbers, then text, then false and true.

local function sorted(t)
  local order, texts, flags, other = {}, {}, {}, nil
  for key in next, t do
    local kind = type(key)
    if kind == "number" then order[#order + 1] = key
    elseif kind == "string" then texts[#texts + 1] = key
    elseif kind == "boolean" then flags[key] = true
    elseif other ~= nil then
      error("the keys of this table have no order: more than one of them is a table or a function", 0)
    else other = key end
  end
  quick_sort(order)
  quick_sort(texts)
  for i = 1, #texts do
    order[#order + 1] = texts[i]
  end
  if flags[false] then order[#order + 1] = false end
  if flags[true] then order[#order + 1] = true end
  order[#order + 1] = other
  return order
end

local function expect_table(t, what)
  if type(t) ~= "table" then error("bad argument #1 to '" .. what .. "' (table expected, got " .. type(t) .. ")", 3) end
end

function env.pairs(t)
  local meta = metatable_of(t)
  local own = meta and rawget(meta, "__pairs")
  if own then
    local a, b, c = own(t)
    return a, b, c
  end
  expect_table(t, "pairs")
  local ok, order = pcall(sorted, t)
  if not ok then error(order, 2) end
  local i = 0
  return function()
    local key, value
    repeat
      i = i + 1
      key = order[i]
      if key == nil then return nil end
      value = rawget(t, key)
    until value ~= nil
    return key, value
  end, t, nil
end

local orders = setmetatable({}, { __mode = "k" })

function env.next(t, key)
  expect_table(t, "next")
  local known = orders[t]
  if key == nil or not known or not known.at[key] then
    local ok, order = pcall(sorted, t)
    if not ok then error(order, 2) end
    known = { keys = order, at = {} }
    for i = 1, #order do
      known.at[order[i]] = i
    end
    orders[t] = known
  end
  local at = key == nil and 0 or known.at[key]
  if not at then error("invalid key to 'next'", 2) end
  for i = at + 1, #known.keys do
    local value = rawget(t, known.keys[i])
    if value ~= nil then return known.keys[i], value end
  end
  return nil
end

local function less(a, b)
  return a < b
end

local function merge_sort(t, before)
  local from, to, n, width = {}, {}, #t, 1
  for i = 1, n do
    from[i] = t[i]
  end
  while width < n do
    for start = 1, n, 2 * width do
      local middle, stop = start + width, start + 2 * width
      if middle > n + 1 then middle = n + 1 end
      if stop > n + 1 then stop = n + 1 end
      local a, b = start, middle
      for i = start, stop - 1 do
        if a < middle and (b >= stop or not before(from[b], from[a])) then
          to[i], a = from[a], a + 1
        else
          to[i], b = from[b], b + 1
        end
      end
    end
    from, to, width = to, from, 2 * width
  end
  for i = 1, n do
    t[i] = from[i]
  end
end

--- The library's own looks at the clock, and leaves equals in any order.
function env.table.sort(t, before)
  expect_table(t, "sort")
  if before then return merge_sort(t, before) end
  return for_caller(pcall(merge_sort, t, less))
end

--- In Lua, because the library's own cannot be interrupted.
function env.table.move(from, first, last, at, to)
  to = to or from
  if at > last or at <= first or to ~= from then
    for i = 0, last - first do
      to[at + i] = from[first + i]
    end
  else
    for i = last - first, 0, -1 do
      to[at + i] = from[first + i]
    end
  end
  return to
end
