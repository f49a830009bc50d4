"""An agent that plays a script: a real process for demos and tests. `actor.py` is that process."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from pathlib import Path

from .base import Agent, Ending, Heard, Launch, Run, Said, environment
from .command import ended


class Scripted:
    plain = True

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def session_id(self) -> str | None:
        return str(uuid.uuid4())

    def start(self, run: Run) -> Launch:
        return self._launch(run)

    def resume(self, run: Run) -> Launch:
        return self._launch(run, "--resume")

    def _launch(self, run: Run, *more: str) -> Launch:
        place = Path(run.log).parent if run.log else Path(tempfile.gettempdir(), f"yourturn-actors-{os.getuid()}")
        session = run.session_id or f"{run.task}-{run.agent.name}"
        argv = (sys.executable, "-u", "-m", "yourturn.worker.agents.scripted_process", run.agent.argv[0])
        words = ("--session", session, "--place", str(place), *more)
        prompt = run.answer_prompt if more and run.answer_prompt else run.prompt
        return Launch(argv + words, environment(run), run.folder, prompt.encode("utf-8", "replace"))

    def parse(self, line: str) -> list[Said]:
        return []

    def classify(self, rc: int, heard: Heard) -> Ending:
        if rc == 1 and "No conversation found" in heard.errors:
            return heard.ending("retryable", heard.stderr(), "session_lost")
        return ended(rc, heard)
