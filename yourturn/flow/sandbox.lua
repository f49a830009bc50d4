-- The world of a Lua script: what it can see, and the one door out of it. The other side of the door is lua.py.
--
-- A script runs in a coroutine, in an environment of its own. A durable function yields a request, as text, to whoever resumed
-- the coroutine; if that is the script itself, its resume() hands the request further up, until it is at the door. Python
-- does what was asked, puts the answer, again as text, into the inbox, and resumes. If the run has to wait, it does not: the
-- coroutine is let go, so there is no error that a pcall could catch. No Python object ever comes in, except `tick`, which
-- nothing in here gives away.
--
-- What would not be the same on every replay is replaced: the order of keys, sorting, addresses, random numbers.
--
-- The functions of the libraries are kept in locals first, and methods of strings are not used, because a script may change
-- what it sees.

local tick, COUNT = ...

local assert, error, getmetatable, next, pcall, rawequal, rawget, select, setmetatable, tostring, type, load =
  assert, error, getmetatable, next, pcall, rawequal, rawget, select, setmetatable, tostring, type, load
local create, resume, yield, running, isyieldable, close, status =
  coroutine.create, coroutine.resume, coroutine.yield, coroutine.running, coroutine.isyieldable, coroutine.close, coroutine.status
local byte, cut, find, format, gsub, rep = string.byte, string.sub, string.find, string.format, string.gsub, string.rep
local concat, pack, unpack, quick_sort = table.concat, table.pack, table.unpack, table.sort
local floor, math_type, tointeger, huge, utf8_len = math.floor, math.type, math.tointeger, math.huge, utf8.len
local sethook, metatable_of = debug.sethook, debug.getmetatable

local REQUEST, MISSING, WEAK = {}, {}, { __mode = "k" }
local env = {}

-- --- stopping ----------------------------------------------------------------------------------------------------------
-- Every COUNT instructions Python is asked whether to go on. If not, every single instruction is an error from then on, so
-- that a script which catches one does not come to the next.

local halted, because = false, nil

local function hook()
  if not halted then
    local ok, stop = pcall(tick)
    if ok and not stop then return end
    halted, because = true, not ok and stop or nil
  end
  sethook(hook, "", 1)
  error("stopped", 0)
end

local function hooked(co)
  sethook(co, hook, "", halted and 1 or COUNT)
  return co
end

-- --- values, as text ---------------------------------------------------------------------------------------------------

local numbers, count = setmetatable({}, WEAK), 0

--- Like tostring, but without addresses.
local function text_of(value)
  local kind = type(value)
  if kind == "table" or kind == "function" or kind == "thread" or kind == "userdata" then
    local meta = metatable_of(value)
    if not meta or rawget(meta, "__tostring") == nil then
      if not numbers[value] then
        count = count + 1
        numbers[value] = count
      end
      return kind .. ": " .. numbers[value]
    end
  end
  return tostring(value)
end

local function escaped(character)
  return format("\\u%04x", byte(character))
end

local write

