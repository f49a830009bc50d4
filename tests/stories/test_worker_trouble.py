"""Errors of one task do not affect others, a person is notified, and agents cannot act as people."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.fixtures.command import Turn
from tests.fixtures.worker import Crew


def test_faulty_agents_do_not_disturb_others(crew: Crew) -> None:
    """Six agents that fail in six ways, beside six that do not."""
    good = crew.tasks(*(f"Healthy {n}" for n in range(6)), priority=3)
    crash, killed, loud, child = crew.tasks("Crash", "Killed", "Loud", "Child")
    hang, stubborn = crew.tasks("Hang", "Stubborn", role="slow")
    pid = crew.place / "child.pid"
    crew.plays(
        {
            crash: [{"stderr": "out of cheese"}, {"crash": 3}],
            killed: [{"crash": "SIGKILL"}],
            hang: [{"say": "Hm …"}, {"hang": True}],
            loud: [{"print": 50}, {"promise": "COMPLETE"}],
            stubborn: [{"stubborn": True}, {"hang": True}],
            child: [{"child": 600, "pid": str(pid)}, {"promise": "COMPLETE"}],
            "*": [{"sleep": 0.1}, {"promise": "COMPLETE"}],
        },
        f'[agents.slow]\nadapter = "scripted"\nargv = ["{crew.place}/script.json"]\nsilence = 1.5\n',
    )
    for key in (killed, hang, stubborn):
        crew.desk.update(key, max_retries=1)
    told = crew.work("--parallel", "4", "--turns", "2", agent=False)
    assert told["ended"] == "no task is left to take"
    assert crew.states(*good, loud, child) == dict.fromkeys((*good, loud, child), "done")
    asked = crew.waiting(crash, "escalation")
    assert "exit code 3" in asked["text"] and "out of cheese" in asked["text"]
    for key, words in ((killed, "SIGKILL"), (hang, "printed nothing"), (stubborn, "printed nothing")):
        asked = crew.waiting(key, "escalation")
        assert asked["reason"] == "retry_exhausted"
        assert words in asked["text"]
    crew.until(lambda: not Path(f"/proc/{pid.read_text()}").exists())
    assert any("more lines are only in the log file" in line["text"] for line in crew.desk.output(loud, limit=100_000))
    assert sum(file.stat().st_size for file in _logs(crew, loud)) >= 50 * 2**20
    assert {row["task"] for row in told["results"]} == set(crew.states())


def _logs(crew: Crew, key: str) -> list[Path]:
    return [file for file in crew.place.rglob("*.log") if file.parent.name == key]


ATTEMPTS = [
    "approve PROJ-1", "approve PROJ-2", "reject PROJ-2 no", "answer Q1 yes", "respond PROJ-2 yes", "cancel PROJ-1",
    "update PROJ-2 --verdict approved", "update PROJ-2 --awaiting=null", "close PROJ-2", "resolve PROJ-2",
    "--as human:ana approve PROJ-2", "--as human:ana note PROJ-1 hi", "token create mine --role admin", "user add mallory",
    "project set PROJ merge ff",
]  # fmt: skip


def test_agent_cannot_answer(crew: Crew) -> None:
    """With all variables that it was given, and without any that it can remove: exit 5, and no change."""
    mine, gate = crew.tasks("Mine", "Somebody's gate")
    crew.desk.flag(gate, "May it go live?", kind="approval")
    lines = "\n".join(f"turn {line} > /dev/null 2>> $CREW/err; echo $? >> $CREW/exits" for line in ATTEMPTS)
    crew.says(mine, f"$ {lines}\nenv | grep ^YOURTURN_ | sort > $CREW/env\necho '<promise>COMPLETE</promise>'")
    before = crew.desk.show(gate)
    crew.work()
    exits = (crew.place / "exits").read_text().split()
    assert dict(zip(ATTEMPTS, exits, strict=True)) == dict.fromkeys(ATTEMPTS, "5"), (crew.place / "err").read_text()
    assert crew.desk.show(gate) == before
    assert crew.states() == {mine: "done", gate: "human"}
    assert crew.desk.show(mine)["notes"] == []
    given = dict(line.split("=", 1) for line in (crew.place / "env").read_text().splitlines())
    assert (given["YOURTURN_TASK"], given["YOURTURN_AGENT"], given["YOURTURN_PROJECT"]) == (mine, "exec", "PROJ")
    assert given["YOURTURN_TOKEN"] and given["YOURTURN_CLAIM"] and given["YOURTURN_DB"] == crew.address
    late = crew("note", mine, "still here", exit=5, env={k: given[k] for k in ("YOURTURN_TOKEN", "YOURTURN_AGENT")})
    assert late["code"] == "not_known"  # its credential ended with its worker


def test_agent_uses_its_workers_desk(crew: Crew) -> None:
    """The worker's desk counts for its agents, whatever else the environment names."""
    key = crew.tasks("Say hello")[0]
    crew.says(key, f"$ turn note {key} hello > /dev/null && echo '<promise>COMPLETE</promise>'")
    crew.work("--db", crew.address, env={"YOURTURN_URL": "https://desk.example", "YOURTURN_WORKER": "somebody-else"})
    assert crew.state(key) == "done"
    assert [note["text"] for note in crew.desk.show(key)["notes"]] == ["hello"]


