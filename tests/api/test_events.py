"""The event stream: every watcher gets every event once, in order, also after a reconnect; a slow watcher delays no other."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time

import pytest

from tests.fixtures.server import Site
from yourturn.core.errors import Invalid
from yourturn.server import broadcast as broadcasts
from yourturn.server.broadcast import EventBroadcast, EventFilter, Frame, RenderedEvent, Watcher, parse_id


def notes(events, key):
    return [data["data"]["notes"][0]["text"] for _, name, data in events if name == "note" and data["task"] == key]


def plain(events):
    """Names and data without cursors, which differ on PostgreSQL."""
    return [(name, {k: v for k, v in data.items() if k != "cursor"}) for _, name, data in events]


def test_events_are_sent_live(site, job):
    stream = site.stream(f"?task={job}&only=note")
    assert stream.answer.getheader("content-type") == "text/event-stream; charset=utf-8"
    for at in range(5):
        site.desk.note(job, f"n{at}")
    events = stream.take(5)
    stream.close()
    assert notes(events, job) == [f"n{at}" for at in range(5)]
    assert all(data["cursor"] == id_ for id_, _, data in events)


def test_a_reconnected_watcher_misses_and_repeats_nothing(site, job):
    """Cuts the stream after each frame in turn: both parts together are all events, once."""
    first = site.stream(f"?task={job}&after={site.desk.desk_cursor()}")
    question = site.desk.ask(job, "Which?")
    site.desk.answer(question, "this")
    site.desk.note(job, "x")
    everything = first.take(7)  # asked, status, ask; answered, status, answer; note
    first.close()
    for cut in range(len(everything)):
        last = everything[cut][0]
        again = site.stream(f"?task={job}", last=last)
        rest = again.take(len(everything) - cut - 1)
        again.close()
        assert plain(everything[: cut + 1] + rest) == plain(everything), f"cut after {everything[cut][1]}"
    by_query = site.stream(f"?task={job}&after={everything[0][0]}")
    assert plain(by_query.take(2)) == plain(everything[1:3])
    by_query.close()


def test_filters(site, job):
    other = site.desk.create("Other")["key"]
    if "EV" not in {p["key"] for p in site.desk.projects()}:
        site.desk.create_project("EV")
    away = site.desk.create("Away", project="EV")["key"]
    mine, project, names, log = (
        site.stream(query)
        for query in (
            f"?task={job}&only=note",
            "?project=EV&only=note,question_asked,ask",
            "?only=question_asked",
            f"?task={away}&format=log&only=note,ask",
        )
    )
    for key in (other, away, job):
        site.desk.note(key, key)
    site.desk.ask(away, "Which?", blocking=False, default="x")
    assert notes(mine.take(1), job) == [job]
    events = project.take(3)
    assert [name for _, name, _ in events] == ["note", "question_asked", "ask"] and notes(events, away) == [away]
    assert names.take(1)[0][2]["jobId"] == away
    logged = log.take(2)
    assert [name for _, name, _ in logged] == ["log", "log"] and [d["action"] for _, _, d in logged] == ["note", "ask"]
    for stream in (mine, project, names, log):
        stream.close()


@pytest.mark.parametrize(
    ("query", "last", "status"),
    [
        ("?task=PROJ-99999", None, 404), ("?project=NONE", None, 404), ("?format=xml", None, 422), ("?nonsense=1", None, 422),
        ("", "nonsense", 422), ("?after=1.2", None, 422), ("?workspaceId=elsewhere", None, 404), ("?project=a%00b", None, 422),
    ],
)  # fmt: skip
def test_invalid_stream_filters_are_refused(site, query, last, status):
    stream = site.stream(query, last=last)
    assert stream.status == status
    assert set(json.loads(stream.answer.read())["error"]) == {"code", "message", "hint"}
    stream.close()


def test_many_writers_many_watchers(site):
    """Several writers and watchers, one of which reconnects: all get the same events in one order, once."""
    key = site.desk.create("Busy")["key"]
    watchers = [site.stream(f"?task={key}&only=note") for _ in range(4)]
    count = 40

    def write(who: int) -> None:
        for at in range(count):
            site.desk.note(key, f"{who}.{at}")

    writers = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    for writer in writers:
        writer.start()
    received: list = []
    last = None
    while len(received) < 3 * count:
        guest = site.stream(f"?task={key}&only=note", last=last or watchers[0].id or "0.0.0")
        for _ in range(min(17, 3 * count - len(received))):
            received.append(guest.next())
        last = received[-1][0]
        guest.close()
    for writer in writers:
        writer.join()
    texts = [notes(watcher.take(3 * count), key) for watcher in watchers]
    for watcher in watchers:
        watcher.close()
    assert all(one == texts[0] for one in texts)
    assert sorted(texts[0]) == sorted(f"{who}.{at}" for who in range(3) for at in range(count))
    assert notes(received, key) == [text for text in texts[0] if text in set(notes(received, key))]
    assert len(set(notes(received, key))) == 3 * count


def test_stream_continues_after_a_restart(new_address):
    address = new_address("sqlite")
    first = Site(address)
    key = first.desk.create("A")["key"]
    stream = first.stream(f"?task={key}&only=note")
    first.desk.note(key, "before")
    events = stream.take(1)
    token = first.token("viewer")
    first.close()
    assert stream.next() is None, "the stream ended"
    stream.close()
    second = Site(address)
    second.tokens["viewer"] = token
    try:
        second.desk.note(key, "between")
        again = second.stream(f"?task={key}&only=note", last=events[-1][0])
        second.desk.note(key, "after")
        assert notes(again.take(2), key) == ["between", "after"]
        again.close()
    finally:
        second.close()


def test_a_slow_watcher_is_disconnected_and_slows_no_other(sqlite_site, monkeypatch):
    monkeypatch.setattr(broadcasts, "MAX_QUEUED", 200_000)
    site = sqlite_site
    key = site.desk.create("Loud")["key"]
    lazy = socket.socket()
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lazy.connect(("127.0.0.1", site.port))
    token = site.token("viewer")
    lazy.sendall(f"GET /api/events?task={key} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    lazy.settimeout(20)
    lazy.recv(100)
    quick = site.stream(f"?task={key}&only=note")
    for at in range(60):
        site.desk.note(key, f"{at} " + "x" * 100_000)
        assert quick.take(1)[0][2]["data"]["notes"][0]["text"].startswith(f"{at} ")
    quick.close()
    received = 0
    try:
        while chunk := lazy.recv(65536):
            received += len(chunk)
    except ConnectionError:
        pass
    lazy.close()
    assert received < 6_000_000, "it did not get everything"


def test_a_reconnected_watcher_gets_only_new_events(site):
    """During a pause of the broadcast, events before the watcher's cursor are still pending."""
    key = site.desk.create("A")["key"]
    broadcast = site.app.state.shared.broadcast("default")
    first = site.stream(f"?task={key}&only=note")
    broadcast._next_round = time.monotonic() + 1.0
    site.desk.note(key, "known")
    stream = site.stream(f"?task={key}&only=note&after={site.desk.desk_cursor()}")
    site.desk.note(key, "new")
    assert notes(first.take(2), key) == ["known", "new"]
    assert notes(stream.take(1), key) == ["new"]
    first.close()
    stream.close()


