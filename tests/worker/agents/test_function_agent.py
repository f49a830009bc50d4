"""Python functions as agents."""

from __future__ import annotations

import pytest

from yourturn.worker.agents import Agent
from yourturn.worker.agents.base import Activity

FUNCTIONS = """
import os, time
def text(run): print("a print"); return f"{run.task} {run.prompt} {os.getcwd() == run.folder} {run.env['YOURTURN_TASK']}"
def result(run): run.say("nearly there"); return {"status": "completed", "summary": "ok"}
def nothing(run): pass
async def later(run): return "awaited"
def wrong(run): return 3
def fails(run): raise ValueError("no coffee")
def leaves(run): raise SystemExit(4)
def dies(run): os.abort()
def hangs(run): print("begun", flush=True); time.sleep(600)
x = 3
"""


@pytest.mark.parametrize(
    ("name", "what", "text", "error"),
    [
        ("text", "done", "PROJ-1 the brief True PROJ-1", ""),
        ("result", "done", '{"status": "completed", "summary": "ok"}', ""),
        ("nothing", "done", "", ""),
        ("later", "done", "awaited", ""),
        ("wrong", "failed", "", "returned a int"),
        ("fails", "failed", "", "ValueError: no coffee"),
        ("leaves", "failed", "", "sys.exit(4)"),
        ("dies", "retryable", "", "SIGABRT"),
        ("missing", "failed", "", "cannot be loaded"),
        ("x", "failed", "", "not a function"),
    ],
)
def test_results_of_a_python_function(go, tmp_path, monkeypatch, name, what, text, error):
    (tmp_path / "my_agent.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    ending = go(Agent("coder", "python", (f"my_agent:{name}",)), env={"YOURTURN_TASK": "PROJ-1"})
    assert (ending.what, ending.text) == (what, text)
    assert error in ending.error
    if name == "text":
        assert "a print" in go.log.read_text()
    if name == "result":
        assert any(isinstance(said, Activity) and said.text == "nearly there" for said in go.heard)
    if name == "fails":
        assert "Traceback" in go.log.read_text()


def test_a_python_function_that_hangs_is_ended(go, tmp_path, monkeypatch):
    (tmp_path / "my_agent.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    assert go(Agent("coder", "python", ("my_agent:hangs",)), time_limit=0.5).cause == "time"