def test_no_signal_is_no_outcome(crew: Crew) -> None:
    key = crew.tasks("Say nothing")[0]
    crew.says(key, *["I looked around."] * 3)
    told = crew.work("--turns", "3")
    assert (told["results"][0]["outcome"], told["spent"]["iterations"]) == ("waiting", 3)
    asked = crew.waiting(key, "escalation")
    assert asked["reason"] == "decision_needed"
    assert asked["text"].startswith("exec had 3 turns without a signal.")
    assert "I looked around." in asked["text"]
    for way in ("`<promise>COMPLETE</promise>`", "`turn complete`", f"turn brief {key}", "docs/agents.md"):
        assert way in asked["text"]
    assert "## Once more" in crew.told(key, 2)
    crew("respond", key, "Just finish it")
    crew.work()
    assert crew.state(key) == "done"
    assert "Just finish it" in crew.told(key, 4)


def test_terminal_explains_signals_after_the_first_turn(crew: Crew) -> None:
    key = crew.tasks("Say hello")[0]
    told = crew.text("work", "--exec", "echo hello", "--drain", "--turns", "3")
    (said,) = [line for line in told.splitlines() if "ended a turn without a signal" in line]
    assert f"{key}  exec ended a turn without a signal; it gets 2 more." in said
    assert "To end a turn it has to print `<promise>COMPLETE</promise>`, or run `turn complete`." in said
    assert told.index(said) < told.index("waits for a person")
    crew("respond", key, "say it in backticks")
    again = crew.work("--turns", "1", "--exec", "cat", agent=False)  # its brief has these words as a note: that says nothing
    assert again["results"][0]["outcome"] == "waiting"


@pytest.mark.parametrize(("command", "why"), [("./missing.sh --fast", "not found"), ("./locked.sh", "may not be run")])
def test_missing_command_is_not_retried(crew: Crew, command: str, why: str) -> None:
    """It is tried once, with one question that names it; the other tasks stay for another worker."""
    (crew.folder / "locked.sh").write_text("echo no")
    first, second = crew.tasks("One", "Two")
    done = crew.run("work", "--exec", command, "--drain", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["spent"]["iterations"], len(told["results"])) == (1, 1, 1)
    assert told["ended"].startswith("exec cannot work: its command `") and why in told["ended"]
    asked = crew.waiting(first, "escalation")
    assert command.partition("/")[2] in asked["text"] and why in asked["text"] and asked["reason"] == "access_required"
    assert crew.states() == {first: "human", second: "ready"}
    crew("respond", first, "It is there now")
    crew.work()
    assert set(crew.states().values()) == {"done"}


def test_signal_counts_with_any_exit_code(crew: Crew) -> None:
    key = crew.tasks("One")[0]
    crew.work("--exec", "echo '<promise>COMPLETE</promise>'; exit 127", agent=False)
    assert crew.state(key) == "done"


