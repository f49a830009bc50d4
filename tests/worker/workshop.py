"""A desk with workers, and agents that are shell scripts or doubles, for tests of the worker.

A worker runs in the test's process and ends when nothing is left to claim, or it is a process of its own that can be killed.
Agents are always real processes. A client in the future has a clock that is ahead; no test sleeps.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import doubles
from tests.conftest import TURN
from yourturn.client import Client
from yourturn.config import connect
from yourturn.worker.agents import Agent, exec_agent
from yourturn.worker.progress import ProgressDisplay
from yourturn.worker.worker import Worker

PATIENCE = 30.0
DONE = "<promise>COMPLETE</promise>"


def until(look: Callable[[], Any], what: str = "it", seconds: float = PATIENCE) -> Any:
    """The first true value that `look` returns."""
    ends = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < ends, f"waited {seconds:.0f} s in vain for {what}"
        time.sleep(0.02)
    return found


def ahead(seconds: float) -> Callable[[], int]:
    """A clock that is ahead."""
    return lambda: time.time_ns() // 1000 + round(seconds * 1_000_000)


def gone(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


class Shop:
    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        self.root = folder / "root"
        self.root.mkdir()
        self.ledger = folder / "ledger"
        self.ledger.touch()
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
        self.env |= {
            "USER": "ana", "HOME": str(folder), "SHOP": str(folder), "LEDGER": str(self.ledger), "YOURTURN_ASK_WAIT": "0",
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
            "PATH": f"{Path(TURN).parent}{os.pathsep}{os.environ['PATH']}",
        }  # fmt: skip
        self.opened: list[Client] = []
        self.desk = self.person()

    def person(self, later: float = 0.0) -> Client:
        self.opened.append(connect(self.address, as_="human:ana", project="PROJ", env={}, clock=ahead(later) if later else None))
        return self.opened[-1]

    def close(self) -> None:
        for client in self.opened:
            client.close()

    # --- work -----------------------------------------------------------------------------------------------------------

    def task(self, title: str = "Add login", **fields: Any) -> str:
        return str(self.desk.create(title, **fields)["key"])

    def show(self, key: str) -> dict[str, Any]:
        return self.desk.show(key)

    def question(self, key: str) -> dict[str, Any]:
        """The open question of a task."""
        found: dict[str, Any]
        (found,) = [q for q in self.show(key)["questions"] if q["status"] == "pending"]
        return found

    def asked(self, key: str) -> dict[str, Any]:
        """Wait for an open question."""
        until(lambda: self.show(key)["awaiting"], "a question")
        return self.question(key)

    def done(self) -> list[str]:
        return self.ledger.read_text().splitlines()

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def go(self) -> None:
        (self.folder / "go").touch()

    # --- workers ----------------------------------------------------------------------------------------------------------

    def script(self, text: str) -> Agent:
        """A shell script as the agent `coder`. `wait_for NAME` waits for a file in the shop's folder."""
        path = self.folder / "agent.sh"
        path.write_text('wait_for() { until [ -e "$SHOP/$1" ]; do sleep 0.02; done; }\n' + text)
        return exec_agent(f'. "{path}"', "coder")

    def worker(self, agent: Agent, *, later: float = 0.0, **more: Any) -> Worker:
        fields = {"root": self.root, "logs": self.folder / "logs", "drain": True, "env": self.env, **more}
        self.out = io.StringIO()
        desk = self.person(later)
        return Worker(desk, {agent.name: agent}, ProgressDisplay(self.out), self.address, default=agent.name, **fields)

    def drain(self, agent: Agent, **more: Any) -> list[tuple[str, str]]:
        worker = self.worker(agent, **more)
        worker.run()
        return [(key, result.what) for key, result in worker.results]

    @contextmanager
    def draining(self, agent: Agent, **more: Any) -> Iterator[Worker]:
        """A worker in a thread, which has ended by itself at the end of the block."""
        worker = self.worker(agent, **more)
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        try:
            yield worker
            thread.join(PATIENCE)
            assert not thread.is_alive(), self.out.getvalue()
        finally:
            worker.stop()
            thread.join(PATIENCE)

    @contextmanager
    def process(self, agent: Agent, *more: str) -> Iterator[subprocess.Popen[bytes]]:
        """`turn work` as a process, with a script as its agent."""
        words = [TURN, "--db", self.address, "work", "--exec", agent.argv[-1], "--agent", "coder", *more]
        with (self.folder / "worker.out").open("wb") as out:
            found = subprocess.Popen(
                words, cwd=self.root, env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        try:
            yield found
        finally:
            if found.poll() is None:
                found.send_signal(signal.SIGKILL)
            found.wait()

    # --- git ------------------------------------------------------------------------------------------------------------

    def git(self, *words: str, at: Path | None = None) -> str:
        who = ("-c", "user.name=Ana", "-c", "user.email=ana@example.com")
        done = subprocess.run(
            ["git", *who, *words], cwd=at or self.root, env=self.env, capture_output=True, text=True, check=True
        )
        return done.stdout

    def repository(self) -> None:
        self.git("init", "-q", "-b", "main")
        (self.root / "README").write_text("A project.\n")
        self.git("add", "README")
        self.git("commit", "-qm", "Begin")


class Doubles(Shop):
    """A shop with doubles of coding agents."""

    def __init__(self, folder: Path, address: str) -> None:
        super().__init__(folder, address)
        self.bin = doubles.install(folder / "bin")

    def plays(self, adapter: str, *steps: Any, before: str = "", after: str = "", **more: Any) -> Agent:
        """The agent `coder`. `before`: lines of shell at the start; `after`: the end of its command line."""
        (self.folder / "steps.json").write_text(json.dumps(steps))
        program = self.folder / f"{adapter}-here"
        program.write_text(f'#!/bin/sh\n{before}\nexec "{self.bin / adapter}" "$@" {after}\n')
        program.chmod(0o755)
        env = {
            "DOUBLE_SCRIPT": str(self.folder / "steps.json"), "DOUBLE_PROMPTS": str(self.folder / "prompts"),
            "DOUBLE_HEARD": str(self.folder / "heard"),
            "CLAUDE_CONFIG_DIR": str(self.folder / "claude"), "CODEX_HOME": str(self.folder / "codex"),
        }  # fmt: skip
        fields: dict[str, Any] = {"allowed_tools": ("Bash", "Write"), **more}
        return Agent("coder", adapter, (str(program),), env=env, **fields)

    def steps(self, *steps: Any) -> None:
        (self.folder / "steps.json").write_text(json.dumps(steps))

    def prompts(self) -> list[str | None]:
        """Its prompt at each start; None: it was resumed without a prompt."""
        return [json.loads(line) for line in self.lines("prompts")]

    def heard(self) -> str:
        """All inputs of the model after the first brief."""
        return "\n\n".join(json.loads(line) for line in self.lines("heard")[1:])

    def log(self, key: str) -> str:
        return "\n".join(path.read_text() for path in sorted((self.folder / "logs" / key).glob("*.log")))

    def forget(self, adapter: str) -> None:
        """Delete all its sessions."""
        for path in (self.folder / adapter).rglob("*.json*"):
            path.unlink()


TINY = f"{sys.executable} -S {Path(doubles.HERE, 'tiny_mcp.py')}"
