"""Threads in which requests are worked on while the event loop goes on. An executor of Python's own costs three times as much
for each hop: it makes a lock and a condition for every job, and two futures that watch each other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class Threads:
    def __init__(self, most: int) -> None:
        self._most = most
        self._threads: list[threading.Thread] = []
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()

    async def run(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """What has begun is finished, even if nobody waits for it any more."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        if len(self._threads) < self._most:
            thread = threading.Thread(target=self._work, name=f"yourturn-http-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._jobs.put((loop, future, function, args, named))
        return await future

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            loop, future, function, args, named = job
            result = error = None
            try:
                if not future.cancelled():
                    result = function(*args, **named)
            except BaseException as wrong:
                error = wrong
            try:
                loop.call_soon_threadsafe(_tell, future, result, error)
            except RuntimeError:  # the loop is closed: nobody waits
                pass
            del job, future, function, args, named, result, error

    def close(self) -> None:
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(10)


def _tell(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if isinstance(error, StopIteration):  # a future cannot carry it, and whoever awaits it would wait for ever
        wrong = RuntimeError("a handler ended with StopIteration")
        wrong.__cause__ = error
        error = wrong
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
