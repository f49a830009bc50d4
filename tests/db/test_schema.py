"""The schema is the last guard: it says what the tables in core say, refuses what they refuse, and is upgraded once."""

from __future__ import annotations

import re

import pytest

from yourturn.config import open_store
from yourturn.core.actions import FAILURES, URGENCIES
from yourturn.core.errors import BadDatabase, SchemaMismatch, StoreTrouble
from yourturn.core.journal import STATUSES
from yourturn.core.model import ANSWERED, ENDED, PENDING, RESOLVED, STATES, TIMEOUT, WITHDRAWN, Program, Question, Step, Task
from yourturn.core.questions import RESPONSE_TYPES
from yourturn.core.rules import ASKABLE, KINDS, ROLES, TIMEOUT_POLICIES, TRANSITIONS
from yourturn.core.task_fields import REQUIRES
from yourturn.db import schema
from yourturn.db.sql_loader import queries, read

from .processes import crowd, oks, raw

_LIST = r"(\w+) (?:NOT )?IN \(([^)]*'[^)]*)\)"


def _lists(text: str) -> list[tuple[str, frozenset[str]]]:
    return [(name, frozenset(re.findall(r"'(\w+)'", words))) for name, words in re.findall(_LIST, text)]


def _table(name: str) -> str:
    return re.search(rf"CREATE TABLE {name} \((.*?)\n\) ", read("schema.sql"), re.S)[1]


RETURNS = {s for s in (*ASKABLE, "blocked") if s != "human"}

EXPECTED = {
    "users": [("role", set(ROLES) - {"system", "agent"})],
    "tokens": [("role", set(ROLES) - {"system"})],
    "logins": [("role", set(ROLES) - {"system", "agent"})],
    "links": [("role", set(ROLES) - {"system", "agent"})],
    "tasks": [
        ("state", set(STATES)), ("return_state", RETURNS), ("outcome", {"back", "done"}), ("requires", set(REQUIRES)),
        ("failure", set(FAILURES)), ("state", {"working", "human"}), ("state", set(ENDED)), ("state", {"human", "deferred"}),
    ],
    "questions": [
        ("kind", set(KINDS)), ("urgency", set(URGENCIES)), ("response_type", set(RESPONSE_TYPES)),
        ("on_timeout", set(TIMEOUT_POLICIES)),
        ("status", {PENDING, ANSWERED, TIMEOUT, WITHDRAWN}),
        ("kind", {name for name, kind in KINDS.items() if kind.response_type != "approval"}),
        ("response_type", {"approval", "boolean"}),
        ("kind", {name for name, kind in KINDS.items() if kind.default}),
    ],
    "steps": [("status", set(STATUSES))],
}  # fmt: skip


@pytest.mark.parametrize("table", EXPECTED)
def test_the_lists_are_those_of_the_tables_in_core(table):
    assert _lists(_table(table)) == [(name, frozenset(words)) for name, words in EXPECTED[table]]


def _checks(table: str) -> list[str]:
    """The CHECKs of a table in schema.sql, in their order."""
    text, found, at = re.sub(r"--.*", "", _table(table)), [], 0
    while (at := text.find("CHECK (", at)) >= 0:
        start, depth = at + len("CHECK "), 0
        for at in range(start, len(text)):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            if depth == 0:
                break
        found.append(" ".join(text[start : at + 1].split()))
    return found


@pytest.mark.parametrize("table", ["tasks", "questions"])
def test_the_trigger_of_postgresql_checks_what_the_table_does(table):
    body = re.search(rf"FUNCTION yourturn_fit_{table}\(\).*?IF \((.*?)\) IS FALSE", read("postgres.sql"), re.S)[1]
    assert re.sub(r"\bNEW\.", "", " ".join(body.split())) == " AND ".join(_checks(table))


def test_every_list_of_words_is_checked():
    tables = re.findall(r"CREATE TABLE (\w+)", read("schema.sql"))
    assert {name for name in tables if _lists(_table(name))} == set(EXPECTED)


def test_states_that_can_be_returned_to():
    """`human` and `deferred` remember where they came from: one of the states that lead there."""
    origins = {state for (state, _), rule in TRANSITIONS.items() if state and {"human", "deferred"} & set(rule.to)}
    assert origins - {"human", "deferred"} == RETURNS


def test_queries_mean_the_same_sets_of_states():
    assert [words for name, words in _lists(read("queries.sql")) if name == "state"] == []
    found = [words for name, words in _lists(" ".join(queries({}).values())) if name == "state"]
    assert set(found) == {RESOLVED, ENDED}


