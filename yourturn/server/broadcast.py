"""Broadcasts the event log of one workspace to all watchers (server-sent events), with one reader per process.

A thread waits for events, reads them in batches and renders each once. Watchers with the same filter form a group and share the
rendered bytes. After a quiet time the first event is sent at once. Under load a pause follows each round of sending, longer with
more watchers, and events of the pause are sent together. A round sends to a few watchers, yields to the event loop, and goes on;
the next round starts after it. A watcher that does not read fills its queue and is disconnected, so that it delays no other. It
reconnects with the id of the last event that it received and continues from there.

*Reconnecting.* A watcher that reconnects first reads from the log what it missed, while live events are held back for it. Both
sources may deliver the same event, so sequence numbers remove duplicates. Events that a pending round is about to send may also
lie before the watcher's cursor: their numbers are collected first, and the watcher gets them from the log or not at all.

One event of the log may become several frames (a question was asked, a status changed, the event itself). All frames but the
last have ids of the form `cursor:n`, so that a watcher that is disconnected between two frames continues between them.
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

#: Bytes that may wait in a watcher's queue, and seconds between two heartbeats.
MAX_QUEUED, HEARTBEAT = 1_000_000, 15.0
#: The pause after a round in seconds: per watcher, and the longest.
PAUSE_PER_WATCHER, MAX_PAUSE = 0.0003, 0.4
#: Watchers that get their bytes before the round yields to the event loop.
SLICE = 16


class Frame(NamedTuple):
    """One server-sent event."""

    name: str
    data: bytes


class RenderedEvent(NamedTuple):
    """One event of the log and its frames."""

    seq: int
    cursor: str
    task: str | None
    frames: tuple[Frame, ...]


class EventFilter(NamedTuple):
    """Which events and frames a watcher gets."""

    project: str = ""
    task: str = ""
    only: frozenset[str] = frozenset()
    log: bool = False  #: only the log's own events

    def matches(self, event: RenderedEvent) -> bool:
        if self.task:
            return event.task == self.task
        return not self.project or (event.task or "").rpartition("-")[0] == self.project

    def encode(self, event: RenderedEvent, skip: int = 0) -> bytes:
        """The bytes of an event's frames, without the first `skip`."""
        if not self.matches(event):
            return b""
        parts, last = [], len(event.frames) - 1
        for index, frame in enumerate(event.frames):
            if index < skip or (self.log and index != last) or (self.only and frame.name not in self.only):
                continue
            name = "log" if self.log else frame.name
            frame_id = event.cursor if index == last else f"{event.cursor}:{index}"
            parts.append(b"id: %s\nevent: %s\ndata: %s\n\n" % (frame_id.encode(), name.encode(), frame.data))
        return b"".join(parts)


#: Makes further frames, as (name, data), of an event of the log.
Renderer = Callable[[dict[str, Any]], Iterable[tuple[str, Any]]]