def test_failed_task_stores_its_work(crew: Crew) -> None:
    """Its work is stored under a ref."""
    crew.repository()
    key = crew.tasks("Try")[0]
    crew.says(key, '$ echo half > half.txt; echo \'{"status": "failed", "summary": "It cannot be done"}\'')
    told = crew.work()
    task = crew.desk.show(key)
    assert (told["results"][0]["outcome"], task["state"]) == ("failed", "failed")
    assert "It cannot be done" in task["reason"]
    kept = crew.git("for-each-ref", "--format=%(refname)", "refs/yourturn/failed")
    assert kept in task["reason"]
    assert crew.git("show", f"{kept}:half.txt") == "half"


# --- budgets --------------------------------------------------------------------------------------------------------------


def test_budgets_of_tasks_and_turns(crew: Crew) -> None:
    keys = crew.tasks("A", "B", "C")
    told = crew.work("--budget-tasks", "1")
    assert (told["ended"], told["spent"]["tasks"]) == ("it was to take 1 and no more", 1)
    assert told["ended_code"] == "budget"
    assert crew.states() == dict(zip(keys, ("done", "ready", "ready"), strict=True))
    crew.says(keys[1], "Hm.", "Hm.", "<promise>COMPLETE</promise>")
    told = crew.work("--budget-iterations", "2")
    assert told["ended"] == "agents had 2 turns"
    assert [(row["task"], row["outcome"]) for row in told["results"]] == [(keys[1], "stopped")]
    task = crew.desk.show(keys[1])
    assert (task["state"], task["retry_count"], task["claim"]) == ("ready", 0, None)
    crew.work()
    assert set(crew.states().values()) == {"done"}


def test_budget_of_time(crew: Crew) -> None:
    key = crew.tasks("Long")[0]
    crew.plays([{"say": "on it"}, {"hang": True}])
    told = crew.work("--budget-time", "1s", agent=False)
    assert (told["ended"], told["ended_code"]) == ("the time is over (1 s)", "budget")
    task = crew.desk.show(key)
    assert (told["results"][0]["outcome"], task["state"], task["retry_count"]) == ("stopped", "ready", 0)


def test_budgets_of_cost_and_tokens(crew: Crew) -> None:
    """An agent that says what it cost: 0.1 cent and 12 tokens a turn."""
    double = Path(__file__).parents[1] / "doubles" / "claude.py"
    script = crew.place / "double.json"
    script.write_text(json.dumps([{"text": "<promise>COMPLETE</promise>"}]))
    argv = json.dumps([sys.executable, str(double)])
    crew.config(f'[agents.coder]\nadapter = "claude"\nargv = {argv}\n[agents.coder.env]\nDOUBLE_SCRIPT = "{script}"\n')
    keys = crew.tasks("A", "B", "C", "D")
    told = crew.work("--budget-cost", "0.002", agent=False)
    assert (told["ended"], told["spent"]["cost"]) == ("$0.0020 of $0.0020 are spent", pytest.approx(0.002))
    assert list(crew.states().values()) == ["done", "done", "ready", "ready"]
    told = crew.work("--budget-tokens", "12", agent=False)
    assert (told["ended"], told["spent"]["tokens"]) == ("12 of 12 tokens are spent", 12)
    assert crew.states(*keys[2:]) == {keys[2]: "done", keys[3]: "ready"}


# --- which tasks, which agent ---------------------------------------------------------------------------------------------


def test_epics_and_roles(crew: Crew) -> None:
    epic = crew.tasks("Epic", type="epic")[0]
    inside = crew.tasks("Inside", parent=epic)[0]
    outside = crew.tasks("Outside", role="tester")[0]
    other = crew.tasks("For whom it may concern")[0]
    assert [row["task"] for row in crew.work("--epic", epic)["results"]] == [inside]
    for name in ("coder", "tester"):
        (crew.place / f"{name}.json").write_text(json.dumps([{"promise": "COMPLETE"}]))
    crew.config("".join(f'[agents.{n}]\nadapter = "scripted"\nargv = ["../{n}.json"]\n' for n in ("tester", "coder")))
    crew.work(agent=False)
    done = {e["task"]: e["actor"] for e in crew.desk.history() if e["action"] == "complete"}
    assert done == {inside: "agent:exec", outside: "agent:tester", other: "agent:coder"}
    mine, whose = crew.tasks("For a tester", role="tester")[0], crew.tasks("For a coder", role="coder")[0]
    crew.work("--agent", "tester", agent=False)
    assert crew.states(mine, whose) == {mine: "done", whose: "ready"}


