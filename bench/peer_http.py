"""awaithumans, the peer of part (h): its server on SQLite, and the same round trip: create a task, complete it, poll."""

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

from .http_connection import HttpConnection

VERSION = "0.1.12"
_NUMBERS = itertools.count()
_TASK = {
    "task": "Approve?",
    "payload": {"title": "Approve?"},
    "payload_schema": {"type": "object", "properties": {"title": {"type": "string"}}},
    "response_schema": {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]},
    "timeout_seconds": 3600,
}


def installed() -> bool:
    return importlib.util.find_spec("awaithumans") is not None


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, str, int]]:
    """Start the server. Yields its port, an admin's token and the process id."""
    from .served import wait_for

    folder.mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
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
        data = json.loads(file.read_text())
        if isinstance(data, dict) and "admin_token" in data:
            return str(data["admin_token"])
    raise AssertionError((folder / "log").read_text()[-500:])


def round_trip(connection: HttpConnection) -> int:
    key = f"{os.getpid()}-{next(_NUMBERS)}"
    task = connection.json("POST", "/api/tasks", {**_TASK, "idempotency_key": key}, 201)
    connection.json("POST", f"/api/tasks/{task['id']}/complete", {"response": {"approved": True}})
    connection.json("GET", f"/api/tasks/{task['id']}/poll?timeout=1")
    return 1
