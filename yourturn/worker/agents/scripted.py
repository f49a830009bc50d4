"""Adapter for scripted agents, for demos and tests: a real process, `scripted_process.py`, plays a script."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from pathlib import Path

from .base import Agent, AgentEvent, AgentRun, Ending, Launch, Transcript, environment
from .command import classify_exit


class Scripted:
    plain = True

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def session_id(self) -> str | None:
        return str(uuid.uuid4())

    def start(self, run: AgentRun) -> Launch:
        return self._launch(run)

    def resume(self, run: AgentRun) -> Launch:
        return self._launch(run, "--resume")

    def _launch(self, run: AgentRun, *more: str) -> Launch:
        folder = Path(run.log).parent if run.log else Path(tempfile.gettempdir(), f"yourturn-actors-{os.getuid()}")
        session = run.session_id or f"{run.task}-{run.agent.name}"
        argv = (sys.executable, "-u", "-m", "yourturn.worker.agents.scripted_process", run.agent.argv[0])
        words = ("--session", session, "--place", str(folder), *more)
        prompt = run.answer_prompt if more and run.answer_prompt else run.prompt
        return Launch(argv + words, environment(run), run.folder, prompt.encode("utf-8", "replace"))

    def parse(self, line: str) -> list[AgentEvent]:
        return []

    def classify(self, rc: int, transcript: Transcript) -> Ending:
        if rc == 1 and "No conversation found" in transcript.errors:
            return transcript.ending("retryable", transcript.stderr(), "session_lost")
        return classify_exit(rc, transcript)
