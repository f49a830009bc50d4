"""The scripted agent: a real process that asks a real desk, is parked and resumed."""

from __future__ import annotations

import json
import os
import sys
import uuid

import pytest

from yourturn.core.errors import NotFound
from yourturn.worker.agents import agent_for, make


@pytest.fixture
def play(tmp_path, go):
    """play(step, …): one run of the session. play.again() resumes it."""
    play_ = type("Play", (), {"session": str(uuid.uuid4()), "env": {}})()

    def run(*steps, resume=False, **more):
        if steps:
            (tmp_path / "script.json").write_text(
                json.dumps(steps[0] if isinstance(steps[0], dict) and "*" in steps[0] else steps)
            )
        adapter = make(agent_for("actor", {"agents": {"actor": {"adapter": "scripted", "argv": ["script.json"]}}}, tmp_path))
        env = {"YOURTURN_TASK": "PROJ-1", "YOURTURN_AGENT": "actor", "YOURTURN_ASK_WAIT": "0", **play_.env}
        fields = {"session_id": play_.session, "answer_prompt": "the answers"}
        return go(adapter.agent, adapter=adapter, env=env, run=fields, resume=resume, **more)

    run.again = lambda **more: run(resume=True, **more)
    run.state = play_
    return run


def test_steps(play, tmp_path):
    ending = play(
        {"say": "Hello {task}"},
        {"brief": "brief.txt"},
        {"write": "a/b.txt", "text": "one\n"},
        {"append": "a/b.txt", "text": "two\n"},
        {"run": "echo quiet; exit 3", "expect": 3},
        {"run": "echo loud", "loud": True},
        {"stderr": "psst"},
        {"sleep": 0},
        {"signal": {"status": "DONE"}},
        {"result": {"status": "completed"}},
        {"promise": "COMPLETE"},
    )
    assert ending.what == "done" and ending.text == 'Hello PROJ-1\nloud\n{"status": "completed"}\n<promise>COMPLETE</promise>\n'
    assert (tmp_path / "brief.txt").read_text() == "the brief"
    assert (tmp_path / "a/b.txt").read_text() == "one\ntwo\n"
    assert json.loads((tmp_path / ".agents/signals/actor.json").read_text()) == {"status": "DONE"}


def test_a_turn_ends_and_the_session_goes_on(play, tmp_path):
    assert play({"say": "one"}, {"end": True}, {"brief": "brief.txt"}, {"say": "two"}).text == "one\n"
    assert play.again().text == "two\n"
    assert (tmp_path / "brief.txt").read_text() == "the answers"
    assert play.again().text == ""


def test_a_script_per_task(play):
    script = {"PROJ-1": [{"say": "mine"}], "*": [{"say": "anybody's"}]}
    assert play(script).text == "mine\n"
    play.state.env["YOURTURN_TASK"] = "PROJ-2"
    assert play(script).text == "anybody's\n"


def test_invalid_scripts_are_reported(play):
    assert "exit code 3" in play({"crash": 3}).error
    assert play({"crash": "SIGKILL"}).cause == "killed"
    assert play({"say": "x"}, {"stubborn": True}, {"hang": True}, time_limit=0.5, grace=0.1).cause == "time"
    assert play({"child": 600}, {"say": "gone"}).text == "gone\n"
    assert len(play({"print": 2, "line": True}).text) == 2 * 2**20 + 1
    assert "not one of the known steps" in play({"dance": 1}).error
    assert play({"run": "exit 1", "expect": 0}).error


def test_a_lost_session(play):
    play({"lose": True})
    assert play.again().lost


def test_a_missing_script(tmp_path):
    with pytest.raises(NotFound, match="There is no script"):
        make(agent_for("actor", {"agents": {"actor": {"adapter": "scripted", "argv": ["script.json"]}}}, tmp_path))


def test_scripted_agent_continues_with_the_answer(play, address, open_desk, tmp_path):
    """After the resume its earlier output is still there, and no question is asked twice."""
    ana, worker = open_desk(fake=False), open_desk("agent:actor", fake=False)
    ana.create("Store")
    claim = worker.claim("PROJ-1", "w1")["claim"]
    play.state.env = {"YOURTURN_DB": address, "YOURTURN_PROJECT": "PROJ", "YOURTURN_CLAIM": claim["token"]}
    ending = play(
        {"write": "partial.txt", "text": "half"},
        {"ask": "Which store?", "options": ["sqlite", "postgres"]},
        {"append": "partial.txt", "text": " done with {answer}"},
        {"turn": ["note", "PROJ-1", "Took {answer}"], "expect": 0},
        {"turn": ["approve", "PROJ-1"], "expect": 5},
        {"promise": "COMPLETE"},
    )
    assert (ending.what, ending.text) == ("done", "Asked Q1\n")
    assert play.again().text == "", "still nobody there"
    assert [question["text"] for question in ana.inbox()] == ["Which store?"]
    ana.answer("Q1", "postgres")
    assert play.again().text == "<promise>COMPLETE</promise>\n"
    assert (tmp_path / "partial.txt").read_text() == "half done with postgres"
    task = ana.show("PROJ-1")
    assert [note["text"] for note in task["notes"]] == ["Took postgres"] and len(task["questions"]) == 1


def test_scripted_process_is_a_program(tmp_path):
    import subprocess

    (tmp_path / "s.json").write_text('[{"say": "hi"}]')
    words = [sys.executable, "-m", "yourturn.worker.agents.scripted_process", "s.json", "--session", "s1"]
    done = subprocess.run(words, cwd=tmp_path, env={**os.environ}, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, "hi\n")
