"""The case cache: whatever changed meanwhile, the next move is decided on current rows."""

from __future__ import annotations

import pytest

from yourturn.core.actions import say
from yourturn.core.errors import AlreadyClosed, Busy, ClaimLost, IllegalMove, NotFound, Precondition, StoreTrouble
from yourturn.health import doctor

from .processes import raw


@pytest.fixture
def other(open_desk):
    return open_desk("human:bob")


@pytest.fixture
def task(desk):
    """Just written by `desk`, so remembered there."""
    key = desk.create("A")["key"]
    assert desk.desk.store.recent.recall(desk._task(key), desk.desk.workspace, None) is not None
    return key


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_the_second_move_reads_nothing_before_it_writes(desk, task, dialect):
    said = []
    desk.desk.store.connection().set_trace_callback(said.append)
    desk.do("note", task=1, text="hm")
    assert [sql.split()[0] for sql in said if not sql.startswith("--")][:2] == ["BEGIN", "INSERT"]


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_an_answer_right_after_its_question_reads_nothing_again(desk, task, dialect):
    asked = desk.ask(task, "Which?")
    said = []
    desk.desk.store.connection().set_trace_callback(said.append)
    assert desk.answer(asked["id"], "this")["responded_by"] == desk.who.name
    desk.desk.store.connection().set_trace_callback(None)
    assert {sql.split()[0] for sql in said if not sql.startswith("--")} == {"BEGIN", "UPDATE", "INSERT", "COMMIT"}
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
    assert desk.desk.look(lambda r: r.task(1)).lease == 2 * 3600 * 1_000_000


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
    assert [desk.desk.look(lambda r, number=number: r.task(number)).state for number in (1, 2)] == ["done", "working"]
    assert desk.desk.look(lambda r: r.task(2)).lease == 2 * 3600 * 1_000_000


@pytest.mark.parametrize("sight", [True, False], ids=["look", "move"])
def test_rows_that_a_restore_has_replaced(desk, other, task, address, sight):
    """The number that it remembers for the key is another task's now: nobody is shown that one, or moves it."""
    other.create("B")
    with raw(address) as run:
        run("UPDATE tasks SET key = 'PROJ-9' WHERE id = 1")
        run("UPDATE workspaces SET fenced_at = 1")
    with pytest.raises(Busy, match="just restored"):
        desk.show(task) if sight else desk.cancel(task)
    with pytest.raises(NotFound, match="There is no task PROJ-1"):
        desk.cancel(task)
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


def test_only_tasks_that_stand_alone_are_remembered(desk, task):
    second = desk.create("B", depends_on=[task])["key"]
    assert desk.desk.store.recent.recall(desk._task(second), desk.desk.workspace, None) is None


def test_not_for_long_and_not_for_others(desk, task, monkeypatch):
    recent, number = desk.desk.store.recent, desk._task(task)
    assert recent.recall(number, desk.desk.workspace + 1, None) is None
    assert recent.recall(number, desk.desk.workspace, 1) is None
    assert recent.whose(task, desk.desk.workspace) == number
    assert recent.whose(task, desk.desk.workspace + 1) is None
    monkeypatch.setattr("yourturn.db.case_cache.KEPT", -1.0)
    assert recent.recall(number, desk.desk.workspace, None) is None
    assert recent.whose(task, desk.desk.workspace) is None


@pytest.mark.parametrize("dialect", ["postgres"])
def test_a_commit_that_is_not_confirmed_is_not_said_again(desk, task, address, dialect):
    """It may have been made: whoever remembered the task is told so, like everybody else."""
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


def test_the_remembered_clock_does_not_fall_behind(desk, task):
    """However long each commit takes: the database's clock goes on from when it was looked at, not from the commit."""
    recent, number = desk.desk.store.recent, desk._task(task)
    case, _, _ = recent.recall(number, desk.desk.workspace, None)
    recent.remember(case, 1_000_000_000, 0.0)
    begun = recent.recall(number, desk.desk.workspace, None)
    for _ in range(3):
        found = recent.recall(number, desk.desk.workspace, None)
        sum(range(200_000))  # a commit
        recent.remember(*found)
    found = recent.recall(number, desk.desk.workspace, None)
    assert abs((found[1] - begun[1]) - (found[2] - begun[2]) * 1_000_000) < 10


# --- the numbers that come next


@pytest.fixture
def numbering(desk):
    """It has created and asked so often, and alone, that it guesses what comes next."""
    for _ in range(4):
        desk.ask(desk.create("A")["key"], "Which?")
    return desk


@pytest.mark.parametrize("dialect", ["postgres"])
def test_the_next_numbers_are_guessed(numbering, dialect):
    recent, desk = numbering.desk.store.recent, numbering.desk
    assert recent.numbers[desk.workspace] == (5, True)
    birth = recent.birth(desk.workspace, "PROJ")
    assert birth.alone and birth.id == 5 and birth.project.next_number == 5
    assert recent.birth(desk.workspace, "PROJ") is None


def test_numbers_are_consecutive_across_processes(numbering, other):
    ids = []
    for who in [numbering, other, other, numbering, *[other] * 5, *[numbering] * 20, other, numbering, other]:
        ids.append(who.do("create", title="A", project="PROJ").task)
        number = len(ids) + 4
        assert who.ask(f"PROJ-{number}", "Which?")["id"] == f"Q{number}"
    assert ids == sorted(set(ids))
    assert [line for line in doctor.examine(other, strict=True) if line["status"] == "wrong"] == []


@pytest.mark.parametrize("project", ["PROJ", None])
def test_a_new_task_follows_the_settings_of_now(numbering, other, project):
    other.set("max_retries", 7, project=project)
    numbering.create("A")
    assert numbering.desk.look(lambda r: r.task(numbering._task("PROJ-5"))).max_retries == 7


def test_a_refused_task_takes_no_number(numbering):
    with pytest.raises(NotFound):
        numbering.create("A", depends_on=["PROJ-99"])
    assert numbering.create("A")["key"] == "PROJ-5"


def test_a_task_that_is_born_with_a_question(numbering):
    numbering.do("create", title="A", project="PROJ", awaiting="approval", question="So?")
    assert numbering.ask(numbering.create("A")["key"], "Which?")["id"] == "Q6"
