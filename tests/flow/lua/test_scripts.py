"""Lua scripts: replayed by the same journal, and suspended past any pcall."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from yourturn.core.errors import NotFound
from yourturn.flow import lua
from yourturn.flow import script as program
from yourturn.flow.agent_step import Turn
from yourturn.flow.engine import Ended
from yourturn.flow.script import BadScript

NEEDS = Turn("ask", "NEEDS_HUMAN", "Which port?", "input")

# --- scripts as people write them ----------------------------------------------------------------------------------------

GATE = """
function workflow(prompt)
  run("planner", prompt)
  run("builder")

  local verdict = pause("Ship it?")
  if not verdict.continue then
    return stuck(verdict.reason)
  end

  run("shipper")
end
"""


def test_a_script_waits_and_goes_on(stage):
    assert stage.begin(GATE).what == "waiting"
    assert stage.steps == ["1 run completed", "2 run completed", "3 pause waiting"]
    stage.desk.approve(stage.key, "go")
    assert stage.go().what == "done"
    assert stage.host.calls == [("1", "planner", "Add login"), ("2", "builder", None), ("4", "shipper", None)]
    assert stage.desk.show(stage.key)["state"] == "done"


def test_a_person_stops_it(stage):
    stage.begin(GATE)
    stage.desk.reject(stage.key, "not on a Friday")
    assert stage.go() == Ended("stuck", "not on a Friday")
    assert "shipper" not in stage.agents


def test_an_agent_that_needs_a_person_is_one_step(stage):
    stage.host.turn["builder"] = [NEEDS]
    assert stage.begin(GATE) == Ended("waiting", "waits for a person (input): Which port?")
    stage.desk.answer(stage.key, "8080")
    assert stage.go().words == "waits for a person (checkpoint): Ship it?"
    assert stage.agents == ["planner", "builder", "builder"]
    assert stage.steps == ["1 run completed", "2 run completed", "3 pause waiting"]


def test_silence_is_stuck_after_a_day(stage):
    stage.begin(GATE)
    stage.clock.advance(hours=25)
    assert stage.worker.claim_next("w", runs=True) is None
    assert stage.desk.show(stage.key)["state"] == "failed"


def test_config_beside_the_functions(stage):
    stage.begin('config({ human_timeout = "2d", notify_on_waiting = { "desktop" } })\n' + GATE)
    stage.clock.advance(hours=25)
    stage.desk.approve(stage.key)
    assert stage.go().what == "done"


ALONE = """
function workflow(prompt)
  local said = run("robot", { human = false })
  if said.status == "NEEDS_HUMAN" then
    return stuck("It should not have asked: " .. said.reason)
  end
end
"""


def test_an_agent_that_may_not_ask(sqlite):
    sqlite.host.turn["robot"] = [NEEDS]
    assert sqlite.begin(ALONE) == Ended("stuck", "It should not have asked: Which port?")
    assert sqlite.begin(ALONE).what == "done"


LOOP = """
function workflow(prompt)
  for round = 1, 10 do
    run("builder", prompt, { timeout = "1h" })
    local said = run("critic", "round " .. round)
    if said.status == "APPROVED" then break end
  end
  return run("closer")
