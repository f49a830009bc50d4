-- Sandbox of a Lua script: its environment, and the one way to Python. The Python side is lua.py.
--
-- A script runs in a coroutine, in an environment of its own. A durable function yields a request, as text, to the caller of
-- resume(); if that is the script itself, its resume() passes the request up, until it reaches Python. Python executes the
-- request, puts the answer, again as text, into the inbox, and resumes the coroutine. If the run has to wait, the coroutine is
-- dropped, so there is no error that a pcall could catch. No Python object enters the sandbox, except `tick`, which the script
-- cannot reach.
--
-- The functions of the libraries are kept in locals first, and methods of strings are not used, because a script may change
-- its environment. library.lua fills the environment with the libraries.

local tick, COUNT, library = ...

local assert, error, load, next, pcall, rawequal, rawget, select, setmetatable, tostring, type =
  assert, error, load, next, pcall, rawequal, rawget, select, setmetatable, tostring, type
local create, resume, yield, running, isyieldable, close, status =
  coroutine.create, coroutine.resume, coroutine.yield, coroutine.running, coroutine.isyieldable, coroutine.close, coroutine.status
local byte, cut, find, format, gsub = string.byte, string.sub, string.find, string.format, string.gsub
local concat, pack, math_type, huge, utf8_len = table.concat, table.pack, math.type, math.huge, utf8.len
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

-- --- requests ----------------------------------------------------------------------------------------------------------

local inbox, printed = nil, {}
local functions, threads, roots = {}, {}, setmetatable({}, WEAK)
local handing_up = setmetatable({}, WEAK)

local function read()
  return assert(load(inbox, "=answer", "t", {}))()
end

local NO_WAIT = "nothing that waits can be called in a metamethod, or in a function that string.gsub or load calls"
local NOT_HERE = format("return false, %q", NO_WAIT)

local function request(name, ...)
  if not isyieldable() then return false, name .. "(): " .. NO_WAIT end
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

-- --- coroutines of the script's own ------------------------------------------------------------------------------------

local function handed_up(co, ok, first, ...)
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

load(library, "=sandbox", "t")(env, text_of)

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

local globals = _G
for name in next, globals do
  globals[name] = nil
end
globals.debug = false -- looked for at every call from Python, where no memory can be had
return post, advance, compile
