"""The thread in which a script runs, or one branch of it, and which can be left behind.

A script that catches what leaves it, in a loop, would never end. After some rounds its thread is left where it is: it stays in
the call that it made, for good, and the engine goes on without it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, NoReturn

ROUNDS = 100  #: times that a script may catch what leaves it, and call on


class ScriptThread(threading.Thread):
    def __init__(self, function: Callable[[], Any], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._call: Callable[[], Any] | None = partial(copy_context().run, function)
        self._over = threading.Event()
        self.value: Any = None
        self.raised: BaseException | None = None
        self.left: BaseException | None = None  #: what it caught when it was left behind

    def run(self) -> None:
        call, self._call = self._call, None  # others may remember the thread longer than what it did
        assert call is not None
        try:
            self.value = call()
        except BaseException as error:
            self.raised = error
        finally:
            del call
            self._over.set()

    def wait(self) -> None:
        """Until it has ended, or was left behind."""
        while not self._over.wait(0.5) and self.is_alive():
            pass
        if self.left is None:
            self.join()

    def leave(self, way_out: BaseException) -> NoReturn:
        """Stay here. Called in the thread itself."""
        self.left = way_out.with_traceback(None)
        self._over.set()
        while True:
            threading.Event().wait()
