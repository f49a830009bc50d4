"""Fixtures for Lua scripts: a desk, a worker, and scripted agents."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from yourturn.config import connect
from yourturn.flow import script as program
from yourturn.flow.agent_step import Turn
from yourturn.flow.engine import Ended, Engine
from yourturn.strict import examine


class Host:
    """Agents say what the test wrote down for them, in turn; else that they are done."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.calls: list[tuple] = []
        self.said: list[str] = []
        self.turn: dict[str, list[Turn]] = {}
        self.meanwhile: Callable[[str], None] = lambda agent: None

    def turns(self, call):
        self.calls.append((call.path, call.agent, call.prompt))
        self.meanwhile(call.agent)
        turns = self.turn.get(call.agent)
        return turns.pop(0) if turns else Turn("done", "DONE", f"{call.agent} did it")

    def leave(self):
        pass

    def close(self, what, words):
        return words

    def say(self, text):
        self.said.append(text)

    @contextlib.contextmanager
    def fork(self, path, branches):
        yield

    def join(self, path, branches):
        pass


class Stage:
    def __init__(self, desk, worker, clock, root: Path) -> None:
        self.desk, self.worker, self.clock, self.root, self.host = desk, worker, clock, root, Host()
        self.key = ""

    def write(self, script: str) -> None:
        (self.root / "feature.lua").write_text(script)

    def begin(self, script: str, ref: str = "feature.lua") -> Ended:
        self.write(script)
        source = program.must_read(ref, self.root)
        made = self.desk.create("Run", description="Add login", workflow=ref, program={"file": source.file, "body": source.body})
        self.key = made["key"]
        return self.go()

    def body(self, lines: str) -> Ended:
        return self.begin(f"function workflow(prompt)\n{lines}\nend")

    def go(self) -> Ended:
        got = self.worker.claim_next("w", runs=True)
        assert got is not None, "nothing to do"
        return Engine(self.worker, got, self.host, self.root).go()

    @property
    def agents(self) -> list[str]:
        return [agent for _, agent, _ in self.host.calls]

    @property
    def steps(self) -> list[str]:
        return [f"{s['index']} {s['name']} {s['status']}" for s in self.desk.steps(self.key)]


@pytest.fixture
def stage(desk, open_desk, clock, tmp_path):
    made = Stage(desk, open_desk("agent:w"), clock, tmp_path)
    yield made
    assert examine(desk) == []


@pytest.fixture
def sqlite(new_desk, clock, tmp_path):
    """For what has nothing to do with the database."""
    address = new_desk("sqlite")
    with (
        contextlib.closing(connect(address, as_="human:ana", project="PROJ", clock=clock, env={})) as desk,
        contextlib.closing(connect(address, as_="agent:w", project="PROJ", clock=clock, env={})) as worker,
    ):
        yield Stage(desk, worker, clock, tmp_path)
