"""The client for asyncio: `await desk.aio.ask(…, wait=60)`, `async for event in desk.aio.watch()`.

The desk is synchronous; its methods run in threads. A move is short: a thread of a small pool executes it, and completes it even
if the awaiting coroutine is cancelled. A wait is long and does not occupy a thread: one listener thread waits for changes, one
second at a time, and wakes all waiting coroutines. A cancelled coroutine is not woken.

`wait_for` starts to listen before it reads. A later change wakes it; an earlier one is in what it reads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..core.errors import StoreTrouble
from .commands import answer_unreadable
from .refs import Named

if TYPE_CHECKING:
    from . import Client

#: Longest wait of the listener thread, which may outlive the waiting coroutines by that much (s).
SLICE = 1.0
MAX_THREADS = 32


class Threads:
    """The threads that the asynchronous clients of one desk share."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MAX_THREADS, "yourturn")
        self._listener = ThreadPoolExecutor(1, "yourturn-listener")
        self._change: Future[bool] | None = None
        self._lock = Lock()

    async def run(self, function: Callable[[], Any]) -> Any:
        try:
            future = asyncio.get_running_loop().run_in_executor(self._pool, function)
        except RuntimeError:
            raise _closed() from None
        return await future

    def listen(self, wait: Callable[[float], bool]) -> Future[bool]:
        """A future that completes when the desk may have changed, or after SLICE."""
        with self._lock:
            if self._change is None or self._change.done():
                try:
                    self._change = self._listener.submit(wait, SLICE)
                except RuntimeError:
                    raise _closed() from None
            return self._change

    def close(self) -> None:
        for threads in (self._listener, self._pool):
            threads.shutdown(cancel_futures=True)


class Aio:
    """A client whose methods are coroutines."""

    def __init__(self, client: Client, threads: Threads) -> None:
        self._client = client
        self._threads = threads

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_") or not callable(getattr(type(self._client), name, None)):
            raise AttributeError(f"no awaitable method {name!r}; see the methods of Client")
        return partial(self.in_thread, getattr(self._client, name))

    async def in_thread(self, method: Callable[..., Any], *args: Any, **fields: Any) -> Any:
        return await self._threads.run(partial(method, *args, **fields))

    async def ask(
        self, task: Named, text: str, kind: str = "input", options: Iterable[Any] = (), wait: float | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Ask a person. With `wait`, wait up to so many seconds for the answer."""
        question: dict[str, Any] = await self.in_thread(self._client.ask, task, text, kind, options, **fields)
        if not wait:
            return question
        try:
            return await self.wait_for(question, wait)
        except StoreTrouble as trouble:
            raise answer_unreadable(question, trouble) from None

    async def wait_for(self, question: Named, seconds: float) -> dict[str, Any]:
        """The question, as soon as it is closed or after so many seconds."""
        ends = time.monotonic() + seconds
        while True:
            change = self._threads.listen(self._client.desk.wait)
            reply: dict[str, Any] = await self.in_thread(self._client.wait_for, question, 0)
            left = ends - time.monotonic()
            if reply["status"] != "pending" or not left > 0:
                return reply
            await _wait_for_change(change, left)

    async def watch(self, after: str | None = None, seconds: float | None = None) -> AsyncIterator[dict[str, Any]]:
        """New events as they are recorded. Each has a `cursor`, from which a later watch continues."""
        cursor = after if after is not None else await self.in_thread(self._client.desk_cursor)
        ends = None if seconds is None else time.monotonic() + seconds
        while True:
            left = SLICE if ends is None else ends - time.monotonic()
            stream = self._client.watch(cursor, min(SLICE, left))
            while (event := await self.in_thread(next, stream, None)) is not None:
                cursor = event["cursor"]
                yield event
            if left <= SLICE and ends is not None:
                return

    async def close(self, task: Named | None = None, reason: str = "") -> dict[str, Any] | None:
        """Close a task. Without one, close the desk itself."""
        if task is None:
            return await asyncio.to_thread(self._client.close)
        reply: dict[str, Any] = await self.in_thread(self._client.close, task, reason)
        return reply


async def _wait_for_change(change: Future[bool], seconds: float) -> None:
    """Wait until the listener thread reports a change, at most so long. Raises StoreTrouble if the desk is closed."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def wake(_: Future[bool]) -> None:
        try:
            loop.call_soon_threadsafe(done.set)
        except RuntimeError:  # the loop is closed, so no coroutine waits
            pass

    change.add_done_callback(wake)
    try:
        async with asyncio.timeout(min(seconds, 2 * SLICE)):
            await done.wait()
    except TimeoutError:
        return
    try:
        change.result()
    except CancelledError:
        raise _closed() from None


def _closed() -> StoreTrouble:
    return StoreTrouble("The desk was closed during a wait", hint="Connect again.")
