"""Who waits for PostgreSQL stays awake for a moment, if nobody else could use that time. What is answered is the same."""

from __future__ import annotations

import time

import psycopg
import pytest

from yourturn.db import line


@pytest.fixture(params=["awake", "asleep"])
def db(request, new_db, monkeypatch):
    """A line of who thinks that it is alone, or that it is not."""
    vigil = line.Vigil(2, lambda: 1 if request.param == "awake" else 2)
    monkeypatch.setattr(line, "vigil", vigil)
    one = line.connect(new_db("postgres"), 5)
    yield one
    one.close()


def prepared(db, text, *values):
    assert db.pgconn.prepare(b"it", text.encode()).status == line.pq.ExecStatus.COMMAND_OK
    return db.ask(b"it", list(values))


def test_it_is_for_who_is_alone_and_has_a_second_core():
    assert line.Vigil(2, lambda: 1).begun()
    assert not line.Vigil(2, lambda: 2).begun()
    assert not line.Vigil(1, lambda: 1).begun()


def test_who_lost_the_processor_sleeps_twice_as_long_each_time_and_comes_back_slowly():
    vigil = line.Vigil(2, lambda: 1)

    def slept():
        count = 0
        while not vigil.begun():
            count += 1
        return count

    def lost(seconds, ours):
        vigil.over(seconds, ours)
        return slept()

    assert [lost(0.001, 0.0007) for _ in range(9)] == [16, 32, 64, 128, 256, 512, 1024, 1024, 1024]
    assert [lost(0.001, 0.0009) for _ in range(3)] == [0, 0, 0], "a little is nothing"
    assert lost(0.001, 0.0) == 256
    for _ in range(20):
        lost(0.001, 0.001)
    assert lost(0.001, 0.0) == 16


def test_the_answer_is_the_same(db):
    rows = line.Loader().rows
    assert rows(prepared(db, "SELECT $1::bigint + 1, $2::text, NULL", b"41", "é".encode())) == [(42, "é", None)]
    large = b"x" * 5_000_000
    assert rows(db.ask(b"it", [b"1", large]))[0][1] == large.decode()
    assert rows(db.pipe([(b"it", [b"1", b"a"]), (b"it", [b"2", b"b"])])[1]) == [(3, "b", None)]


def test_an_error_is_the_same_and_the_line_goes_on(db):
    found = prepared(db, "SELECT 1 / $1::int", b"0")
    assert isinstance(line.error(found), psycopg.errors.DivisionByZero)
    assert line.Loader().rows(db.ask(b"it", [b"1"])) == [(1,)]


def test_who_waits_long_sleeps(db):
    begun = time.thread_time()
    assert line.Loader().rows(prepared(db, "SELECT 1 FROM pg_sleep($1)", b"0.3")) == [(1,)]
    assert time.thread_time() - begun < 0.1


def test_a_line_that_is_cut_meanwhile(db):
    with pytest.raises(psycopg.OperationalError):
        raise line.error(prepared(db, "SELECT pg_terminate_backend(pg_backend_pid())"))
    assert db.closed
