"""The thread that runs a script, or one branch of it, and that the engine can abandon.

A script that catches the exception that should end it, in a loop, never ends. After ROUNDS such calls the engine abandons the
thread: it blocks for good in the call that the script made, and the engine goes on without it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, NoReturn

ROUNDS = 100  #: how often a script may catch the exception that should end it, and make another call


class ScriptThread(threading.Thread):
    def __init__(self, function: Callable[[], Any], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._call: Callable[[], Any] | None = partial(copy_context().run, function)
        self._over = threading.Event()
        self.value: Any = None
        self.raised: BaseException | None = None
        self.left: BaseException | None = None  #: the exception that the script caught, if the thread was abandoned

    def run(self) -> None:
        call, self._call = self._call, None  # the Thread object may outlive the call: do not keep its data
        assert call is not None
        try:
            self.value = call()
        except BaseException as error:
            self.raised = error
        finally:
            del call
            self._over.set()

    def wait(self) -> None:
        """Block until the function has ended or the thread was abandoned."""
        while not self._over.wait(0.5) and self.is_alive():
            pass
        if self.left is None:
            self.join()

    def leave(self, script_exit: BaseException) -> NoReturn:
        """Abandon this thread: block for good. Called in the thread itself."""
        self.left = script_exit.with_traceback(None)
        self._over.set()
        while True:
            threading.Event().wait()