def test_invalid_command_lines_are_refused(here: Turn) -> None:
    for words, exit, said in [
        (("work", "--drain"), 3, "There is no agent 'coder'"),
        (("work", "--drain", "--agent", "nobody"), 3, "There is no agent 'nobody'"),
        (("work", "--drain", "--exec", " "), 2, "--exec needs a command"),
        (("work", "--drain", "--exec", ""), 2, "--exec needs a command"),
        (("work", "--drain", "--exec", "true", "--agent", "bad name!"), 6, "is not a name for an agent"),
        (("work", "--drain", "--exec", "true", "--timeout", "0"), 2, "a time above zero like 90s"),
        (("work", "--drain", "--exec", "true", "--budget-time", "0s"), 2, "a time above zero like 90s"),
        (("work", "--drain", "--exec", "true", "--budget-tasks", "0"), 2, "a whole number from 1"),
        (("work", "--drain", "--watch", "--exec", "true"), 2, "exclude each other"),
        (("work", "--drain", "--exec", "true", "--in-place", "--parallel", "2"), 2, "One checkout"),
        (("work", "--drain", "--exec", "true", "--epic", "PROJ-9"), 3, "There is no task PROJ-9"),
        (("work", "--drain", "--exec", "true", "--budget-cost", "free"), 2, "a number like 2.50"),
        (("work", "--drain", "--exec", "true", "--budget-time", "soon"), 6, "--budget-time must be a length of time"),
        (("work", "--drain", "--exec", "true", "--parallel", "0"), 2, "a whole number"),
    ]:
        assert said in here(*words, exit=exit)["message"], words
    path = here.folder / ".yourturn" / "config.toml"
    for text, exit, said in [
        ("agents = 3", 6, "not a table"),
        ("[agents.coder]", 6, "cannot be used"),
        ('[agents.coder]\nadapter = "gpt"', 6, "cannot be used"),
        ('[agents.coder]\nadapter = "scripted"\nargv = ["gone.json"]', 3, "There is no script"),
        ('[agents.coder]\nadapter = "command"\nargv = ["no-such-program"]', 3, "There is no program"),
        ('[agents.coder]\nadapter = "command"\nargv = ["true"]\nspeed = 3', 6, "unknown setting"),
        ('[agents.coder]\nadapter = "command"\nargv = ["true"]\ntimeout = "soon"', 6, "[agents.coder] timeout must be a length"),
        ('[agents.coder]\nadapter = "command"\nargv = ["true"]\nsilence = "0s"', 6, "[agents.coder] silence is not a time"),
        ('[agents.coder]\nadapter = "claude"\nargv = ["true"]\ngate = ["Bash("]', 6, "it is not a pattern"),
        ("[agents.coder", 6, "cannot be read"),
    ]:
        path.write_text(text)
        assert said in here("work", "--drain", exit=exit)["message"], text


def test_output_of_the_worker(crew: Crew) -> None:
    keys = crew.tasks("A", "B")
    crew.says(keys[1], "<promise>INPUT_NEEDED: Which\none?</promise>")
    lines = crew.text(*crew._line((), True, "--drain")).splitlines()
    assert lines[0].startswith("Worker ") and lines[0].endswith(": exec. Ctrl+C stops it.")
    assert [line.split("  ", 1)[1] for line in lines[1:5]] == [
        f"{keys[0]}  exec begins: A", f"{keys[0]}  done: finished", f"{keys[1]}  exec begins: B",
        f"{keys[1]}  waits for a person (input): Which",
    ]  # fmt: skip
    assert lines[5:] == ["Ended: no task is left to take. 1 done, 1 waiting.", "Next: turn inbox"]
    assert crew.work() == {
        "ended": "no task is left to take",
        "ended_code": "drained",
        "results": [],
        "spent": {"tasks": 0, "iterations": 0, "tokens": 0, "cost": 0.0},
    }


