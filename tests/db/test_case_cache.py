"""A remembered case is only a guess: after any change meanwhile, the next move is decided on the rows."""

from __future__ import annotations

import time

import pytest

from yourturn.core.actions import say
from yourturn.core.errors import AlreadyClosed, ClaimLost, IllegalMove, NotFound, Precondition, StoreTrouble
from yourturn.health import doctor

from .processes import raw


@pytest.fixture
def other(open_desk):
    return open_desk("human:bob")


@pytest.fixture
def task(desk):
    """Just written by `desk`, so remembered there."""
    key = desk.create("A")["key"]
    assert desk.desk.store.case_cache.recall(desk._task(key), desk.desk.workspace, None) is not None
    return key


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_the_second_move_reads_nothing_before_it_writes(desk, task, dialect):
    said = []
    desk.desk.store.connection().set_trace_callback(said.append)
    desk.do("note", task=1, text="hm")
    assert [sql.split()[0] for sql in said if not sql.startswith("--")][:2] == ["BEGIN", "INSERT"]


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_an_answer_to_a_remembered_question_reads_only_its_name(desk, task, dialect):
    asked = desk.ask(task, "Which?")
    said = []
    desk.desk.store.connection().set_trace_callback(said.append)
    assert desk.answer(asked["id"], "this")["responded_by"] == desk.who.name
    desk.desk.store.connection().set_trace_callback(None)
    words = [sql.split()[0] for sql in said if not sql.startswith("--")]
    assert words[:2] == ["SELECT", "BEGIN"] and set(words[1:]) == {"BEGIN", "UPDATE", "INSERT", "COMMIT"}, "only the name is read"
    assert desk.show(asked["id"])["response"]["value"] == "this"


def test_a_state_that_changed(desk, other, task):
    other.cancel(task)
    with pytest.raises(IllegalMove, match="it is 'cancelled'"):
        desk.claim(task, "w1")
    other.reopen(task)
    other.vet(task)
    assert desk.claim(task, "w1")["task"]["state"] == "working"


def test_a_refusal_is_never_old_news(desk, other, task):
    token = desk.claim(task, "w1")["claim"]["token"]
    other.release(task, worker="w1")
    with pytest.raises(ClaimLost):
        desk.complete(token)
    assert desk.claim(task, "w2")["claim"]["epoch"] == 2


def test_a_question_that_was_answered(desk, other, task):
    asked = desk.ask(task, "Which?")
    other.answer(asked["id"], "that one")
    with pytest.raises(AlreadyClosed, match="human:bob"):
        desk.answer(asked["id"], "this one")
    assert desk.claim(task, "w1")["task"]["state"] == "working"


def test_settings_that_changed(desk, other, task):
    other.set("lease", "2h", project="PROJ")
    desk.claim(task, "w1")
    assert desk.desk.read_stored(lambda r: r.task(1)).lease == 2 * 3600 * 1_000_000


@pytest.mark.parametrize("remembered", [True, False])
def test_settings_that_changed_before_it_was_handed_in(desk, other, task, remembered):
    """The next task is claimed as the settings are, also if it was asked for in a project that was remembered."""
    other.create("B")
    token = desk.claim(task, "w1")["claim"]["token"]
    if remembered:
        first = say("complete", desk.who, task=1, claim=token)
    else:
        other.update(task, requires="approval")
        other.complete(token)
        first = say("approve", desk.who, task=1)  # which is read again: that it asks something is not remembered
    other.set("lease", "2h", project="PROJ")
    assert desk.desk.claim_next("w1", project="PROJ", first=first).task == 2
    assert [desk.desk.read_stored(lambda r, number=number: r.task(number)).state for number in (1, 2)] == ["done", "working"]
    assert desk.desk.read_stored(lambda r: r.task(2)).lease == 2 * 3600 * 1_000_000