def test_columns_are_the_fields_of_the_rows(desk):
    store = desk.desk.store
    with store.reading() as run:
        for table, row, more in (
            ("tasks", Task, ()), ("questions", Question, ("workspace_id",)), ("steps", Step, ()), ("programs", Program, ("id",))
        ):  # fmt: skip
            columns = [column[0] for column in run(f"SELECT * FROM {table}").description if column[0] != "accept_at"]
            assert columns == [*more, *row._fields]


# --- the last guard ---------------------------------------------------------------------------------------------------

WRONG_TASKS = {  # of PROJ-1, which is ready
    "unknown state": "state = 'lost'",
    "working without a claim": "state = 'working'",
    "a claim on a ready task": "holder = 'w', claim_hash = 'h', lease_expires_at = 1, epoch = 1",
    "a claim without a lease": "state = 'working', holder = 'w', claim_hash = 'h', epoch = 1",
    "a claim without a hash": "state = 'working', holder = 'w', lease_expires_at = 1, epoch = 1",
    "a claim without an epoch": "state = 'working', holder = 'w', claim_hash = 'h', lease_expires_at = 1",
    "a lease without a claim": "lease_expires_at = 1",
    "done without an end": "state = 'done'",
    "an end without being done": "ended_at = 1",
    "human without a way back": "state = 'human'",
    "a way back without being human": "return_state = 'ready'",
    "a way back to the end": "state = 'human', return_state = 'done'",
    "deferred without a way back": "state = 'deferred'",
    "a failure that did not fail": "failure = 'error'",
    "unknown failure": "state = 'failed', ended_at = 1, failure = 'boredom'",
    "an alarm while awake": "wake_at = 1",
    "an acceptance without a review": "accept_at = 1",
    "too high a priority": "priority = 5",
    "too low a priority": "priority = -1",
    "no title": "title = ''",
    "no tries at all": "max_retries = 0",
    "fewer than no tries": "retry_count = -1",
    "an epoch below zero": "epoch = -1",
    "unknown outcome": "outcome = 'cancelled'",
    "a requirement that is no gate": "requires = 'input'",
    "a parent that is not there": "parent_id = 999",
    "a project that is not there": "project_id = 999",
    "somebody else's key": "key = 'PROJ-2'",
    "somebody else's old id": "external_id = 'old-2'",
}

WRONG_QUESTIONS = {  # of Q1, an open input
    "answered by nobody": "status = 'answered'",
    "answered without an answer": "status = 'answered', responded_by = 'human:ana', responded_at = 1",
    "answered by the system": "status = 'answered', responded_by = 'system', responded_at = 1, response = '{}'",
    "timed out by nobody": "status = 'timeout', responded_at = 1",
    "pending with an answerer": "responded_by = 'human:ana'",
    "pending with an end": "responded_at = 1",
    "unknown status": "status = 'ignored', responded_by = 'human:ana', responded_at = 1",
    "unknown kind": "kind = 'quiz'",
    "unknown urgency": "urgency = 'panic'",
    "unknown silence": "on_timeout = 'approve'",
    "unknown response": "response_type = 'colour'",
    "no text": "text = ''",
    "not blocking without a default": "blocking = 0",
    "not blocking with a timeout": "blocking = 0, default_value = '{}', timeout_at = 1",
    "a default that approves": "kind = 'approval', default_value = '{}'",
    "a permission for nothing": "kind = 'permission'",
    "a task that is not there": "task_id = 999",
}

WRONG_STEPS = {  # of the one step, which is running
    "unknown progress": "status = 'failed'",
    "completed without a result": "status = 'completed', ended_at = 1",
    "completed without an end": "status = 'completed', result = 'null'",
    "a result while it runs": "result = 'null'",
    "an end while it waits": "status = 'waiting', ended_at = 1",
    "a step of no run": "task_id = 999",
    "a step that is nowhere": "place = NULL",
}

