"""The same verbs for asyncio: `await desk.aio.ask(…, wait=60)`, `async for event in desk.aio.watch()`.

There is one synchronous desk; here its methods run in threads. A verb is short, so a thread of a small pool makes it, and
one that has begun is finished even if nobody awaits it any more. Waiting is long, so it holds no thread of its own: a
single one listens for changes, a second at a time, and wakes everybody who waits. Whoever is cancelled is simply no longer
woken.

The order in `wait_for` matters: listen first, look then. A change after the look is heard, one before it is seen.
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

#: How long the listening thread outlives those who wait, at most.
SLICE = 1.0
MOST = 32


class Threads:
    """What the asynchronous clients of one desk share."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MOST, "yourturn")
        self._ear = ThreadPoolExecutor(1, "yourturn-ear")
        self._heard: Future[bool] | None = None
        self._lock = Lock()

    async def run(self, function: Callable[[], Any]) -> Any:
        try:
            begun = asyncio.get_running_loop().run_in_executor(self._pool, function)
        except RuntimeError:
            raise _closed() from None
        return await begun

    def listen(self, wait: Callable[[float], bool]) -> Future[bool]:
        """Done as soon as something may have changed."""
        with self._lock:
            if self._heard is None or self._heard.done():
                try:
                    self._heard = self._ear.submit(wait, SLICE)
                except RuntimeError:
                    raise _closed() from None
            return self._heard

    def close(self) -> None:
        for threads in (self._ear, self._pool):
            threads.shutdown(cancel_futures=True)


class Aio:
    """A client whose methods are awaited."""

    def __init__(self, client: Client, threads: Threads) -> None:
        self._client = client
        self._threads = threads

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_") or not callable(getattr(type(self._client), name, None)):
            raise AttributeError(f"there is no {name} to await; ask the desk itself")
        return partial(self.in_thread, getattr(self._client, name))

    async def in_thread(self, method: Callable[..., Any], *args: Any, **fields: Any) -> Any:
        return await self._threads.run(partial(method, *args, **fields))

    async def ask(
        self, task: Named, text: str, kind: str = "input", options: Iterable[Any] = (), wait: float | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Ask a person. With `wait`, look for so many seconds whether a quick one answers."""
        found: dict[str, Any] = await self.in_thread(self._client.ask, task, text, kind, options, **fields)
        if not wait:
            return found
        try:
            return await self.wait_for(found, wait)
        except StoreTrouble as trouble:
            raise answer_unreadable(found, trouble) from None

    async def wait_for(self, question: Named, seconds: float) -> dict[str, Any]:
        """The question, answered or not, after at most so many seconds."""
        ends = time.monotonic() + seconds
        while True:
            heard = self._threads.listen(self._client.desk.wait)
            found: dict[str, Any] = await self.in_thread(self._client.wait_for, question, 0)
            left = ends - time.monotonic()
            if found["status"] != "pending" or not left > 0:
                return found
            await _woken(heard, left)

    async def watch(self, after: str | None = None, seconds: float | None = None) -> AsyncIterator[dict[str, Any]]:
        """Events as they happen; each carries the `cursor` after which to go on."""
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
        found: dict[str, Any] = await self.in_thread(self._client.close, task, reason)
        return found


async def _woken(heard: Future[bool], seconds: float) -> None:
    """Until the listening thread has heard something, at most so long."""
    loop, bell = asyncio.get_running_loop(), asyncio.Event()

    def ring(_: Future[bool]) -> None:
        try:
            loop.call_soon_threadsafe(bell.set)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    heard.add_done_callback(ring)
    try:
        async with asyncio.timeout(min(seconds, 2 * SLICE)):
            await bell.wait()
    except TimeoutError:
        return
    try:
        heard.result()
    except CancelledError:
        raise _closed() from None


def _closed() -> StoreTrouble:
    return StoreTrouble("The desk was closed while somebody waited", hint="Connect again.")
