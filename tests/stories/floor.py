"""Runs that wait, as a worker leaves them: a journal, a question, and a session of a coding agent on disk."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

from tests import doubles
from tests.stories.crew import Crew
from tests.stories.test_terminal import type_in
from yourturn.client import Client
from yourturn.core.model import Who

AUTH = "Need clarification on authentication approach"
SCRIPT = 'def workflow(prompt):\n    run("architect", prompt)\n    run("coder")\n    return "all of it"\n'


class Floor:
    """A desk with runs that wait."""

    def __init__(self, crew: Crew) -> None:
        self.crew, self.desk = crew, crew.desk
        self.agent: Client = crew.desk.as_(Who("agent:coder", "agent", direct=True))
        self.bin = doubles.install(crew.place / "bin")
        self.claude = crew.place / "claude"
        self.crew.env |= {"CLAUDE_CONFIG_DIR": str(self.claude), "CODEX_HOME": str(crew.place / "codex")}
        self.crew.env["DOUBLE_PROMPTS"] = str(crew.place / "prompts")
        (crew.folder / "feature.py").write_text(SCRIPT)
        self.agents("claude")

    def agents(self, adapter: str) -> None:
        argv = f'argv = ["{self.bin / adapter}"]' if adapter in ("claude", "codex") else 'argv = ["true"]'
        names = ("architect", "coder")
        self.crew.config("".join(f'[agents.{name}]\nadapter = "{adapter}"\n{argv}\n' for name in names))

    def session(self, folder: Path, name: str = "abc-123-def") -> str:
        """One of claude, one of codex, of the same name."""
        here = self.claude / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(folder))
        here.mkdir(parents=True, exist_ok=True)
        (here / f"{name}.jsonl").write_text(json.dumps({"at": 0, "parked": None, "cost": 0.0}))
        there = self.crew.place / "codex" / "sessions"
        there.mkdir(parents=True, exist_ok=True)
        (there / f"rollout-{name}.json").write_text(json.dumps({"at": 0}))
        return name

    def begun(self, workflow: str = "feature.py", title: str = "Add login", body: str = SCRIPT) -> tuple[str, Any]:
        task = self.desk.create(title, workflow=workflow, description=title, program={"file": workflow, "body": body})
        return task["key"], self.agent.claim(task["key"], "w1")["claim"]

    def escalated(self, text: str = AUTH, kind: str = "input", **seat: Any) -> str:
        """Its second call waits for a person."""
        key, claim = self.begun()
        folder = self.crew.folder
        sits = {"agent": "coder", "folder": str(folder), "host": socket.gethostname(), "by_signal": True, **seat}
        architect = {"agent": "architect", "prompt": "Add login"}
        plan = {"status": "DONE", "summary": "a plan"}
        self.agent.record(claim, [step("1", "run", "completed", "architect", architect, result=plan)])
        waits = step(
            "2", "run", "waiting", "coder", {"agent": "coder", "prompt": None}, seat=sits, session_id=self.session(folder)
        )
        self.agent.flag(key, text, None, kind, claim=claim, step="2", steps=[waits], timeout="24h", on_timeout="stuck")  # type: ignore[arg-type]
        return key

    def paused(self, text: str = "Approve deployment to production?") -> str:
        key, claim = self.begun("deploy.lua", "Deploy", "-- nothing yet\n")
        waits = step("1", "pause", "waiting", "_checkpoint", {"text": text, "kind": "checkpoint"})
        self.agent.flag(key, text, None, "checkpoint", claim=claim, step="1", steps=[waits])  # type: ignore[arg-type]
        return key

    def changed(self) -> str:
        """Its script is not the one that it was begun with, and a person is asked about that."""
        key, claim = self.begun()
        done = step(
            "1", "run", "completed", "architect", {"agent": "architect", "prompt": "Add login"}, result={"status": "DONE"}
        )
        options = [{"id": word, "label": word} for word in ("continue", "retry", "from-1", "stop")]
        text = "feature.py was changed while it waited.\nHow should it go on?"
        self.agent.flag(
            key, text, "code_changed", "recovery", claim=claim, options=options, allow_other=True, step="1", steps=[done]
        )
        return key

    def signal(self, **said: Any) -> None:
        """The agent's own word, as it lies in its folder."""
        path = self.crew.folder / ".agents" / "signals" / "coder.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(said))

    def question(self, key: str) -> dict[str, Any]:
        (found,) = [q for q in self.desk.show(key)["questions"] if q["status"] == "pending"]
        return dict(found)

    def steps(self, key: str) -> dict[str, Any]:
        return {step["index"]: step["result"] for step in self.desk.steps(key)}

    def types(self, *words: str, keys: str = "", **more: Any) -> tuple[int, str]:
        return type_in(self.crew, *words, keys=keys, **more)


def step(path: str, name: str, status: str, agent: str | None, call: Any, **more: Any) -> dict[str, Any]:
    return {"path": path, "name": name, "status": status, "agent": agent, "call": call, **more}


def say(**said: Any) -> str:
    """What the agent is told to write, in its own session."""
    return f"!mkdir -p $YOURTURN_SIGNALS; printf '%s' '{json.dumps(said)}' > $YOURTURN_SIGNALS/$YOURTURN_AGENT.json\n"