_STEP = "INSERT INTO steps (task_id, journal, place, name, digest, call, status, started_at) VALUES"
_TOKEN = "INSERT INTO tokens (workspace_id, name, actor, role, hash, created_at) VALUES"
_EVENT = "INSERT INTO events (workspace_id, task_id, n, at, actor, action, data, prev, hash) VALUES"
WRONG_ROWS = {
    "waits for itself": "INSERT INTO deps (task_id, needs_id) VALUES (1, 1)",
    "waits for nobody": "INSERT INTO deps (task_id, needs_id) VALUES (1, 999)",
    "the same wait twice": "INSERT INTO deps (task_id, needs_id) VALUES (3, 2)",
    "an empty note": "INSERT INTO notes (task_id, author, text, at) VALUES (1, 'human:ana', '', 1)",
    "a person twice": "INSERT INTO users (workspace_id, name, role, created_at) VALUES (1, 'bob', 'member', 1)",
    "a person of no role": "INSERT INTO users (workspace_id, name, role, created_at) VALUES (1, 'eve', 'agent', 1)",
    "a token twice": f"{_TOKEN} (1, 'ci', 'a', 'agent', 'h', 1)",
    "a token for the system": f"{_TOKEN} (1, 'x', 'a', 'system', 'h', 1)",
    "a project twice": "INSERT INTO projects (workspace_id, key, name, created_at) VALUES (1, 'PROJ', 'x', 1)",
    "a second exhaustion": "UPDATE questions SET reason = 'retry_exhausted', asked_by = 'system' WHERE id IN (1, 2)",
    "an event's number twice": f"{_EVENT} (1, 1, 1, 1, 'a', 'b', '', '', '')",
    "an office event's number twice": f"{_EVENT} (1, NULL, 1, 1, 'a', 'b', '', '', '')",
    "an effect twice": "INSERT INTO replies (workspace_id, key, actor, request, at) VALUES (1, 'k1', 'human:ana', 'r', 1)",
    "an answer by an agent": "UPDATE questions SET status = 'answered', response = 'x', responded_at = 1, "
    "responded_by = 'agent:x'",
    "a gate answered in words": "UPDATE questions SET kind = 'approval', response_type = 'text'",
    "the same step twice": f"{_STEP} (4, 0, '000001', 'run', '', 'null', 'running', 1)",
    "a script of no run": "INSERT INTO programs (task_id, journal, at, file, digest, body) VALUES (999, 0, 1, '', '', '')",
    "its own parent": "UPDATE tasks SET parent_id = id",
    "a lease that clockwork cannot find": "UPDATE tasks SET state = 'working', holder = 'w', claimed_by = 'a', claim_hash = 'h', "
    "lease = 1, lease_expires_at = 1, epoch = 1, due_at = NULL WHERE id = 1",
    "the schema's version twice": f"INSERT INTO schema_version (version, applied_at) VALUES ({schema.VERSION}, 1)",
}


