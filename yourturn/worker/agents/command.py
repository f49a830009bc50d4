"""Adapter for any command: the brief on standard input, the message on standard output. The exit code alone is no outcome."""

from __future__ import annotations

from .base import Agent, AgentEvent, AgentRun, Ending, Launch, Transcript, environment, killed


class CommandAgent:
    plain = True

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def session_id(self) -> str | None:
        return None

    def start(self, run: AgentRun) -> Launch:
        return Launch(run.agent.argv, environment(run), run.folder, run.prompt.encode("utf-8", "replace"))

    def resume(self, run: AgentRun) -> Launch:
        return self.start(run)  # a command has no session: the brief has the answers

    def parse(self, line: str) -> list[AgentEvent]:
        return []

    def classify(self, rc: int, transcript: Transcript) -> Ending:
        return classify_exit(rc, transcript)


def classify_exit(rc: int, transcript: Transcript) -> Ending:
    if death := killed(rc):
        return transcript.ending("retryable", death, "killed")
    if rc == 0:
        return transcript.ending("done")
    return transcript.ending("done", f"It ended with exit code {rc}. {transcript.stderr()}".strip())