end
"""


def test_a_loop_of_reviews(sqlite):
    sqlite.host.turn["critic"] = [Turn("said", "CHANGES", "no"), Turn("said", "CHANGES", "no"), Turn("said", "APPROVED", "yes")]
    assert sqlite.begin(LOOP) == Ended("done", "closer did it")
    assert sqlite.agents == ["builder", "critic"] * 3 + ["closer"]


def test_the_example_of_the_docs(sqlite):
    page = Path(__file__).parents[3] / "docs" / "lua.md"
    (script,) = re.findall(r"^```lua\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    sqlite.host.turn["critic"] = [Turn("said", "CHANGES", "no"), Turn("said", "APPROVED", "yes")]
    assert sqlite.begin(script).words == "waits for a person (checkpoint): Ship it?"
    sqlite.desk.approve(sqlite.key)
    assert sqlite.go().what == "done"
    assert sqlite.agents == ["planner", "builder", "critic", "builder", "critic", "shipper"]


def test_what_a_script_gets_back(sqlite):
    sqlite.host.turn["a"] = [Turn("said", "ODD", "hm", context={"files": ["x", "y"], "n": 3, "deep": {"no": None, "yes": True}})]
    lines = """
      local said = run("a")
      assert(said.status == "ODD" and said.message == "hm" and said.summary == "" and said.reason == "")
      assert(#said.files == 2 and said.files[2] == "y" and math.type(said.n) == "integer")
      assert(said.deep.no == nil and said.deep.yes == true)
      local verdict = pause("Sure?")
      assert(verdict.continue == true and verdict.message == 'say "yes"\\n\\\\')
      assert(verdict.reason == "" and verdict.by == "human:ana")
      local answer = ask("Which?", { "red", "blue" }, { urgency = "high" })
      assert(answer.value == "blue" and answer.text == "blue" and answer.approved and answer.by == "human:ana")
      local no = ask("May I?", { kind = "approval" })
      assert(not no.approved and no.verdict == "rejected" and no.text == "no")
      local seconds, text = now()
      assert(math.type(seconds) == "integer" and text:match("^%d+-%d+-%d+T"))
      assert(#uuid() == 36 and random() < 1)
      for i = 1, 9 do local n = math.random(3) assert(n >= 1 and n <= 3 and math.type(n) == "integer") end
      return "übers Ende 😀"
    """
    assert sqlite.body(lines).what == "waiting"
    sqlite.desk.approve(sqlite.key, 'say "yes"\n\\')
    assert sqlite.go().what == "waiting"
    sqlite.desk.answer(sqlite.key, "blue")
    assert sqlite.go().what == "waiting"
    sqlite.desk.reject(sqlite.key, "no")
    assert sqlite.go() == Ended("done", "übers Ende 😀")


def test_sleep_in_lua(stage):
    assert stage.body('sleep("2d") log("awake", 1, {}) return run("a")').what == "asleep"
    stage.clock.advance(days=2)
    assert stage.go().what == "done"
    assert stage.host.said == ["awake 1 table: 1"]


def test_another_function_of_the_file(sqlite):
    assert sqlite.begin("function release(prompt) return 'released: ' .. prompt end", "feature.lua:release").words == (
        "released: Add login"
    )
    with pytest.raises(BadScript, match=r"feature.lua has no function other\(prompt\)"):
        program.must_read("feature.lua:other", sqlite.root)
    with pytest.raises(NotFound):
        program.must_read("nowhere.lua", sqlite.root)


# --- steps ---------------------------------------------------------------------------------------------------------------


def test_a_step_is_done_once(stage):
    lines = """
      function count(by) total = (total or 0) + by.by return { total = total, list = { 1, 2.5, "x" } } end
      local got = step(count, { by = 2 })
      pause("Go on?")
      return "total " .. got.total .. ", " .. tostring(total) .. ", " .. #got.list
    """
    stage.body(lines)
    stage.desk.approve(stage.key)
    assert stage.go().words == "total 2, nil, 3", "the second time, the function is not called"
    assert stage.desk.steps(stage.key)[0]["call"] == {"function": "count", "args": [{"by": 2}]}


def test_a_step_that_fails_is_the_same_on_every_replay(sqlite):
    lines = """
      local ok, why = pcall(step, function() error("no network") end)
      local verdict = pause("Go on?")
      return tostring(ok) .. ": " .. why
    """
    sqlite.body(lines)
    sqlite.desk.approve(sqlite.key)
    assert sqlite.go().words == "false: LuaError: line 3: no network"


@pytest.mark.parametrize("call", ["run('a')", "pause('x')", "stuck('x')", "log('x')", "step(type, 1)", "now()", "math.random()"])
def test_nothing_durable_inside_a_step(sqlite, call):
    ended = sqlite.body(f"step(function() {call} end)")
    assert ended.what == "failed"
    assert "cannot be called inside a step()" in ended.words
    assert sqlite.agents == []


# --- no pcall swallows a pause -------------------------------------------------------------------------------------------

SWALLOWERS = {
    "pcall": 'pcall(function() pause("x") end)',
    "pcall itself": 'pcall(pause, "x")',
    "xpcall": 'xpcall(pause, function() return "caught" end, "x")',
    "nested": "pcall(pcall, pcall, pause, 'x')",
    "wrap": 'pcall(coroutine.wrap(function() pause("x") end))',
    "resume": 'coroutine.resume(coroutine.create(function() pcall(pause, "x") end))',
    "deep": 'local function f(n) if n == 0 then pause("x") else coroutine.wrap(f)(n - 1) end end pcall(f, 9)',
    "metamethod": 'local t = setmetatable({}, { __index = function() pause("x") end }) pcall(function() return t.x end)',
    "close": 'do local x <close> = setmetatable({}, { __close = function() pcall(pause, "x") end }) end',
    "sort": 'pcall(table.sort, { 1, 2 }, function() pause("x") end)',
    "loop": 'for _ in coroutine.wrap(function() pcall(pause, "x") coroutine.yield(1) end) do break end',
}


@pytest.mark.parametrize("name", SWALLOWERS)
def test_pcall_does_not_catch_a_pause(sqlite, name):
    assert sqlite.body(f'{SWALLOWERS[name]} run("after")').what == "waiting"
    assert sqlite.agents == [] and sqlite.steps == ["1 pause waiting"]
    sqlite.desk.approve(sqlite.key)
    assert sqlite.go().what == "done"
    assert sqlite.agents == ["after"]


@pytest.mark.parametrize(("call", "what"), [("stuck, 'enough'", "stuck"), ("sleep, '1d'", "asleep")])
def test_pcall_does_not_catch_other_exits(sqlite, call, what):
    assert sqlite.body(f'pcall({call}) run("after")').what == what
    assert sqlite.agents == []


def test_a_generator_may_call_agents(sqlite):
    lines = """
      local results = coroutine.wrap(function()
        for i = 1, 3 do coroutine.yield(run("a" .. i).summary) end
      end)
      local all = {}
      for one in results do all[#all + 1] = one end
      return table.concat(all, ", ")
    """
    assert sqlite.body(lines).words == "a1 did it, a2 did it, a3 did it"


NOWHERE = "nothing that waits can be called in a metamethod, or in a function that string.gsub or load calls"


@pytest.mark.parametrize(
    "lines",
    [
        'string.gsub("x", "x", function() pause("x") end)',
        'string.gsub("x", "x", function() coroutine.wrap(function() pause("x") end)() end)',
        'tostring(setmetatable({}, { __tostring = function() pause("x") end }))',
        'assert(load(function() pause("x") end))',
    ],
)
def test_waiting_in_a_metamethod_is_refused(sqlite, lines):
    ended = sqlite.body(lines)
    assert ended.what == "failed" and NOWHERE in ended.words


def test_errors_can_be_caught(sqlite):
    lines = """
      local function words(...) local ok, said = pcall(...) assert(not ok) print(said) end
      words(function() run("") end)
      words(function() run("a", { timout = 5 }) end)
      words(function() run("a", { 1, 2 }) end)
      words(function() config({ human_timeot = 5 }) end)
      words(function() pause() end)
      words(function() pause("x", { claim = "mine" }) end)
      words(function() run("a", "\\255") end)
      words(function() run("a", 0/0) end)
      words(function() run(print) end)
      words(function() local t = {} t.t = t step(type, t) end)
      words(function() step(type, { 1, x = 2 }) end)
      words(function() step(5) end)
      words(function() parallel({ 5 }) end)
      words(function() sleep("a while") end)
      run("after")
    """
    assert sqlite.body(lines).what == "done"
    assert sqlite.agents == ["after"]
    assert all(line.startswith(f"feature.lua:{number}: ") for number, line in enumerate(sqlite.host.said, 4)), sqlite.host.said
    for word, line in zip(
        [
            "name of an agent",
            "'timout'",
            "in one table",
            "'human_timeot'",
            "needs a text",
            "'claim'",
            "UTF-8",
            "finite",
            "not a function",
            "too deeply",
            "without gaps",
            "needs a function",
            "needs functions",
            "a length of time",
        ],
        sqlite.host.said,
        strict=True,
    ):
        assert word in line


# --- side by side --------------------------------------------------------------------------------------------------------

SIDES = """
function workflow(prompt)
  local got = parallel({
    function() return { name = run("left").summary, call = function() return "kept" end } end,
    function() return pause("Right?").message end,
    function() run("slow") return run("slower").summary end,
  })
  return got[1].name .. ", " .. got[1].call() .. ", " .. got[2] .. ", " .. got[3]
end
"""


def test_branches_wait_by_themselves(stage):
    assert stage.begin(SIDES).what == "waiting"
    assert sorted(stage.agents) == ["left", "slow", "slower"]
    stage.desk.approve(stage.key, "right")
    assert stage.go() == Ended("done", "left did it, kept, right, slower did it")
    assert sorted(stage.agents) == ["left", "slow", "slower"]


def test_agents_of_branches_work_at_the_same_time(sqlite):
    both = threading.Barrier(2, timeout=30)
    sqlite.host.meanwhile = lambda agent: both.wait() and None
    assert sqlite.body('parallel({ function() run("a") end, function() run("b") end }) return "met"').words == "met"


def test_an_error_in_a_branch_names_its_line(sqlite):
    lines = 'local ok, why = pcall(parallel, {\nfunction() error("left") end,\nfunction() run("b") end })\nreturn why'
    assert sqlite.body(lines).words == "feature.lua:3: left"
    assert sqlite.agents == ["b"]


# --- changed scripts -----------------------------------------------------------------------------------------------------


def test_a_changed_script_is_asked_about(stage):
    stage.begin(GATE)
    stage.desk.approve(stage.key, "go")
    stage.write(GATE.replace('run("builder")', 'run("painter")'))
    ended = stage.go()
    assert ended.what == "waiting" and "recovery" in ended.words
    (q,) = stage.desk.inbox()
    assert q["text"].splitlines()[1] == "Step 2 was run('builder'), and now is run('painter'). How should it go on?"
    stage.desk.answer(q["id"], "continue")
    assert stage.go().what == "waiting", "the call directly before the pause is another one: it is asked again"
    stage.desk.approve(stage.key, "still")
    assert stage.go().what == "done"
    assert stage.agents == ["planner", "builder", "painter", "shipper"]


def test_comments_and_other_files_do_not_matter(stage):
    stage.begin(GATE)
    stage.desk.approve(stage.key)
    stage.write("-- changed\nlocal function help() end\n" + GATE)
    assert stage.go().what == "done"


def test_broken_script_asks_for_recovery(sqlite):
    sqlite.begin(GATE)
    sqlite.desk.approve(sqlite.key)
    sqlite.write(GATE + "end")
    ended = sqlite.go()
    assert ended.what == "waiting" and "recovery" in ended.words
    assert "line 13: <eof> expected near 'end'" in sqlite.desk.inbox()[0]["text"]
    sqlite.write(GATE)
    sqlite.desk.answer(sqlite.desk.inbox()[0]["id"], "retry")
    assert sqlite.go().what == "done"


def test_failed_run_continues_where_it_failed(sqlite):
    assert sqlite.body('run("a")\nerror("oh")').what == "failed"
    sqlite.write('function workflow() run("a") return run("b") end')
    sqlite.desk.answer(sqlite.key, "retry")
    assert sqlite.go().what == "done"


# --- what is wrong with a script -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("local t\nreturn t.x", "line 3: attempt to index a nil value (local 't')"),
        ("nothing()", "line 2: attempt to call a nil value (global 'nothing')"),
        ("error('oh')", "line 2: oh"),
        ("error('oh', 0)", "oh"),
        ("error({ code = 5 })", '{"code":5}'),
        ("error()", "an error without words"),
        ("error(setmetatable({}, { __tostring = function() return 'mine' end }))", "mine"),
        ("error({ print })", "an error that is a table"),
        ("coroutine.wrap(function()\nerror('deep') end)()", "line 3: deep"),
        ("local x <close> = setmetatable({}, { __close = function() error('closing') end })", "line 2: closing"),
    ],
)
def test_an_error_fails_the_run_with_its_line(sqlite, lines, words):
    assert sqlite.body(lines) == Ended("failed", f"feature.lua: {words}", person=True)
    assert words in sqlite.desk.inbox()[0]["text"]
    sqlite.desk.answer(sqlite.key, "stop")
    assert sqlite.go().what == "failed" and words in sqlite.desk.show(sqlite.key)["reason"]


@pytest.mark.parametrize(
    ("body", "message", "reason"),
    [
        ("function workflow(", "feature.lua is not Lua", "line 1: <name> or '...' expected near <eof>"),
        ("x = 1\ny = = 2", "feature.lua is not Lua", "line 2: unexpected symbol near '='"),
        ("x = 1", "feature.lua has no function workflow(prompt)", ""),
        ("workflow = 5", "feature.lua has no function workflow(prompt)", ""),
        ("local t\nt.x = 1", "feature.lua cannot be loaded", "line 2: attempt to index a nil value (local 't')"),
        ("while true do pcall(error) end", "feature.lua does not come to an end while it is loaded", ""),
    ],
)
def test_invalid_script_names_its_line(body, message, reason):
    with pytest.raises(BadScript) as error:
        lua.load(body, "feature.lua")
    assert (error.value.message, error.value.reason) == (message, reason)


def test_a_first_line_for_the_shell():
    assert lua.load("#!/usr/bin/env turn run\nfunction workflow() end", "f.lua")


def test_calls_beside_the_functions_are_durable_too(sqlite):
    script = 'local plan = run("planner").summary\nfunction workflow(p) pause(plan) return run("a") end'
    assert sqlite.begin(script).words == "waits for a person (checkpoint): planner did it"
    sqlite.desk.approve(sqlite.key)
    assert sqlite.go().what == "done"
    assert sqlite.agents == ["planner", "a"]


@pytest.mark.parametrize("script", [
    'run("planner")',
    'config({ human_timeout = 1 })\nif pause("Go on?").continue then run("planner", ask("Which?").text) end',
    'for i = 1, 3 do run("planner") end\nsleep(uuid() .. now() .. random())',
])  # fmt: skip
def test_a_script_without_its_function_calls_no_agent(sqlite, script):
    with pytest.raises(BadScript, match=r"feature.lua has no function workflow\(prompt\)"):
        sqlite.begin(script)
    assert sqlite.agents == []
    sqlite.begin(GATE)
    sqlite.desk.approve(sqlite.key)
    sqlite.write(script)
    assert "feature.lua has no function workflow(prompt)" in sqlite.go().words and sqlite.agents == ["planner", "builder"]


@pytest.mark.parametrize("script", [
    'while true do run("planner") end', 'stuck("no")', 'error(run("planner").summary.x.y)',
    'local n = run("planner")\nfunction workflow(p) end',
])  # fmt: skip
def test_errors_after_placeholders_are_left_to_the_run(script):
    assert lua.load(script, "f.lua")


def test_numbers_are_exact(sqlite):
    lines = """
      local function same(a, b, c, d, e) return { a, b, c, d, e } end
      local got = step(same, 3, 3.0, 0.1, -9223372036854775807, 1e300)
      for i, kind in ipairs({ "integer", "float", "float", "integer", "float" }) do assert(math.type(got[i]) == kind, i) end
      assert(got[3] == 0.1 and got[4] == -9223372036854775807 and got[5] == 1e300)
    """
    assert sqlite.body(lines).what == "done"
