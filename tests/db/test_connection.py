"""Batches of statements on PostgreSQL: all of them, in order, and nothing behind the first error."""

from __future__ import annotations

import pytest

from yourturn.core.errors import StoreTrouble
from yourturn.db.backend import Conflict

from .processes import raw

pytestmark = pytest.mark.parametrize("dialect", ["postgres"])

ECHO = "SELECT CAST(:a AS TEXT), CAST(:b AS BIGINT)"


@pytest.fixture
def store(desk, dialect):
    return desk.desk.store


def _often(store):
    """So often that it is prepared."""
    for at in range(5):
        with store.begin() as run:
            word = f"it's {at}\\ %s $1"
            assert run(ECHO, {"a": word, "b": -at}).fetchone() == (word, -at)


def test_more_than_a_socket_takes_at_once(store):
    _often(store)
    long = "é'\\" * 2_000_000
    asked = [(ECHO, {"a": long, "b": number}) for number in range(3)]
    with store.begin() as run:
        assert run.many(*asked) == [[(long, number)] for number in range(3)]


def test_nothing_is_done_behind_an_error(store):
    _often(store)
    with pytest.raises(Conflict), store.begin() as run:
        run.later("UPDATE projects SET name = :name", {"name": "new"})
        run.must("UPDATE projects SET name = :name WHERE id = :id", {"name": "newer", "id": -1})
        run.later("UPDATE workspaces SET settings = :broken", {"broken": "{"})
    with store.reading() as run:
        assert run("SELECT p.name <> 'new', w.settings FROM projects p, workspaces w").fetchall() == [(True, "{}")]
    _often(store)
    assert len(store._idle) == 1


@pytest.mark.parametrize("begin", ["begin", "reading"])
def test_a_query_the_server_does_not_understand_leaves_a_good_store(store, begin):
    """Also if the batch behind it was about to prepare something."""
    for _ in range(5):
        with pytest.raises(Exception, match="nowhere"), getattr(store, begin)() as run:
            run.many(("SELECT 1", {}), ("SELECT :a FROM nowhere", {"a": 1}), (ECHO, {"a": "x", "b": 1}))
    _often(store)
    assert len(store._idle) == 1


def test_a_refused_move_keeps_what_is_prepared(store):
    """psycopg forgets its prepared statements after a ROLLBACK; a transaction that wrote nothing needs none."""
    _often(store)
    with pytest.raises(ZeroDivisionError), store.begin() as run:
        run(ECHO, {"a": "x", "b": 1})
        raise ZeroDivisionError
    with store.reading() as run:
        found = run("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE :like", {"like": "SELECT CAST($1%"})
        assert found.fetchone() == (1,)


def test_what_is_written_and_refused_is_rolled_back(store, address):
    with pytest.raises(ZeroDivisionError), store.begin() as run:
        run.later("UPDATE projects SET name = :name", {"name": "new"})
        raise ZeroDivisionError
    with raw(address) as run:
        assert run.one("SELECT count(*) FROM projects WHERE name = 'new'") == 0


def test_a_zero_character_is_refused(store):
    _often(store)
    with pytest.raises(StoreTrouble, match="NUL"), store.begin() as run:
        run(ECHO, {"a": "a\x00b", "b": 1})
    _often(store)


def test_values_of_our_own_kinds(store):
    class Word(str):
        __slots__ = ()

    _often(store)
    for a, b in ((Word("x"), True), (None, None), ("2.5", 2**62)):
        with store.begin() as run:
            assert run(ECHO, {"a": a, "b": b}).fetchone() == (a, b)
