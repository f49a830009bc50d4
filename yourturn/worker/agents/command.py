"""Any command: the brief on standard input, what it prints is its message. The exit code alone says nothing."""

from __future__ import annotations

from .base import Agent, Ending, Heard, Launch, Run, Said, environment, killed


class Command:
    plain = True

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def session_id(self) -> str | None:
        return None

    def start(self, run: Run) -> Launch:
        return Launch(run.agent.argv, environment(run), run.folder, run.prompt.encode("utf-8", "replace"))

    def resume(self, run: Run) -> Launch:
        return self.start(run)  # it has no memory: the brief holds the answers

    def parse(self, line: str) -> list[Said]:
        return []

    def classify(self, rc: int, heard: Heard) -> Ending:
        return ended(rc, heard)


def ended(rc: int, heard: Heard) -> Ending:
    if death := killed(rc):
        return heard.ending("retryable", death, "killed")
    if rc == 0:
        return heard.ending("done")
    return heard.ending("done", f"It ended with exit code {rc}. {heard.stderr()}".strip())