local function write_table(out, value, depth)
  if depth > 60 then error("a table is nested too deeply", 0) end
  local length, names, n = #out, 0, 0
  for key in next, value do
    n = n + 1
    if type(key) == "string" then names = names + 1 end
  end
  if names == n then
    out[length + 1] = "{"
    for key, item in next, value do
      if #out > length + 1 then out[#out + 1] = "," end
      write(out, key, depth)
      out[#out + 1] = ":"
      write(out, item, depth + 1)
    end
    out[#out + 1] = "}"
    return
  end
  out[length + 1] = "["
  for i = 1, n do
    local item = rawget(value, i)
    if item == nil then error("a table has to be a list without gaps, or all its keys have to be names", 0) end
    if i > 1 then out[#out + 1] = "," end
    write(out, item, depth + 1)
  end
  out[#out + 1] = "]"
end

function write(out, value, depth)
  local kind = type(value)
  if kind == "string" then
    if not utf8_len(value) then error("text has to be UTF-8", 0) end
    out[#out + 1] = '"' .. gsub(value, '[%c"\\]', escaped) .. '"'
  elseif kind == "number" then
    if value ~= value or value == huge or value == -huge then error("a number has to be finite", 0) end
    local written = math_type(value) == "integer" and format("%d", value) or format("%.17g", value)
    out[#out + 1] = (math_type(value) == "float" and not find(written, "[.e]")) and written .. ".0" or written
  elseif kind == "boolean" or kind == "nil" then
    out[#out + 1] = kind == "nil" and "null" or tostring(value)
  elseif kind == "table" then
    write_table(out, value, depth)
  else
    error("only text, numbers, true, false and tables of those can be handed over, not a " .. kind, 0)
  end
end

local function written(...)
  local out, n = { "[" }, select("#", ...)
  for i = 1, n do
    write(out, (select(i, ...)), 0)
    out[#out + 1] = i < n and "," or ""
  end
  out[#out + 1] = "]"
  return concat(out)
end

-- --- the door ----------------------------------------------------------------------------------------------------------

local inbox, printed = nil, {}
local functions, threads, roots = {}, {}, setmetatable({}, WEAK)
local handing_up = setmetatable({}, WEAK)

local function read()
  return assert(load(inbox, "=answer", "t", {}))()
end

local NO_DOOR = "nothing that waits can be called in a metamethod, or in a function that string.gsub or load calls"
local NOT_HERE = format("return false, %q", NO_DOOR)

local function request(name, ...)
  if not isyieldable() then return false, name .. "(): " .. NO_DOOR end
  local ok, text = pcall(written, ...)
  if not ok then return false, name .. "(): " .. text_of(text) end
  yield(REQUEST, name, text)
  return read()
end

local function durable(name)
  return function(...)
    local ok, value, more = request(name, ...)
    if not ok then error(value, more or 2) end
    return value, more
  end
end

local function described(err)
  local meta = type(err) == "table" and metatable_of(err)
  if type(err) ~= "table" or meta and rawget(meta, "__tostring") ~= nil then
    local ok, text = pcall(text_of, err)
    return ok and text or "an error that cannot be shown"
  end
  local ok, text = pcall(written, err)
  return ok and cut(text, 2, -2) or "an error that is a table"
end

local function left(thread, ok, first, second, text)
  local said = concat(printed, "\n")
  printed = {}
  if halted then return "halted", because, nil, said end
  if ok and rawequal(first, REQUEST) then return "call", second, text, said end
  threads[thread] = nil
  if ok then return first, second, nil, said end
  return "error", type(first) == "string" and first or "an error that cannot be shown", nil, said
end

local function ended(ok, value)
  if ok then return "done", value end
  if rawequal(value, MISSING) then return "missing" end
  return "error", described(value)
end

--- One leg of a thread: from where it is to the next request, or its end. A new one begins with the function of that number.
local function advance(thread, number)
  if number then
    local call = functions[number]
    local function whole()
      return written((call(read())))
    end
    local co = hooked(create(function()
      return ended(pcall(whole))
    end))
    threads[thread], roots[co] = co, true
  end
  return left(thread, resume(threads[thread]))
end

local function post(text)
  inbox = text
end

local function with_number(call)
  local number = #functions + 1
  functions[number] = call
  return number
end

-- --- durable functions -------------------------------------------------------------------------------------------------

for _, name in next, { "run", "pause", "ask", "stuck", "config", "sleep", "now", "random", "uuid" } do
  env[name] = durable(name)
end

local function words(...)
  local out = pack(...)
  for i = 1, out.n do
    out[i] = text_of(out[i])
  end
  return concat(out, " ", 1, out.n)
end

local log = durable("log")

function env.log(...)
  return log(words(...))
end

function env.print(...)
  printed[#printed + 1] = words(...)
end

--- What the script calls a function: the journal should be readable.
local function name_of(call)
  local found
  for key, value in next, env do
    if rawequal(value, call) and type(key) == "string" and (not found or key < found) then found = key end
  end
  return found or "function"
end

function env.step(call, ...)
  if type(call) ~= "function" then error("step() needs a function, like: step(fetch, url), not step(fetch(url))", 2) end
  local ok, value, level = request("step", with_number(call), name_of(call), ...)
  if not ok then error(value, level or 2) end
  return value
end

function env.parallel(branches)
  local begun, results, like = {}, {}, 'like: parallel({ function() return run("a") end, function() return run("b") end })'
  if type(branches) ~= "table" then error("parallel() needs a list of functions, " .. like, 2) end
  for i = 1, #branches do
    local branch = branches[i]
    if type(branch) ~= "function" then error("parallel() needs functions, " .. like, 2) end
    begun[i] = with_number(function()
      results[i] = branch()
    end)
  end
  local ok, value, level = request("parallel", begun)
  if not ok then error(value, level or 2) end
  return results
end

-- --- the libraries -----------------------------------------------------------------------------------------------------

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

local random = env.random

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

local orders = setmetatable({}, WEAK)

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

-- --- coroutines of the script's own ------------------------------------------------------------------------------------

local function handed_up(co, ok, first, ...)
  if halted then hook() end
  if ok and rawequal(first, REQUEST) then
    if isyieldable() then
      handing_up[co] = true
      yield(REQUEST, ...)
      handing_up[co] = nil
    else
      inbox = NOT_HERE
    end
    return handed_up(co, resume(co))
  end
  return ok, first, ...
end

local function resumed(co, ...)
  if roots[co] or handing_up[co] then return false, "cannot resume non-suspended coroutine" end
  return handed_up(co, resume(co, ...))
end

local function unwrapped(co, ok, ...)
  if ok then return ... end
  if status(co) == "dead" then close(co) end
  error((...), 0)
end

env.coroutine = {
  status = status,
  create = function(call)
    return hooked(create(call))
  end,
  resume = function(co, ...)
    if type(co) ~= "thread" then error("bad argument #1 to 'resume' (coroutine expected)", 2) end
    return resumed(co, ...)
  end,
  wrap = function(call)
    local co = hooked(create(call))
    return function(...)
      return unwrapped(co, resumed(co, ...))
    end
  end,
  yield = function(...)
    if roots[running()] then error("attempt to yield from outside a coroutine", 2) end
    return yield(...)
  end,
  running = function()
    local co = running()
    return co, roots[co] or false
  end,
  isyieldable = function()
    return isyieldable() and not roots[running()]
  end,
  close = function(co)
    if roots[co] or handing_up[co] then error("cannot close a running coroutine", 2) end
    return close(co)
  end,
}

-- --- the script --------------------------------------------------------------------------------------------------------

local script

local function compile(body, name)
  local problem
  script, problem = load(body, name, "t", env)
  return problem
end

functions[0] = function(name, prompt)
  script()
  local main = rawget(env, name)
  if type(main) ~= "function" then error(MISSING, 0) end
  if prompt == nil then return nil end
  local value = main(prompt)
  return pcall(written, value) and value or nil
end

_G.debug = { traceback = false } -- looked up outside of any protection, at every call from Python
return post, advance, compile