def test_rows_that_a_restore_has_replaced(desk, other, task, address):
    """The remembered number is another task's now: that one is neither shown nor moved."""
    other.create("B")
    with raw(address) as run:
        run("UPDATE tasks SET key = 'PROJ-9' WHERE id = 1")
        run("UPDATE workspaces SET fenced_at = 1")
    for look in (desk.show, desk.cancel):
        with pytest.raises(NotFound, match="There is no task PROJ-1"):
            look(task)
    with pytest.raises(IllegalMove, match="PROJ-9"):
        desk.do("approve", task=1)
    assert desk.show("PROJ-9")["state"] == "ready"


def test_a_new_dependant_is_seen(desk, other, task):
    waits = other.create("B", depends_on=[task])["key"]
    desk.close(task)
    assert other.show(waits)["state"] == "ready"
    third, fourth = desk.create("C")["key"], desk.create("D")["key"]
    other.depend(fourth, third)
    desk.close(third)
    assert other.show(fourth)["state"] == "ready"


def test_it_has_a_child_now(desk, other, task):
    other.create("part", parent=task)
    with pytest.raises(Precondition, match="open children"):
        desk.close(task)


def test_an_ended_neighbour_is_one(desk, other, task):
    child = other.create("part", parent=task)["key"]
    other.close(child)
    desk.ask(task, "Which?")
    other.reopen(child)
    with pytest.raises(Precondition, match="open children"):
        desk.close(task)


def test_only_tasks_without_relations_are_cached(desk, task):
    second = desk.create("B", depends_on=[task])["key"]
    assert desk.desk.store.case_cache.recall(desk._task(second), desk.desk.workspace, None) is None


def test_not_for_long_and_not_for_others(desk, task, monkeypatch):
    cache, number = desk.desk.store.case_cache, desk._task(task)
    assert cache.recall(number, desk.desk.workspace + 1, None) is None
    assert cache.recall(number, desk.desk.workspace, 1) is None
    monkeypatch.setattr("yourturn.db.case_cache.KEPT", -1.0)
    assert cache.recall(number, desk.desk.workspace, None) is None


@pytest.mark.parametrize("dialect", ["postgres"])
def test_unconfirmed_commit_is_not_repeated(desk, task, address, dialect):
    """The move may have been committed: a process that has the task in its cache gets `maybe_done` like any other."""
    with raw(address) as run:
        run("CREATE SEQUENCE tried")
        run(
            "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM nextval('tried'), pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
        )
        run(
            "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON notes DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION die()"
        )
        with pytest.raises(StoreTrouble, match="does not answer"):
            desk.note(task, "once")
        assert run.one("SELECT last_value FROM tried") == 1


def test_the_remembered_clock_goes_on_from_when_it_was_read(desk, task):
    cache, number = desk.desk.store.case_cache, desk._task(task)
    case, _ = cache.recall(number, desk.desk.workspace, None)
    at = time.monotonic() - 5
    cache.remember(case, 1_000_000_000, at)
    before = time.monotonic()
    _, now = cache.recall(number, desk.desk.workspace, None)
    assert (before - at) * 1e6 <= now - 1_000_000_000 + 1 <= (time.monotonic() - at) * 1e6 + 2


def test_two_moves_of_a_remembered_task_lock_it_in_one_order(desk, other, task):
    """The task's row before the question's: concurrent answers wait for each other, and never deadlock."""
    asked = desk.ask(task, "Which?")["id"]
    sent = []
    store = desk.desk.store
    lock = store.lock_version
    store.lock_version = lambda run, number, version: (sent.append(number), lock(run, number, version))
    desk.answer(asked, "that")
    assert sent == [desk._task(task)]


def test_numbers_follow_each_other_from_all_processes(desk, other):
    ids = []
    for who in [desk, other, other, desk, *[other] * 3, *[desk] * 4, other]:
        ids.append(who.do("create", title="A", project="PROJ").task)
        assert who.ask(f"PROJ-{len(ids)}", "Which?")["id"] == f"Q{len(ids)}"
    assert ids == sorted(set(ids))
    assert [line for line in doctor.examine(other, strict=True) if line["status"] == "wrong"] == []


@pytest.mark.parametrize("project", ["PROJ", None])
def test_a_new_task_follows_the_settings_of_now(desk, other, project):
    desk.create("A")
    other.set("max_retries", 7, project=project)
    assert desk.create("B")["max_retries"] == 7
