"""A worker with its agents, for stories: real processes in a real folder.

An agent is a shell script that plays what was written for it: `says("PROJ-1", "first", "second")` are its messages, turn by
turn; one that begins with `$ ` is run as a command. What it was told each time is kept. `plays(…)` is the scripted
agent instead: it has sessions.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conftest import TURN
from tests.stories.conftest import Turn
from yourturn.client import Client
from yourturn.config import connect

AGENT = """
n=1
while [ -e "$CREW/told/$YOURTURN_TASK.$n" ]; do n=$((n + 1)); done
cat > "$CREW/told/$YOURTURN_TASK.$n"
says="$CREW/says/$YOURTURN_TASK.$n"
if [ -e "$says.sh" ]; then . "$says.sh"; elif [ -e "$says" ]; then cat "$says"; else echo '<promise>COMPLETE</promise>'; fi
"""


class Crew(Turn):
    def __init__(self, folder: Path, address: str) -> None:
        super().__init__(folder / "crew", address)
        self.address, self.place = address, folder
        for name in ("crew", "told", "says"):
            (folder / name).mkdir()
        (folder / "agent.sh").write_text(AGENT)
        self.env |= {"HOME": str(folder), "CREW": str(folder), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        self.desk: Client = connect(address, as_="human:ana", project="PROJ", env={})

    # --- what is there to do, and what the agents will say --------------------------------------------------------------

    def tasks(self, *titles: str, **fields: Any) -> list[str]:
        return [str(self.desk.create(title, **fields)["key"]) for title in titles]

    def says(self, key: str, *messages: str) -> None:
        for n, message in enumerate(messages, 1):
            path = self.place / "says" / f"{key}.{n}"
            if message.startswith("$ "):
                path = path.with_name(f"{path.name}.sh")
                message = message[2:]
            path.write_text(message + "\n")

    def told(self, key: str, n: int = 1) -> str:
        return (self.place / "told" / f"{key}.{n}").read_text()

    def turns(self, key: str) -> int:
        return len(list((self.place / "told").glob(f"{key}.*")))

    def config(self, text: str) -> None:
        path = self.folder / ".yourturn" / "config.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def plays(self, script: Any, more: str = "") -> None:
        """The scripted agent `coder`: a list of steps, or one per task. `more` of its configuration may follow."""
        path = self.place / "script.json"
        path.write_text(json.dumps(script))
        self.config(f'[agents.coder]\nadapter = "scripted"\nargv = ["{path}"]\n{more}')

    def repository(self) -> None:
        self.git("init", "-q", "-b", "main")
        (self.folder / "README").write_text("A project.\n")
        self.git("add", "README")
        self.git("-c", "user.name=Ana", "-c", "user.email=ana@example.com", "commit", "-qm", "Begin")

    def git(self, *words: str, folder: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words], cwd=folder or self.folder, env=self.env, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout.strip()

    # --- the worker -----------------------------------------------------------------------------------------------------

    def work(self, *words: str, exit: int = 0, agent: bool = True, env: dict[str, str] | None = None) -> Any:
        """`turn work --drain … --json`, to its end."""
        return self(*self._line(words, agent, "--drain"), exit=exit, env=env)

    @contextmanager
    def worker(self, *words: str, agent: bool = True, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
        """One that waits for more, and is stopped at the end if it still runs."""
        line = [TURN, *self._line(words, agent), "--json"]
        process = subprocess.Popen(
            line, cwd=self.folder, env=self.env | (env or {}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=30)

    def ended(self, process: subprocess.Popen[str], number: int | None = signal.SIGTERM) -> Any:
        """What it prints at its end, after a signal or by itself."""
        if number is not None:
            process.send_signal(number)
        out, err = process.communicate(timeout=30)
        assert "Traceback" not in err, err
        assert process.returncode == 0, (process.returncode, err)
        return json.loads(out)

    def _line(self, words: tuple[str, ...], agent: bool, *more: str) -> list[str]:
        command = ("--exec", f"exec sh '{self.place}/agent.sh'") if agent else ()
        return ["work", *command, *more, *words]

    # --- what came of it ------------------------------------------------------------------------------------------------

    def until(self, fits: Callable[[], Any], seconds: float = 30) -> Any:
        """Waits for it, and returns it."""
        ends = time.monotonic() + seconds
        while not (found := fits()):
            assert time.monotonic() < ends, {t["key"]: (t["state"], t["reason"]) for t in self.desk.list()}
            time.sleep(0.02)
        return found

    def states(self, *keys: str) -> dict[str, str]:
        return {task["key"]: task["state"] for task in self.desk.list() if not keys or task["key"] in keys}

    def waiting(self, key: str, kind: str) -> dict[str, Any]:
        """The question that the task waits with, once it does and nobody holds it."""
        task = self.until(lambda: (t := self.desk.show(key))["awaiting"] == kind and not t["claim"] and t)
        return next(dict(q) for q in task["questions"] if q["status"] == "pending")
