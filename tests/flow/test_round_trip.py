"""The round trip of a workflow: few commits and statements; moves that share a commit are atomic."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from bench.runner import Host
from yourturn.core.errors import AlreadyClosed, Invalid, NotAllowed, YourturnError
from yourturn.core.model import Who
from yourturn.flow.agent_step import Turn
from yourturn.flow.engine import Engine
from yourturn.strict import examine

SCRIPT = '''
def workflow(prompt):
    approved = pause("Go on?")
    return f"{prompt} {bool(approved)}"
'''
RUN = {"description": "ok?", "workflow": "asks.py", "program": {"file": "asks.py", "body": SCRIPT}}
OWN = ("key", "branch", "questions", "steps")  #: what differs from run to run
EVENTS = ["create", "claim", "flag", "answer", "claim", "complete"]


@pytest.fixture(autouse=True)
def _consistent(desk):
    yield
    assert examine(desk) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "asks.py").write_text(SCRIPT)
    return tmp_path


def round_trip(desk, folder, host=None):
    claimed = desk.start("ok?", "w1", **RUN)
    key = claimed["task"]["key"]
    assert Engine(desk, claimed, host or Host(), folder).go_here().what == "waiting"
    ended = Engine(desk, desk.answer_and_claim(key, "w1", True), host or Host(), folder).go_here()
    assert (ended.what, ended.words) == ("done", "ok? True")
    return key


def test_a_round_trip_is_four_commits_and_six_events(desk, folder, monkeypatch):
    commits, begin = [], desk.desk.store.begin

    def counted(what="", *, write=True):
        commits.extend([what] * write)
        return begin(what, write=write)

    monkeypatch.setattr(desk.desk.store, "begin", counted)
    key = round_trip(desk, folder)
    assert commits == ["create", "flag", "answer", "complete"]
    assert [event["action"] for event in desk.history(key)] == EVENTS


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_round_trip_is_few_statements(desk, folder, dialect):
    round_trip(desk, folder)
    statements: list[str] = []
    connection = desk.desk.store.connection()
    connection.set_trace_callback(lambda sql: statements.append(sql) if [sql] != statements[-1:] else None)
    try:
        round_trip(desk, folder)
    finally:
        connection.set_trace_callback(None)
    assert len(statements) <= 40, statements


def test_moves_in_one_commit_leave_the_same_history_as_moves_in_their_own(desk, folder, clock):
    together = round_trip(desk, folder)
    claimed = desk.claim(desk.create("ok?", **RUN), "w1")
    alone = claimed["task"]["key"]
    Engine(desk, claimed, Host(), folder).go_here()
    desk.answer(alone, True)
    Engine(desk, desk.claim(alone, "w1"), Host(), folder).go_here()

    histories = [[(event["action"], event["actor"]) for event in desk.history(key)] for key in (together, alone)]
    rows = [{k: v for k, v in desk.show(key).items() if k not in OWN} for key in (together, alone)]
    assert histories[0] == histories[1] and rows[0] == rows[1]


def test_a_run_that_cannot_be_claimed_is_not_created(desk):
    with pytest.raises(YourturnError):
        desk.start("ok?", "w1", draft=True)
    with pytest.raises(Invalid):
        desk.start("ok?", "")
    assert desk.list() == []


def test_an_answer_that_comes_too_late_claims_nothing(desk, folder):
    claimed = desk.start("ok?", "w1", **RUN)
    key = claimed["task"]["key"]
    Engine(desk, claimed, Host(), folder).go_here()
    asked = desk.show(key)["questions"][0]["id"]
    desk.answer(asked, True)
    with pytest.raises(AlreadyClosed):
        desk.answer_and_claim(asked, "w2", False)
    assert desk.show(key)["claim"] is None


def test_agents_neither_answer_nor_bring_scripts_this_way(desk, folder):
    claimed = desk.start("ok?", "w1", **RUN)
    Engine(desk, claimed, Host(), folder).go_here()
    remote_agent = desk.as_(Who("agent:coder", "agent"))
    with pytest.raises(NotAllowed):
        remote_agent.answer_and_claim(claimed["task"]["key"], "w2", True)
    with pytest.raises(NotAllowed):
        remote_agent.start("ok?", "w2", **RUN)
    assert remote_agent.start("A plain task", "w2")["claim"]["worker"] == "w2"


def test_the_same_key_makes_both_moves_once(desk, folder):
    first = desk.start("ok?", "w1", **RUN, key="once")
    again = desk.start("ok?", "w1", **RUN, key="once")
    assert again["task"]["key"] == first["task"]["key"] and again["claim"]["epoch"] == first["claim"]["epoch"]
    assert Engine(desk, again, Host(), folder).go_here().what == "waiting"
    key = first["task"]["key"]
    answered = desk.answer_and_claim(key, "w1", True, key="answered")
    again = desk.answer_and_claim(key, "w1", True, key="answered")
    assert again["claim"]["epoch"] == answered["claim"]["epoch"] == 2
    assert Engine(desk, again, Host(), folder).go_here().what == "done"
    assert [event["action"] for event in desk.history(key)] == EVENTS


def test_the_journal_is_what_show_steps_and_program_say(desk, folder):
    claimed = desk.start("ok?", "w1", **RUN)
    key = claimed["task"]["key"]
    Engine(desk, claimed, Host(), folder).go_here()
    shown = desk.show(key)
    assert desk.journal(key) == {"questions": shown["questions"], "steps": desk.steps(key), "program": desk.program(key)}
    plain = desk.create("No run")
    assert desk.journal(plain) == {"questions": [], "steps": [], "program": None}


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_new_thread_takes_over_the_connection_of_one_that_has_ended(desk, dialect):
    used = []

    def look():
        desk.list()
        used.append(desk.desk.store.connection())

    for _ in range(3):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert used[0] is used[1] is used[2] and used[0] is not desk.desk.store.connection()


class AgentThatAsks(Host):
    """Its agent asks a question, and does not wait for the answer."""

    def turns(self, call):
        call.journal.desk.ask(call.journal.key, "Sure?", claim=call.journal.claim)
        return Turn("done", text="did it")


def test_a_script_does_not_end_while_a_question_of_its_agent_is_open(desk, tmp_path):
    (tmp_path / "asks.py").write_text('def workflow(prompt):\n    return run("coder").summary\n')
    claimed = desk.start("ok?", "w1", workflow="asks.py")
    key = claimed["task"]["key"]
    assert Engine(desk, claimed, AgentThatAsks(), tmp_path).go_here().what == "waiting"
    assert desk.show(key)["claim"] is None
    ended = Engine(desk, desk.answer_and_claim(key, "w1", "yes"), Host(), tmp_path).go_here()
    assert (ended.what, ended.words) == ("done", "did it")
