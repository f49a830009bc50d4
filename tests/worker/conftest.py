"""Agents as real processes."""

from __future__ import annotations

import os

import pytest

from yourturn.worker.agents import exec_agent, make
from yourturn.worker.agents.base import AgentRun
from yourturn.worker.agents.process import perform


@pytest.fixture
def go(tmp_path):
    """go(agent or shell command): the ending. The events are in go.heard, the log in go.log, the run in go.run."""

    def go(what, prompt="the brief", adapter=None, env=None, then=lambda: None, run=(), **limits):
        agent = exec_agent(what) if isinstance(what, str) else what
        fields = {"folder": str(tmp_path), "log": str(go.log), **dict(run)}
        go.run = AgentRun("PROJ-1", agent, prompt, env={**os.environ, **(env or {})}, **fields)
        go.heard = []
        return perform(adapter or make(agent), go.run, on_event=lambda said: (go.heard.append(said), then()), **limits)

    go.log = tmp_path / "logs" / "run.log"
    return go
