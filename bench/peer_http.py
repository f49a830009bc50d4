"""awaithumans: its server on SQLite, and the round trip that is like ours: create a task, complete it, poll."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .wire import Wire

VERSION = "0.1.12"
_NUMBERS = itertools.count()
_ASKED = {
    "task": "Approve?",
    "payload": {"title": "Approve?"},
    "payload_schema": {"type": "object", "properties": {"title": {"type": "string"}}},
    "response_schema": {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]},
    "timeout_seconds": 3600,
}


def here() -> bool:
    return importlib.util.find_spec("awaithumans") is not None


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, str, int]]:
    """Its port, its admin's token, its process."""
    from .served import wait_for

    folder.mkdir(exist_ok=True)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    command = [str(Path(sys.executable).parent / "awaithumans"), "dev", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--db-path", str(folder / "tasks.db"), "--log-level", "ERROR"]
    env = {**os.environ, "HOME": str(folder), "AWAITHUMANS_HOST": "127.0.0.1"}
    with (folder / "log").open("w") as log, subprocess.Popen(command, env=env, cwd=folder, stdout=log, stderr=log) as process:
        try:
            wait_for(port)
            yield port, _token(folder), process.pid
        finally:
            process.terminate()
            process.wait(30)


def _token(folder: Path) -> str:
    for file in folder.rglob("*.json"):
        found = json.loads(file.read_text())
        if isinstance(found, dict) and "admin_token" in found:
            return str(found["admin_token"])
    raise AssertionError((folder / "log").read_text()[-500:])


def trip(wire: Wire) -> int:
    key = f"{os.getpid()}-{next(_NUMBERS)}"
    made = wire.json("POST", "/api/tasks", {**_ASKED, "idempotency_key": key}, 201)
    wire.json("POST", f"/api/tasks/{made['id']}/complete", {"response": {"approved": True}})
    wire.json("GET", f"/api/tasks/{made['id']}/poll?timeout=1")
    return 1