def test_last_retry_points_to_the_inbox(crew: Crew) -> None:
    key, again = crew.tasks("Dies", max_retries=1)[0], crew.tasks("Dies once", max_retries=2)[0]
    for one in (key, again):
        crew.says(one, "$ kill -9 $$")
    lines = crew.text(*crew._line((), True, "--drain")).splitlines()
    assert any(line.endswith("; a person is asked") for line in lines)
    assert lines[-2:] == ["Ended: no task is left to take. 1 waiting, 1 released, 1 done.", "Next: turn inbox"]


def test_missing_function_costs_no_retries(crew: Crew) -> None:
    key = crew.tasks("Call it")[0]
    crew.config('[agents.coder]\nadapter = "python"\nargv = ["no_such_module:function"]\n')
    done = crew.run("work", "--drain", "--json")
    assert (done.returncode, [row["outcome"] for row in json.loads(done.stdout)["results"]]) == (1, ["waiting"])
    asked = crew.waiting(key, "escalation")
    assert asked["reason"] == "access_required" and "no_such_module:function cannot be loaded" in asked["text"]
    assert crew.desk.show(key)["retry_count"] == 0


# --- told to stop -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_task_continues_in_the_same_session(crew: Crew, number: int) -> None:
    """The agent ends with its worker, the task costs no try, and the same session goes on in the same folder."""
    crew.repository()
    key = crew.tasks("Long work")[0]
    pid = crew.place / "pid"
    crew.plays(
        [
            {"write": "half.txt", "text": "half\n"},
            {"run": f"echo $PPID > {pid}.new && mv {pid}.new {pid} && sleep 600"},
            {"brief": "told.txt"},
            {"append": "half.txt", "text": "whole\n"},
            {"promise": "COMPLETE"},
        ]
    )
    with crew.worker(agent=False) as process:
        crew.until(pid.exists)
        told = crew.ended(process, number)
    assert told["ended"] == "it was stopped"
    assert [row["outcome"] for row in told["results"]] == ["stopped"]
    crew.until(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists())
    task = crew.desk.show(key)
    assert (task["state"], task["claim"], task["retry_count"]) == ("ready", None, 0)
    folder = crew.folder / ".yourturn" / "worktrees" / key
    assert crew.git("status", "--porcelain", folder=folder) == "?? half.txt"
    crew.work(agent=False)
    after = crew.desk.show(key)
    assert (after["state"], after["session_id"]) == ("done", task["session_id"])
    assert crew.git("show", f"{after['branch']}:half.txt") == "half\nwhole"
    assert f"Go on with {key} where you stopped" in (folder / "told.txt").read_text()


def test_second_signal_ends_the_worker_at_once(crew: Crew) -> None:
    crew.tasks("Never ends")
    pid = crew.place / "pid"
    crew.plays([{"stubborn": True}, {"run": f"echo $PPID > {pid}.new && mv {pid}.new {pid}"}, {"hang": True}])
    with crew.worker(agent=False) as process:
        crew.until(pid.exists)
        process.send_signal(signal.SIGTERM)
        with pytest.raises(Exception, match="timed out"):
            process.wait(0.5)  # the agent has five seconds to go
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(3) == 128 + signal.SIGTERM
        assert time.monotonic() - begun < 2
        crew.until(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists())


def test_signal_during_the_stop_counts(crew: Crew) -> None:
    """The worker is stopped while an agent ends its turn: the work is not repeated."""
    key = crew.tasks("Just finished")[0]
    crew.says(key, "$ trap '' TERM; until [ -s $CREW/pid ]; do :; done; kill $(cat $CREW/pid); sleep 0.4; cat $CREW/last")
    (crew.place / "last").write_text("<promise>COMPLETE</promise>")
    with crew.worker() as process:
        (crew.place / "pid").write_text(str(process.pid))
        told = crew.ended(process, None)
    assert (told["ended"], told["results"][0]["outcome"]) == ("it was stopped", "done")
    assert crew.state(key) == "done"