def test_stream_of_a_revoked_token_ends(sqlite_site, monkeypatch):
    from yourturn.api import events

    monkeypatch.setattr(events, "RECHECK", 0.0)
    site = sqlite_site
    key = site.desk.create("A")["key"]
    token = site.desk.create_token("watcher", "viewer")
    site.tokens["watcher"] = token["token"]
    stream = site.stream(f"?task={key}&only=note", role="watcher")
    site.desk.note(key, "one")
    assert notes(stream.take(1), key) == ["one"]
    site.desk.revoke_token("watcher")
    site.desk.note(key, "two")
    site.desk.note(key, "three")
    assert stream.next() is None
    stream.close()


# --- units ------------------------------------------------------------------------------------------------------------


def test_event_ids_are_parsed():
    assert parse_id("") == ("", 0, 0)
    assert parse_id("0.1.42") == ("0.1.42", 0, 0)
    assert parse_id("0.1.42:1") == ("0.1.41", 2, 42)
    for wrong in ("x", "1.2", "1.2.3.4", "0.1.42:x", "0.1.-1", "٣.1.2", "9" * 30 + ".1.1", ":1"):
        with pytest.raises(Invalid):
            parse_id(wrong)


def test_line_break_in_an_event_starts_no_new_frame():
    event = RenderedEvent(1, "0.1.1", "PROJ-1", (Frame("note", json.dumps({"text": "a\n\nevent: answer\ndata: {}\r\n\u2028"}).encode()),))
    assert EventFilter().encode(event).count(b"\n") == 4


def test_a_full_queue_ends_the_watcher():
    async def fill():
        watcher = Watcher(EventFilter())
        watcher.put(b"x" * broadcasts.MAX_QUEUED)
        assert not watcher.closed
        watcher.put(b"x")
        return watcher

    watcher = asyncio.run(fill())
    assert watcher.closed and watcher.too_slow


def test_round_yields_and_ends_before_the_next(sqlite_site):
    """A round yields to other requests, and every watcher gets every event once, in order."""

    async def run():
        broadcast, count = EventBroadcast(sqlite_site.desk.desk), 3 * broadcasts.SLICE + 1
        streams = [broadcast.watch(EventFilter()) for _ in range(count)]
        for stream in streams:
            await anext(stream)
        watchers = list(broadcast._groups[EventFilter()])
        first, second, third = (RenderedEvent(seq, f"0.1.{seq}", None, (Frame("note", b"%d" % seq),)) for seq in (1, 2, 3))
        broadcast._receive([first, second])
        assert sum(bool(watcher.queue) for watcher in watchers) == broadcasts.SLICE, "the others in the next slice"
        broadcast._next_round = 0.0  # the pause ends before the round
        broadcast._receive([third])
        while broadcast._round is not None:
            await asyncio.sleep(0)
        everything = b"".join(map(EventFilter().encode, (first, second, third)))
        assert {b"".join(watcher.queue) for watcher in watchers} == {everything}
        for stream in streams:
            await stream.aclose()
        broadcast.close()
        broadcast.join()

    asyncio.run(run())


def test_an_event_from_the_log_is_not_sent_again_live(sqlite_site):
    """The broadcast delivers an event while a reconnecting watcher reads the same event from the log."""
    desk = sqlite_site.desk.desk

    async def run() -> list[bytes]:
        key = sqlite_site.desk.create("A")["key"]
        after = desk.cursor()
        sqlite_site.desk.note(key, "once")
        broadcast = EventBroadcast(desk)
        broadcast.start()
        live = broadcast.render(desk.events(after)[0])

        async def read(function, *args):
            result = function(*args)
            if function == broadcast.render:
                broadcast._receive(live)
            return result

        stream = broadcast.watch(EventFilter(task=key), after, read)
        received = [await anext(stream), await anext(stream)]
        more = asyncio.ensure_future(anext(stream))
        for _ in range(5):
            await asyncio.sleep(0)
        if more.done():
            received.append(more.result())
        broadcast.close()
        await asyncio.gather(more, return_exceptions=True)
        broadcast.join()
        return received

    received = asyncio.run(run())
    assert b"".join(received).count(b"event: note\n") == 1