class Watcher:
    """The queue of one open stream."""

    def __init__(self, event_filter: EventFilter) -> None:
        self.filter = event_filter
        self.queue: deque[bytes] = deque()
        self.size = 0
        self.wake = asyncio.Event()
        self.closed = False
        self.too_slow = False
        self.held_back: list[RenderedEvent] | None = None  #: live events while it reads the log
        self.seen: set[int] = set()  #: events that the log delivered and the broadcast may deliver again
        self.seen_until = 0.0
        self.task: asyncio.Task[Any] | None = None

    def expire_seen(self) -> None:
        """After a minute the broadcast is past all events that the log delivered."""
        if time.monotonic() > self.seen_until:
            self.seen = set()

    def put(self, text: bytes) -> None:
        if not text or self.closed:
            return
        self.queue.append(text)
        self.size += len(text)
        if self.size > MAX_QUEUED:
            self.close(too_slow=True)
        self.wake.set()

    def close(self, too_slow: bool = False) -> None:
        self.closed, self.too_slow = True, self.too_slow or too_slow
        self.wake.set()
        if too_slow and self.task is not None:
            self.task.cancel()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The queued bytes, joined, and heartbeats that keep the connection open. A heartbeat is a comment; a filter with `beat`
        gets an event instead, which a page can see and miss when the connection is dead."""
        while not self.closed:
            if not self.queue:
                self.wake.clear()
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        await self.wake.wait()
                except TimeoutError:
                    yield b"event: beat\ndata: {}\n\n" if "beat" in self.filter.only else b": still here\n\n"
                    continue
            chunk = b"".join(self.queue)
            self.queue.clear()
            self.size = 0
            if chunk:
                yield chunk


class EventBroadcast:
    """The events of one workspace."""

    def __init__(self, desk: Desk, renderer: Renderer | None = None) -> None:
        self.desk = desk
        self._renderer: Renderer = renderer or (lambda event: ())
        self._groups: dict[EventFilter, set[Watcher]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._pending: list[RenderedEvent] = []
        self._next_round = 0.0
        self._round: Iterator[int] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: set[asyncio.Event] = set()
        self.cursor = ""

    @property
    def count(self) -> int:
        return sum(map(len, self._groups.values()))

    # --- the reader thread ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the reader. Called in the event loop of the watchers; blocks for one query."""
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self.cursor = self.desk.cursor()
            self._thread = threading.Thread(target=self._read, args=(self.cursor,), name="yourturn-events", daemon=True)
            self._thread.start()

    def _read(self, cursor: str) -> None:
        assert self._loop is not None
        while not self._stop.is_set():
            try:
                for batch in self.desk.feed.batches(cursor, 1.0):
                    events = self.render(batch)
                    cursor = batch[-1][0]
                    self._loop.call_soon_threadsafe(self._receive, events)
                    if self._stop.is_set():
                        return
            except StoreTrouble:  # the database is unreachable for now; the cursor stays valid
                self._stop.wait(0.5)
            except RuntimeError:  # the event loop is closed
                return

    def render(self, batch: list[tuple[str, Any]]) -> list[RenderedEvent]:
        events = serialize.events([event for _, event in batch], self._keys)
        rendered = []
        for (cursor, _), event in zip(batch, events, strict=True):
            named = [*self._renderer(event), (event["action"], {**event, "cursor": cursor})]
            frames = tuple(Frame(name, serialize.dumps(data).encode()) for name, data in named)
            rendered.append(RenderedEvent(event["seq"], cursor, event["task"], frames))
        return rendered

    def _keys(self, numbers: set[int]) -> dict[int, str]:
        return self.desk.read_stored(lambda r: r.keys(numbers))

    # --- rounds, in the event loop ----------------------------------------------------------------------------------

    def _receive(self, events: list[RenderedEvent]) -> None:
        self.cursor = events[-1].cursor
        for waiter in self._waiters:
            waiter.set()
        self._pending += events
        if self._round is None and self._timer is None:
            self._schedule_round()

    def _schedule_round(self) -> None:
        assert self._loop is not None
        left = self._next_round - time.monotonic()
        if left > 0:
            self._timer = self._loop.call_later(left, self._start_round)
        else:
            self._start_round()

    def _start_round(self) -> None:
        events, self._pending, self._timer = self._pending, [], None
        self._next_round = time.monotonic() + min(MAX_PAUSE, PAUSE_PER_WATCHER * self.count)
        self._round = self._send(events, [(key, list(group)) for key, group in self._groups.items()])
        self._continue_round()

    def _continue_round(self) -> None:
        assert self._loop is not None and self._round is not None
        if next(self._round, None) is not None:
            self._loop.call_soon(self._continue_round)
            return
        self._round = None
        if self._pending:
            self._schedule_round()

    def _send(self, events: list[RenderedEvent], groups: list[tuple[EventFilter, list[Watcher]]]) -> Iterator[int]:
        """Queues the events for the watchers of `groups`, and yields after each slice. Later watchers read them from the log."""
        count = 0
        for event_filter, group in groups:
            shared: bytes | None = None
            for watcher in group:
                if watcher.held_back is not None:
                    watcher.held_back += events
                elif watcher.seen:
                    watcher.put(b"".join(event_filter.encode(event) for event in events if event.seq not in watcher.seen))
                    watcher.expire_seen()
                else:
                    if shared is None:
                        shared = b"".join(map(event_filter.encode, events))
                    watcher.put(shared)
                count += 1
                if count % SLICE == 0:
                    yield count

    # --- watching ---------------------------------------------------------------------------------------------------

    async def watch(self, event_filter: EventFilter, after: str = "", run: Any = None) -> AsyncGenerator[bytes, None]:
        """The chunks of a stream. `after` is the id of the last event that the watcher received; `run` runs reads in a thread."""
        self.start()
        cursor, skip, seq = parse_id(after)
        watcher = Watcher(event_filter)
        watcher.task = asyncio.current_task()
        group = self._groups.setdefault(event_filter, set())
        group.add(watcher)
        try:
            watcher.seen.update(event.seq for event in self._pending)
            if cursor:
                watcher.held_back, live_cursor = [], self.cursor
                yield b"retry: 2000\n\n"
                while True:
                    batch, live_cursor = await run(self.desk.events, live_cursor)
                    if not batch:
                        break
                    watcher.seen.update(event.seq for _, event in batch)
                while True:
                    batch, cursor = await run(self.desk.events, cursor)
                    if not batch:
                        break
                    events = await run(self.render, batch)
                    watcher.seen.update(event.seq for event in events)
                    chunk = b"".join(event_filter.encode(event, skip if event.seq == seq else 0) for event in events)
                    if chunk:
                        yield chunk
                held_back, watcher.held_back = watcher.held_back, None
                watcher.put(b"".join(event_filter.encode(event) for event in held_back if event.seq not in watcher.seen))
                watcher.seen_until = time.monotonic() + 60
            else:
                watcher.seen_until = time.monotonic() + 60
                yield b"retry: 2000\nid: %s\n\n" % self.cursor.encode()
            async for chunk in watcher.chunks():
                yield chunk
        finally:
            group.discard(watcher)
            if not group:
                self._groups.pop(event_filter, None)

    async def changed(self, seconds: float) -> bool:
        """Waits for the next event, at most so long; true if there was one."""
        self.start()
        waiter = asyncio.Event()
        self._waiters.add(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter.wait()
            return True
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(waiter)

    def close(self) -> None:
        """Ends all streams cleanly. Called in the event loop."""
        self._stop.set()
        for group in list(self._groups.values()):
            for watcher in list(group):
                watcher.close()
        for waiter in self._waiters:
            waiter.set()

    def join(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)


def parse_id(event_id: str) -> tuple[str, int, int]:
    """The cursor to continue from, how many frames of the next event to skip, and that event's number. After a frame in the
    middle of an event the cursor lies before the event."""
    if not event_id:
        return "", 0, 0
    cursor, _, frame = event_id.partition(":")
    parts = cursor.split(".")
    if len(parts) != 3 or not all(p.isascii() and p.isdigit() and len(p) < 19 for p in parts) or not (frame or "0").isdigit():
        raise Invalid(f"Invalid event id {event_id[:40]!a}", hint="Use the id of an event that you received.")
    if not frame:
        return cursor, 0, 0
    seq = int(parts[2])
    return f"{parts[0]}.{parts[1]}.{max(0, seq - 1)}", int(frame[:6]) + 1, seq
