"""What happens, told to everybody who watches: one reader of the event log for each process, however many watch.

A thread waits for events and reads them, many at a time. Each is put into words once. Watchers with the same wishes are a
group: what they are told is one piece of bytes that all of them share. The first event after a silence goes out at once;
under load there are pauses, longer the more are watching, and what happens in a pause goes out together. It goes out in a
round: to a few watchers, then whatever else waits for the loop, then to a few more; the next round begins when this one is
over. A watcher who does not read what it is sent fills up its queue and is cut off; nobody waits for it. It comes back with
the id of the last event that it has seen, and goes on from there.

*Joining.* Who comes back is told from the log what it has missed, while what happens meanwhile is kept for it. Both may
tell of the same events; their numbers say which. And what the others are about to be told may lie before what it has seen:
so all of that is looked up first, and it hears of it from the log or not at all.

An event of the log may be several to a watcher (a question was asked, a status changed, and the event itself). All but the
last have ids of the form `cursor:n`, so that who is cut off between them goes on between them.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ..client import serialize
from ..core.errors import Invalid, StoreTrouble
from ..desk.desk import Desk

#: What a watcher may have waiting, in bytes; and seconds between two signs of life.
QUEUE, BEAT = 1_000_000, 15.0
#: The pause for each watcher, and the longest.
EACH, LONGEST = 0.0003, 0.4
#: Watchers who are told before the loop turns.
SLICE = 16


class Frame(NamedTuple):
    name: str
    data: bytes


class Told(NamedTuple):
    """One event of the log, in words."""

    seq: int
    cursor: str
    task: str | None
    frames: tuple[Frame, ...]


class Wish(NamedTuple):
    """What a watcher wants to hear."""

    project: str = ""
    task: str = ""
    only: frozenset[str] = frozenset()
    log: bool = False  #: the log's own events and nothing made of them

    def wants(self, told: Told) -> bool:
        if self.task:
            return told.task == self.task
        return not self.project or (told.task or "").rpartition("-")[0] == self.project

    def text(self, told: Told, skip: int = 0) -> bytes:
        """The frames of an event, from one on."""
        if not self.wants(told):
            return b""
        out, last = [], len(told.frames) - 1
        for at, frame in enumerate(told.frames):
            if at < skip or (self.log and at != last) or (self.only and frame.name not in self.only):
                continue
            name = "log" if self.log else frame.name
            number = told.cursor if at == last else f"{told.cursor}:{at}"
            out.append(b"id: %s\nevent: %s\ndata: %s\n\n" % (number.encode(), name.encode(), frame.data))
        return b"".join(out)


Words = Callable[[dict[str, Any]], Iterable[tuple[str, Any]]]


class Watcher:
    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self.queue: deque[bytes] = deque()
        self.size = 0
        self.bell = asyncio.Event()
        self.gone = False  #: no more will come
        self.cut = False  #: because it was too slow
        self.kept: list[Told] | None = None  #: what happened while it was joining
        self.known: set[int] = set()  #: numbers of events that the log told it, and the hub may tell again
        self.until = 0.0
        self.task: asyncio.Task[Any] | None = None

    def forget(self) -> None:
        """The reading thread is never a minute behind."""
        if time.monotonic() > self.until:
            self.known = set()

    def put(self, text: bytes) -> None:
        if not text or self.gone:
            return
        self.queue.append(text)
        self.size += len(text)
        if self.size > QUEUE:
            self.end(cut=True)
        self.bell.set()

    def end(self, cut: bool = False) -> None:
        self.gone, self.cut = True, self.cut or cut
        self.bell.set()
        if cut and self.task is not None:
            self.task.cancel()

    async def texts(self) -> AsyncIterator[bytes]:
        """What there is, as many together as wait; now and then a comment, so that the line stays open. A browser's page does not
        hear comments: who asks for `beat` gets an event of that name, and knows from its absence that the line is dead."""
        while not self.gone:
            if not self.queue:
                self.bell.clear()
                try:
                    async with asyncio.timeout(BEAT):
                        await self.bell.wait()
                except TimeoutError:
                    yield b"event: beat\ndata: {}\n\n" if "beat" in self.wish.only else b": still here\n\n"
                    continue
            text = b"".join(self.queue)
            self.queue.clear()
            self.size = 0
            if text:
                yield text


class Hub:
    """The events of one workspace."""

    def __init__(self, desk: Desk, words: Words | None = None) -> None:
        self.desk = desk
        self._words: Words = words or (lambda event: ())
        self._watchers: dict[Wish, set[Watcher]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._waiting: list[Told] = []
        self._next = 0.0
        self._telling: Iterator[int] | None = None
        self._due: asyncio.TimerHandle | None = None
        self._lock = threading.Lock()
        self._changed: set[asyncio.Event] = set()
        self.cursor = ""

    @property
    def count(self) -> int:
        return sum(map(len, self._watchers.values()))

    # --- the thread -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read. In the event loop that the watchers live in; blocks for one query."""
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self.cursor = self.desk.cursor()
            self._thread = threading.Thread(target=self._read, args=(self.cursor,), name="yourturn-hub", daemon=True)
            self._thread.start()

    def _read(self, cursor: str) -> None:
        assert self._loop is not None
        while not self._stop.is_set():
            try:
                for found in self.desk.batches(cursor, 1.0):
                    told = self.told(found)
                    cursor = found[-1][0]
                    self._loop.call_soon_threadsafe(self._hear, told)
                    if self._stop.is_set():
                        return
            except StoreTrouble:  # the database is away: it comes back, and the cursor is still good
                self._stop.wait(0.5)
            except RuntimeError:  # the loop is closed
                return

    def told(self, found: list[tuple[str, Any]]) -> list[Told]:
        events = serialize.events([event for _, event in found], self._keys)
        out = []
        for (cursor, _), event in zip(found, events, strict=True):
            made = [*self._words(event), (event["action"], {**event, "cursor": cursor})]
            frames = tuple(Frame(name, serialize.dumps(data).encode()) for name, data in made)
            out.append(Told(event["seq"], cursor, event["task"], frames))
        return out

    def _keys(self, numbers: set[int]) -> dict[int, str]:
        return self.desk.look(lambda r: r.keys(numbers))

    # --- the loop ---------------------------------------------------------------------------------------------------

    def _hear(self, told: list[Told]) -> None:
        """Now if nothing was said lately; else with whatever else comes in the pause, or while the last is still being told."""
        self.cursor = told[-1].cursor
        for bell in self._changed:
            bell.set()
        self._waiting += told
        if self._telling is None and self._due is None:
            self._soon()

    def _soon(self) -> None:
        assert self._loop is not None
        left = self._next - time.monotonic()
        if left > 0:
            self._due = self._loop.call_later(left, self._tell)
        else:
            self._tell()

    def _tell(self) -> None:
        told, self._waiting, self._due = self._waiting, [], None
        self._next = time.monotonic() + min(LONGEST, EACH * self.count)
        self._telling = self._round(told, [(wish, list(group)) for wish, group in self._watchers.items()])
        self._go_on()

    def _go_on(self) -> None:
        """A few more, and the loop turns before the next ones: who asks something meanwhile does not wait for all of them."""
        assert self._loop is not None and self._telling is not None
        if next(self._telling, None) is not None:
            self._loop.call_soon(self._go_on)
            return
        self._telling = None
        if self._waiting:
            self._soon()

    def _round(self, told: list[Told], groups: list[tuple[Wish, list[Watcher]]]) -> Iterator[int]:
        """Tells whoever watched when it began. Who came since then looks it up."""
        count = 0
        for wish, group in groups:
            text: bytes | None = None
            for watcher in group:
                if watcher.kept is not None:
                    watcher.kept += told
                elif watcher.known:
                    watcher.put(b"".join(wish.text(one) for one in told if one.seq not in watcher.known))
                    watcher.forget()
                else:
                    if text is None:
                        text = b"".join(map(wish.text, told))
                    watcher.put(text)
                count += 1
                if count % SLICE == 0:
                    yield count

    # --- watching ---------------------------------------------------------------------------------------------------

    async def watch(self, wish: Wish, after: str = "", run: Any = None) -> AsyncGenerator[bytes, None]:
        """Pieces of a stream. `after` is the id of the last event that was seen; `run` looks into the log, in a thread."""
        self.start()
        cursor, skip, seq = parse_id(after)
        watcher = Watcher(wish)
        watcher.task = asyncio.current_task()
        group = self._watchers.setdefault(wish, set())
        group.add(watcher)
        try:
            watcher.known.update(one.seq for one in self._waiting)
            if cursor:
                watcher.kept, at = [], self.cursor
                yield b"retry: 2000\n\n"
                while True:
                    found, at = await run(self.desk.events, at)
                    if not found:
                        break
                    watcher.known.update(event.seq for _, event in found)
                while True:
                    found, cursor = await run(self.desk.events, cursor)
                    if not found:
                        break
                    told = await run(self.told, found)
                    watcher.known.update(one.seq for one in told)
                    text = b"".join(wish.text(one, skip if one.seq == seq else 0) for one in told)
                    if text:
                        yield text
                kept, watcher.kept = watcher.kept, None
                watcher.put(b"".join(wish.text(one) for one in kept if one.seq not in watcher.known))
                watcher.until = time.monotonic() + 60
            else:
                watcher.until = time.monotonic() + 60
                yield b"retry: 2000\nid: %s\n\n" % self.cursor.encode()
            async for text in watcher.texts():
                yield text
        finally:
            group.discard(watcher)
            if not group:
                self._watchers.pop(wish, None)

    async def changed(self, seconds: float) -> bool:
        """Until something happens, at most so long."""
        self.start()
        bell = asyncio.Event()
        self._changed.add(bell)
        try:
            async with asyncio.timeout(seconds):
                await bell.wait()
            return True
        except TimeoutError:
            return False
        finally:
            self._changed.discard(bell)

    def close(self) -> None:
        """Everybody's stream ends well. In the loop."""
        self._stop.set()
        for group in list(self._watchers.values()):
            for watcher in list(group):
                watcher.end()
        for bell in self._changed:
            bell.set()

    def join(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)


def parse_id(given: str) -> tuple[str, int, int]:
    """A cursor, how many frames of its event were seen, and the event's number; the cursor is before it if not all were."""
    if not given:
        return "", 0, 0
    cursor, _, at = given.partition(":")
    parts = cursor.split(".")
    if len(parts) != 3 or not all(p.isascii() and p.isdigit() and len(p) < 19 for p in parts) or not (at or "0").isdigit():
        raise Invalid(f"{given[:40]!a} is no id of an event", hint="Use one that an event came with.")
    if not at:
        return cursor, 0, 0
    seq = int(parts[2])
    return f"{parts[0]}.{parts[1]}.{max(0, seq - 1)}", int(at[:6]) + 1, seq
