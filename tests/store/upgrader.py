"""Processes that upgrade a desk and are killed with SIGKILL after so many statements. Run as a program.

Each line of input names an address and a number. A child is forked for it, which upgrades that desk and kills itself after
that statement, counting begin and commit; never if the number is 0. The answer is how many statements it said, 0 if it was
killed, or what went wrong. Forked, because starting Python anew for every statement would take most of the time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import contextmanager
from typing import Any

from yourturn.config import open_store
from yourturn.db import schema


def upgrade(address: str, after: int) -> int:
    store = open_store(address)
    begin, said = store.begin, 0

    def count() -> None:
        nonlocal said
        said += 1
        if said == after:
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def counted(what: str = "", *, write: bool = True) -> Any:
        with begin(what, write=write) as run:
            count()

            def told(*args: Any) -> Any:
                done = run(*args)
                count()
                return done

            yield told
        count()

    store.begin = counted  # type: ignore[method-assign]
    schema.create(store, upgrade=True)
    store.close()
    return said


def in_a_child(address: str, after: int) -> Any:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said: Any = upgrade(address, after)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return 0 if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL else json.loads(answer)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(in_a_child(*json.loads(line))), flush=True)
