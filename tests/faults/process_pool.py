"""A process that forks one child per operation; each child has its own connection and can be killed alone.

Reads orders from standard input, one JSON value a line, and says how the actor ended: its exit code, or the negative number
of the signal that killed it. What the actor was told by the desk, it writes into the ledger, outside any database.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_WARM = (
    "tests.faults.operations", "yourturn.config", "yourturn.core.decide", "yourturn.config.init_desk", "yourturn.desk.admin",
    "yourturn.db.failpoints", "yourturn.db.postgres", "yourturn.db.sqlite",
)  # fmt: skip
_ROOT = str(Path(__file__).parent.parent.parent)


class ProcessPool:
    """The other end: `ended = pool(order)`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.process_pool"],
            cwd=_ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __call__(self, **order: Any) -> int:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


def _act(order: dict[str, Any]) -> None:
    from tests.faults.operations import OPERATIONS
    from yourturn.config import connect, init, replied, restore
    from yourturn.core.errors import YourturnError

    os.environ["YOURTURN_FAULT"] = order["fault"]
    os.chdir(Path(order["ledger"]).parent)
    try:
        desk: Any = None
        if order["operation"] == "init":
            desk, said = init(order["address"], "PROJ", None, {"USER": "ana"})
        elif order["operation"] == "restore":
            said = restore(order["facts"]["file"], order["address"], force=True, env={"USER": "ana"})
        else:
            operation = OPERATIONS[order["operation"]]
            at = order["at"]
            desk = connect(order["address"], as_=operation.who, project="PROJ", clock=lambda: at, env={})
            said = operation.act(desk, order["facts"], order["key"])
        reply: Any = {"ok": said}
    except YourturnError as error:
        reply = {"error": f"{error.code}: {error}"}
    file = os.open(order["ledger"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, (json.dumps(reply) + "\n").encode())
    os.close(file)
    replied()
    if desk is not None:
        desk.close()


def main() -> None:
    for module in _WARM:
        import_module(module)
    gc.freeze()  # what is shared with the children stays shared
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                _act(json.loads(line))
                os._exit(0)
            finally:
                os._exit(70)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
