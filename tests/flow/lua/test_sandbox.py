"""The Lua sandbox: isolation, determinism, and interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from subprocess import PIPE, STDOUT

import pytest
from lupa import lua54

from tests.conftest import TURN
from yourturn.flow import lua
from yourturn.flow.agent_step import Turn
from yourturn.flow.engine import Ended
from yourturn.flow.script import BadScript


def shut_in(lines: str) -> None:
    """Run lines in the sandbox, while a script is loaded. What goes wrong is raised."""
    lua.load(f"{lines}\nfunction workflow() end", "feature.lua")


# --- the same every time -------------------------------------------------------------------------------------------------

ORDER = """
function workflow(prompt)
  local t = {}
  for i = 1, 200 do t["key" .. (i * 7919 % 200)] = i end
  t[3], t[1], t[2.5], t[true], t[false] = 1, 1, 1, 1, 1
  local keys, again = {}, {}
  for key in pairs(t) do keys[#keys + 1] = tostring(key) end
  local key = next(t)
  while key ~= nil do again[#again + 1] = tostring(key) key = next(t, key) end
  assert(table.concat(keys, " ") == table.concat(again, " "))
  local pile = {}
  for i = 1, 500 do pile[i] = { size = i % 7, number = i } end
  table.sort(pile, function(a, b) return a.size < b.size end)
  for i = 1, #pile do pile[i] = pile[i].size .. "-" .. pile[i].number end
  return table.concat(keys, " ") .. table.concat(pile, " ") .. tostring({}) .. string.format("%s", print)
end
"""

ONE = """
import sys
from yourturn.flow import lua
machine = lua.Machine(sys.stdin.read(), "f.lua", lambda: False)
segment = machine.segment(0, lua._values("workflow", "x"), 0)
print(segment.what, segment.first)
"""


def test_the_order_of_keys_is_the_same_in_every_process():
    said = {
        subprocess.run([sys.executable, "-c", ONE], input=ORDER, capture_output=True, text=True, check=True).stdout
        for _ in range(3)
    }
    assert len(said) == 1
    (text,) = said
    assert text.startswith('done ["1 2.5 3 key0 key1 key10 key100 key101'), text[:100]
    assert text.endswith('table: 1function: 2"]\n')
    piles = text.split("true")[1].split("table")[0].split()
    assert piles == sorted(piles, key=lambda each: [int(n) for n in each.split("-")]), "equals stay as they were"


def test_a_table_can_be_emptied_while_it_is_walked():
    walk = "local t, n = { a = 1, b = 2, c = 3 }, 0 for k in pairs(t) do"
    shut_in(f"{walk} t[k], n = nil, n + 1 end assert(n == 3 and next(t) == nil)")
    shut_in(f"{walk} t.b, n = nil, n + 1 end assert(n == 2)")
    own = "setmetatable({}, { __pairs = function() return ipairs({ 5 }) end })"
    shut_in(f"for _, v in pairs({own}) do assert(v == 5) end")


def test_random_comes_from_the_journal(sqlite):
    lines = 'local a = math.random() .. " " .. math.random(100) .. " " .. math.random(5, 6) pause("x") return a'
    sqlite.body(lines)
    first = [s["result"] for s in sqlite.desk.steps(sqlite.key) if s["name"] == "random"]
    sqlite.desk.approve(sqlite.key)
    assert sqlite.go().words.startswith(f"{first[0]:.13g}"[:12])
    assert len(first) == 3


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("math.randomseed(42)", "the same on every replay"),
        ("math.random(1.5)", "whole numbers"),
        ("math.random(5, 1)", "from 5 to 1"),
        ("for k in pairs({ [{}] = 1, [{}] = 2 }) do end", "have no order"),
        ("string.format('%p', {})", "the same on every replay"),
        ("os.time()", "there is no os in a workflow"),
        ("local x = collectgarbage('count')", "there is no collectgarbage in a workflow"),
        ("setmetatable({}, { __gc = print })", "__gc is not available"),
        ("coroutine.yield()", "outside a coroutine"),
        ("table.sort({ 1, 'x' })", "attempt to compare"),
        ("string.format('%d', 'x')", "number expected, got string"),
        ("string.rep('x', -1 >> 1)", "resulting string too large"),
        ("pairs(nil)", "table expected, got nil"),
    ],
)
def test_non_deterministic_functions_are_refused(lines, words):
    with pytest.raises(BadScript) as error:
        shut_in(f"local x = 1\n{lines}")
    assert error.value.reason.startswith("line 2: ") and words in error.value.reason


def test_prints_are_shown_to_the_watcher_once(sqlite, capfd):
    lines = 'print("one", 1, nil) run("a") print("two") pause("x") print("three\\nfour")'
    sqlite.begin(f'print("loading")\nfunction workflow(p) {lines} end')
    sqlite.desk.approve(sqlite.key)
    assert sqlite.go().what == "done"
    assert sqlite.host.said == ["loading", "one 1 nil", "two", "three", "four"]
    assert sqlite.steps == ["1 run completed", "2 pause completed"]
    assert capfd.readouterr() == ("", "")


def test_printing_inside_a_step_and_before_an_error(sqlite):
    sqlite.body('step(function() print("in") end) print("last words") error("oh")')
    assert sqlite.host.said == ["in", "last words"]


# --- shut in -------------------------------------------------------------------------------------------------------------

GONE = ["os", "io", "package", "require", "dofile", "loadfile", "debug", "collectgarbage", "python", "warn", "jit"]


@pytest.mark.parametrize("name", GONE)
def test_removed_functions(name):
    shut_in(f"assert({name} == nil and _G.{name} == nil and _ENV.{name} == nil and load('return {name}')() == nil)")


def test_available_functions():
    shut_in("""
      local known = {}
      for name in ([[_G _VERSION ask assert config coroutine error getmetatable ipairs load log math next now pairs parallel
        pause pcall print random rawequal rawget rawlen rawset run select setmetatable sleep step string stuck table tonumber
        tostring type utf8 uuid xpcall]]):gmatch("%S+") do known[name] = true end
      for name in pairs(_G) do assert(known[name], name) known[name] = nil end
      assert(next(known) == nil)
      local seen = {}
      local function walk(value)
        assert(type(value) ~= "userdata")
        if seen[value] then return end
        if type(value) == "table" then
          seen[value] = true
          for key, item in pairs(value) do walk(key) walk(item) end
          walk(getmetatable(value))
        end
      end
      walk(_G) walk(getmetatable(""))
      assert(getmetatable("").__index == string and string.dump == nil)
      for _, call in pairs({ run, pause, print, tostring }) do
        assert(getmetatable(call) == nil and not pcall(function() return call.__globals__ end))
      end
    """)


def test_no_bytecode():
    chunk = lua54.LuaRuntime(encoding=None).eval("string.dump(function() return 7 end)")
    code = "".join(f"\\{byte:03}" for byte in chunk)
    for how in (
        f'"{code}"',
        f'"{code}", "x", "b"',
        f'"{code}", "x", "bt"',
        f'"{code}", "x", "bt", _G',
        f'(function() return "{code}" end)',
    ):
        shut_in(f"local call, why = load({how}) assert(not call and why:find('binary'))")
    shut_in(r"""
      assert(not load("return 1", "x", "b"))
      assert(load("return 1 + 1")() == 2) assert(load("return x", "x", "t", { x = 5 })() == 5)
      assert(load("y = 6")() == nil and y == 6)
    """)
    with pytest.raises(BadScript, match="is not Lua") as error:
        lua.load("\x1bLua", "f.lua")
    assert "binary" in error.value.reason


def test_changed_environment_affects_only_the_script(sqlite):
    lines = """
      string.format, string.gsub, table.concat, table.unpack, math.type, utf8.len = nil
      getmetatable("").__index = nil
      pcall, error, type, select, next, rawget = nil
      coroutine.yield = function() end
      setmetatable(_G, { __index = function(_, name) while true do end end, __newindex = function() while true do end end })
      run("a", 'with "quotes"')
      return ask("Which?", { "x" }).text
    """
    assert sqlite.body(lines).what == "waiting"
    sqlite.desk.answer(sqlite.key, "x")
    assert sqlite.go() == Ended("done", "x")
    assert sqlite.host.calls == [("1", "a", 'with "quotes"')]


def test_another_coroutine_cannot_be_answered_for(sqlite):
    lines = """
      local main = coroutine.running()
      local inner = coroutine.create(function() return run("inner").status end)
      local out = parallel({
        function() return select(2, coroutine.resume(inner)) end,
        function() run("b") return select(2, coroutine.resume(main)) end,
      })
      assert(not coroutine.isyieldable() and select(2, coroutine.running()) == true)
      return out[1] .. ", " .. out[2]
    """
    assert sqlite.body(lines).words == "DONE, cannot resume non-suspended coroutine"


@pytest.mark.parametrize(
    "lines",
    [
        "local s = 'x' while true do s = s .. s end",
        "string.rep('x', 1 << 33)",
        "local t = {} for i = 1, 1 << 40 do t[i] = i end",
        "local t = {} for i = 1, 1 << 40 do t = { t } end",
        "local function f() return 1 + f() end f()",
        "local function f() return coroutine.wrap(f)() end f()",
        "local t = {} while true do t[#t + 1] = coroutine.create(print) end",
        "table.unpack({}, 1, 1 << 30)",
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end local x = t.x",
        "for i = 1, 1 << 40 do print(('x'):rep(1000)) end",
    ],
)
def test_memory_and_cpu_bombs_are_stopped(sqlite, monkeypatch, lines):
    """Whatever a script fills, it fails by itself; and if it catches that, it can go on."""
    monkeypatch.setattr(lua, "MEMORY", 8 * 1024 * 1024)
    ended = sqlite.body(lines)
    assert ended.what == "failed"
    assert "not enough memory" in ended.words or "overflow" in ended.words or "too " in ended.words, ended
    assert sqlite.body(f'pcall(function() {lines} end) run("a")').what in ("done", "failed")


def test_iterated_tables_are_collected(sqlite):
    assert sqlite.body("for i = 1, 200000 do next({ i, tostring(i) }) end return 'walked'") == Ended("done", "walked")


def test_an_answer_that_does_not_fit_into_a_full_memory(sqlite, monkeypatch):
    """Lua would end the whole process, if it were refused memory for a value from outside."""
    monkeypatch.setattr(lua, "MEMORY", 4 * 1024 * 1024)
    sqlite.host.turn["big"] = [Turn("said", "BIG", "x" * 900_000) for _ in range(5)]
    lines = """
      local t, reserve = {}, ("x"):rep(200000)
      pcall(function() while true do t[#t + 1] = {} end end)
      pcall(function() while true do t = { t } end end)
      reserve = nil
      local ok, why = pcall(run, "big")
      t = nil
      return tostring(ok) .. ", " .. why .. ", " .. run("big").status
    """
    assert sqlite.body(lines) == Ended("done", "false, not enough memory, BIG")


# --- stopping ------------------------------------------------------------------------------------------------------------

ENDLESS = {
    "loop": "while true do end",
    "pcall": "while true do pcall(function() while true do end end) end",
    "xpcall": "while true do xpcall(function() while true do end end, function() while true do end end) end",
    "coroutine": "while true do pcall(coroutine.wrap(function() while true do end end)) end",
    "coroutines": "while true do coroutine.wrap(function() end)() end",
    "close": "local x <close> = setmetatable({}, { __close = function() while true do end end }) while true do end",
    "tostring": "error(setmetatable({}, { __tostring = function() while true do end end }))",
    "step": "step(function() while true do end end)",
    "branches": "parallel({ function() while true do end end, function() while true do end end })",
    "gsub": "string.gsub('xx', 'x', function() while true do end end)",
    "sort": "while true do table.sort({ 3, 1, 2 }) end",
    "move": "table.move({}, 1, 1 << 60, 2)",
    "errors": "while true do pcall(run) end",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_script_without_end_can_be_stopped(sqlite, monkeypatch, name):
    """The stop comes at the third look at it, which is in the middle."""

    class Late(threading.Event):
        looks = 0

        def is_set(self):
            self.looks += 1
            return self.looks > 3

    monkeypatch.setattr(lua, "COUNT", 10_000)
    sqlite.host.stop = Late()
    lines = ENDLESS[name]
    assert sqlite.body(lines if name == "step" else f"local s = step(type, 1) {lines}").what == "stopped"
    assert sqlite.desk.show(sqlite.key)["state"] == "ready"


INTERRUPTED = """
import os, signal
from yourturn.flow import lua

class Interrupting:
    def __lt__(self, checks):
        if checks == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return False

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it
lua.LOAD_CHECKS = Interrupting()
try:
    lua.load("while true do pcall(function() while true do end end) end", "f.lua")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_reaches_a_script_that_loads():
    """Ctrl-C in the terminal where `turn run` loads a script that does not come to an end."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


def test_stopping_worker_abandons_an_endless_script(tmp_path):
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "USER": "ana"}
    subprocess.run([TURN, "init"], cwd=tmp_path, env=env, capture_output=True, check=True)
    loop = "while true do pcall(function() while true do end end) end"
    (tmp_path / "loop.lua").write_text(f"function workflow() log('looping') {loop} end")
    with subprocess.Popen([TURN, "run", "loop.lua"], cwd=tmp_path, env=env, stdout=PIPE, stderr=STDOUT, text=True) as process:
        assert process.stdout is not None
        while "looping" not in (line := process.stdout.readline()):
            assert line, "it has ended"
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[0]
    assert process.returncode == 7
    assert "stopped: it continues there next time" in said
