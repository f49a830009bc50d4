"""What is said to PostgreSQL in one go: all of it, in order, and nothing behind the first error."""

from __future__ import annotations

import pytest

from yourturn.db.backend import Again

pytestmark = pytest.mark.parametrize("dialect", ["postgres"])

ECHO = "SELECT CAST(:a AS TEXT), CAST(:b AS BIGINT)"


@pytest.fixture
def store(desk, dialect):
    return desk.desk.store


def _often(store):
    """So often that it is prepared."""
    for at in range(4):
        with store.begin() as run:
            word = f"it's {at}\\"
            assert run(ECHO, {"a": word, "b": -at}).fetchone() == (word, -at)


def test_more_than_a_socket_takes_at_once(store):
    _often(store)
    long = "é'\\" * 2_000_000
    asked = [(ECHO, {"a": long, "b": number}) for number in range(3)]
    with store.begin() as run:
        assert run.many(*asked) == [[(long, number)] for number in range(3)]


def test_nothing_is_done_behind_an_error(store):
    _often(store)
    with pytest.raises(Again), store.begin() as run:
        run.later("UPDATE projects SET name = :name", {"name": "new"})
        run.must("UPDATE projects SET name = :name WHERE id = :id", {"name": "newer", "id": -1})
        run.later("UPDATE workspaces SET settings = :broken", {"broken": "{"})
    with store.reading() as run:
        assert run("SELECT p.name <> 'new', w.settings FROM projects p, workspaces w").fetchall() == [(True, "{}")]
    _often(store)


def test_a_question_the_server_does_not_understand_leaves_a_good_connection(store):
    _often(store)
    for _ in range(5):
        with pytest.raises(Exception, match="nowhere"), store.begin() as run:
            run.many(("SELECT 1", {}), ("SELECT :a FROM nowhere", {"a": 1}))
    _often(store)
    assert len(store._idle) == 1


@pytest.mark.parametrize("value", ["a\x00b", b"bytes"])
def test_a_value_that_no_row_can_keep(store, value):
    """Neither is cut short, also when only the values are sent."""
    _often(store)
    with pytest.raises((ValueError, TypeError)), store.begin() as run:
        run(ECHO, {"a": value, "b": 1})


def test_values_of_our_own_kinds(store):
    class Word(str):
        __slots__ = ()

    _often(store)
    for a, b in ((Word("x"), True), (None, None), ("2.5", 2**62)):
        with store.begin() as run:
            assert run(ECHO, {"a": a, "b": b}).fetchone() == (a, b)