def test_the_database_refuses_wrong_rows(desk, agent, address):
    desk.create("A", key="k1")
    desk.create("B", external_id="old-2")
    desk.create("C", depends_on=["PROJ-2"])
    agent.ask("PROJ-2", "Which?")
    agent.ask("PROJ-2", "And where?")
    desk.set_user("bob")
    desk.create_token("ci")
    desk.create("D", workflow="d.py")
    desk.record(desk.claim("PROJ-4", "w1")["claim"], [{"path": "1", "name": "run", "status": "running"}])
    wrong = {
        **{name: f"UPDATE tasks SET {body} WHERE key = 'PROJ-1'" for name, body in WRONG_TASKS.items()},
        **{name: f"UPDATE questions SET {body} WHERE id = 1" for name, body in WRONG_QUESTIONS.items()},
        **{name: f"UPDATE steps SET {body}" for name, body in WRONG_STEPS.items()},
        **WRONG_ROWS,
    }
    tables = ("tasks", "questions", "deps", "events", "steps", "programs")
    with raw(address) as run:
        assert run("SELECT state FROM tasks ORDER BY id") == [("ready",), ("human",), ("blocked",), ("working",)]
        before = [run(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]
        accepted = []
        for name, sql in wrong.items():
            try:
                run(sql)
            except run.refusals:
                continue
            accepted.append(name)
        assert accepted == []
        assert before == [run(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]
        run("UPDATE tasks SET title = 'A right row is accepted' WHERE key = 'PROJ-1'")


def test_name_of_a_removed_row_can_be_used_again(desk, address):
    desk.set_user("bob")
    desk.remove_user("bob")
    desk.set_user("bob", "admin")
    desk.create_token("ci")
    desk.revoke_token("ci")
    desk.create_token("ci")
    with raw(address) as run:
        assert run("SELECT name, role FROM users WHERE removed_at IS NULL") == [("bob", "admin")]
        assert run.one("SELECT count(*) FROM tokens WHERE revoked_at IS NULL") == 1


# --- versions ---------------------------------------------------------------------------------------------------------

NOW, NEXT, LAST = schema.VERSION, schema.VERSION + 1, schema.VERSION + 2
STEPS = {
    NEXT: "CREATE TABLE extra (n INTEGER NOT NULL); INSERT INTO extra (n) VALUES (1);",
    LAST: "-- why: to have two\nCREATE TABLE more (id {id}, at {big}) {strict}; INSERT INTO extra (n) VALUES (2);",
}


@pytest.fixture
def store(address):
    found = open_store(address)
    yield found
    found.close()


def _versions(address):
    with raw(address) as run:
        return [row[0] for row in run("SELECT version FROM schema_version ORDER BY version")]


def test_a_new_desk_has_the_newest_version(store, address):
    assert _versions(address) == [schema.VERSION]
    assert schema.version_of(store) == schema.VERSION
    schema.check(store)


def test_every_migration_has_a_number_and_none_is_missing():
    assert sorted(schema.migrations()) == list(range(2, schema.VERSION + 1))


def test_an_old_desk_names_the_command_that_upgrades_it(store, address):
    for refuse in (lambda: schema.check(store, known=NEXT), lambda: schema.create(store, known=NEXT, steps=STEPS)):
        with pytest.raises(SchemaMismatch, match=f"has schema {NOW}, and this program needs {NEXT}") as error:
            refuse()
        assert "turn init --upgrade" in error.value.hint
    assert _versions(address) == [NOW]


def test_an_old_program_names_the_command_that_upgrades_it(store, address):
    assert schema.create(store, upgrade=True, known=NEXT, steps=STEPS) == NOW
    for refuse in (lambda: schema.check(store), lambda: schema.create(store), lambda: schema.create(store, upgrade=True)):
        with pytest.raises(SchemaMismatch, match=f"has schema {NEXT}, and this program only knows {NOW}") as error:
            refuse()
        assert "pip install --upgrade yourturn" in error.value.hint
    assert _versions(address) == [NOW, NEXT]


def test_an_upgrade_keeps_what_is_there(store, address, desk, agent):
    desk.create("A")
    got = agent.claim_next("w1")
    asked = agent.ask("PROJ-1", "Which?", claim=got["claim"])
    before = desk.show("PROJ-1")
    schema.create(store, upgrade=True, known=LAST, steps=STEPS)
    assert desk.show("PROJ-1") == before
    desk.answer(asked["id"], "that")
    assert agent.complete(got["claim"])["state"] == "done"
    assert schema.create(store, upgrade=True, known=LAST, steps=STEPS) == LAST, "running it again finds nothing to do"


def test_a_failing_migration_leaves_nothing(store, address):
    bad = {**STEPS, LAST: "CREATE TABLE more (n INTEGER); INSERT INTO extra (n) VALUES (9); INSERT INTO nowhere VALUES (1)"}
    with pytest.raises(StoreTrouble):
        schema.create(store, upgrade=True, known=LAST, steps=bad)
    assert _versions(address) == [NOW, NEXT], "the first step is whole, the second never was"
    with raw(address) as run:
        assert run("SELECT n FROM extra") == [(1,)]
    with store.reading() as run:
        assert "more" not in store.tables(run)
    schema.create(store, upgrade=True, known=LAST, steps=STEPS)
    assert _versions(address) == [NOW, NEXT, LAST]


def test_eight_processes_migrate_once(address):
    steps = {str(version): script for version, script in STEPS.items()}
    actor = ("create_schema", "", {"known": LAST, "steps": steps, "upgrade": True})
    assert set(oks(crowd(address, *[actor] * 8))) <= {NOW, NEXT, LAST}
    assert _versions(address) == [NOW, NEXT, LAST]
    with raw(address) as run:
        assert run("SELECT n FROM extra ORDER BY n") == [(1,), (2,)]


def test_eight_processes_make_the_tables_once(dialect, new_db, tmp_path):
    address = new_db(dialect) if dialect == "postgres" else str(tmp_path / "new.db")
    found = oks(crowd(address, *[("create_schema", "", {"known": schema.VERSION, "steps": {}, "upgrade": False})] * 8))
    assert 0 in found and set(found) <= {0, schema.VERSION}
    assert _versions(address) == [schema.VERSION]


def test_eight_processes_make_one_desk(dialect, new_db):
    address = new_db(dialect)
    assert oks(crowd(address, *[("found", "", {})] * 8)) == ["PROJ"] * 8
    assert _versions(address) == [NOW]
    with raw(address) as run:
        assert run("SELECT name FROM workspaces") == [("default",)]
        assert run("SELECT key FROM projects") == [("PROJ",)]
        assert run("SELECT n, action FROM events") == [(1, "project_create")]


def test_foreign_tables_are_left_alone(dialect, new_db, tmp_path):
    address = new_db(dialect) if dialect == "postgres" else str(tmp_path / "theirs.db")
    with raw(address) as run:
        run("CREATE TABLE users (id INTEGER PRIMARY KEY, password TEXT)")
    before = (tmp_path / "theirs.db").read_bytes() if dialect == "sqlite" else b""
    store = open_store(address, create=True)
    try:
        for refuse in (lambda: schema.check(store), lambda: schema.create(store), lambda: schema.create(store, upgrade=True)):
            with pytest.raises(BadDatabase, match="another program"):
                refuse()
        with store.reading() as run:
            assert store.tables(run) == {"users"}
    finally:
        store.close()
    if dialect == "sqlite":
        assert (tmp_path / "theirs.db").read_bytes() == before
