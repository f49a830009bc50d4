"""Many at once: the result is always one that some order of turns would give."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from yourturn.core.actions import say
from yourturn.db.unit_of_work import UnitOfWork
from yourturn.desk.move import Moves
from yourturn.health import audit, doctor

from .processes import crowd, oks, raw

pytestmark = pytest.mark.processes


def _well(desk):
    """Every invariant that the doctor knows."""
    assert [line for line in doctor.examine(desk) if line["status"] != "ok"] == []


@pytest.fixture(autouse=True)
def no_deadlock(dialect, address):
    """PostgreSQL would resolve a deadlock after a second, without an error, while all of them wait."""
    if dialect == "sqlite":
        yield
        return
    count = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    with raw(address) as run:
        before = run.one(count)
        yield
        assert run.one(count) == before


def test_sixteen_workers_never_claim_the_same_task(desk, address):
    for number in range(60):
        desk.do("create", title=f"Task {number}", project="PROJ", priority=number % 3)
    # Each takes five at the most, so that at least twelve have to take part, however late they start.
    said = oks(crowd(address, *[("claim_some", f"agent:a{i}", {"worker": f"w{i}", "most": 5}) for i in range(16)]))
    claimed = [key for found in said for key, _ in found]
    assert len(claimed) == len(set(claimed)) == 60
    assert {epoch for found in said for _, epoch in found} == {1}
    assert Counter(e["action"] for e in desk.history(limit=1000, project="PROJ")) == {"create": 60, "claim": 60}
    assert sum(bool(found) for found in said) >= 12


def test_thirty_two_people_answer_one_question(desk, agent, address, clock):
    desk.create("A")
    got = agent.claim_next("w1")
    asked = agent.ask("PROJ-1", "Which?", claim=got["claim"])
    said = crowd(
        address, *[("answer", f"human:p{i}", {"question": asked["id"], "value": f"v{i}"}) for i in range(32)], at=clock()
    )
    winners = [result["ok"] for result in said if "ok" in result]
    assert len(winners) == 1
    losers = [result for result in said if "error" in result]
    assert {result["error"] for result in losers} == {"already_answered"} and len(losers) == 31
    assert all(f"{winners[0]} answered" in result["message"] for result in losers)
    shown = desk.show(asked["id"])
    assert shown["responded_by"] == winners[0] and shown["response"]["value"] == f"v{winners[0].removeprefix('human:p')}"
    assert [e["action"] for e in desk.history("PROJ-1")] == ["create", "claim", "ask", "answer"]
    assert agent.complete(got["claim"])["state"] == "done", "the claim is still held: one resume"
    _well(desk)


def test_eight_reconcilers_count_each_expiry_once(desk, agent, address, clock):
    for number in range(20):
        desk.create(f"Task {number}")
        agent.claim_next(f"w{number}")
    for number in range(5):
        desk.create(f"Late {number}")
        agent.ask(f"PROJ-{21 + number}", "Which?", default="x", timeout="10m")
    clock.advance(hours=2)
    said = oks(crowd(address, *[("reconcile", f"human:p{i}", {}) for i in range(8)], at=clock()))
    assert sum(result["moved"] for result in said) == 25 and sum(result["failed"] for result in said) == 0
    with raw(address) as run:
        assert run("SELECT DISTINCT retry_count FROM tasks WHERE id <= 20") == [(1,)]
        assert run("SELECT status, count(*) FROM questions GROUP BY status") == [("timeout", 5)]
    counts = Counter(e["action"] for e in desk.history(limit=1000))
    assert (counts["expire"], counts["timeout"]) == (20, 5)
    assert desk.reconcile() == {"moved": 0, "failed": 0}, "a second time changes nothing"
    assert Counter(e["action"] for e in desk.history(limit=1000)) == counts
    _well(desk)


def test_the_last_try_is_escalated_once(desk, agent, address, clock):
    desk.create("A", max_retries=1)
    agent.claim_next("w1")
    clock.advance(hours=2)
    oks(crowd(address, *[("reconcile", f"human:p{i}", {}) for i in range(8)], at=clock()))
    assert [q["reason"] for q in desk.inbox()] == ["retry_exhausted"]
    _well(desk)


def test_answers_against_the_timeout(desk, agent, address, clock):
    """Half of them think that there is still time, the others that it is over. One closes each question, for good."""
    asked = []
    for number in range(4):
        desk.create(f"Task {number}")
        asked.append(agent.ask(f"PROJ-{number + 1}", "Which?", default="x", timeout="10m")["id"])
    before = clock()
    after = clock.advance(minutes=11)
    actors, times = [], []
    for question in asked:
        for i in range(3):
            actors.append(("answer", f"human:p{i}", {"question": question, "value": "that"}))
            times.append(before)
        actors.append(("reconcile", "human:r", {}))
        times.append(after)
    said = crowd(address, *actors, at=times)
    for number, question in enumerate(asked):
        shown = desk.show(question)
        results = said[4 * number : 4 * number + 3]
        winners = [result["ok"] for result in results if "ok" in result]
        assert {result["error"] for result in results if "error" in result} <= {"already_answered"}
        if shown["status"] == "answered":
            assert winners == [shown["responded_by"]]
        else:
            assert (shown["status"], shown["responded_by"], winners) == ("timeout", "system", [])
            assert all("timed out" in result["message"] for result in results)
        closing = [e["action"] for e in desk.history(shown["task"]) if e["action"] in ("answer", "timeout")]
        assert closing == [{"answered": "answer", "timeout": "timeout"}[shown["status"]]]
    _well(desk)


def test_two_dependencies_that_would_close_a_circle(desk, address):
    for number in range(8):
        desk.create(f"Task {number}")
    pairs = [(1, 2), (3, 4), (5, 6), (7, 8)]
    actors = [("depend", "human:ana", {"task": f"PROJ-{a}", "needs": f"PROJ-{b}"}) for x, y in pairs for a, b in ((x, y), (y, x))]
    said = crowd(address, *actors)
    for one, other in zip(said[::2], said[1::2], strict=True):
        assert sorted(["ok" in one, "ok" in other]) == [False, True]
        refused = one if "error" in one else other
        assert refused["error"] == "precondition" and "circle" in refused["message"]
    _well(desk)


def test_a_long_circle_is_refused_at_its_last_link(desk, address):
    for number in range(8):
        desk.create(f"Task {number}")
    links = [{"task": f"PROJ-{i + 1}", "needs": f"PROJ-{(i + 1) % 8 + 1}"} for i in range(8)]
    said = crowd(address, *[("depend", "human:ana", link) for link in links])
    assert sum("error" in result for result in said) == 1
    _well(desk)


def test_siblings_that_finish_together(desk, agent, address, clock):
    """Eight children with one parent and one common dependent: no deadlock shows, and the parent ends once."""
    desk.create("Epic", type="epic")
    children = [desk.create(f"Child {number}", parent="PROJ-1")["key"] for number in range(8)]
    desk.create("After", depends_on=children)
    desk.create("After all", depends_on=["PROJ-1", "PROJ-10"])
    claims = [agent.claim(key, f"w{key}")["claim"]["token"] for key in children]
    assert oks(crowd(address, *[("complete", "agent:coder", {"claim": token}) for token in claims], at=clock())) == ["done"] * 8
    assert [desk.show(f"PROJ-{n}")["state"] for n in (1, 10, 11)] == ["done", "ready", "blocked"]
    assert [e["action"] for e in desk.history("PROJ-1")].count("parent") == 1
    assert [e["action"] for e in desk.history("PROJ-1")].count("accept") == 1
    assert [e["action"] for e in desk.history("PROJ-10")].count("unblock") == 1
    _well(desk)


def test_crossing_families_do_not_deadlock(desk, agent, address, clock):
    """Each of these moves locks its neighbours, some upward and some downward."""
    desk.create("Top")
    for number in range(6):
        desk.create(f"Task {number}", depends_on=["PROJ-1"] if number % 2 else [])
    desk.create("Last", depends_on=[f"PROJ-{n}" for n in range(2, 8)])
    claims = [agent.claim(f"PROJ-{n}", f"w{n}")["claim"]["token"] for n in (1, 2, 4, 6)]
    said = oks(crowd(
        address,
        *[("complete", "agent:coder", {"claim": token}) for token in claims],
        *[("depend", "human:ana", {"task": "PROJ-8", "needs": f"PROJ-{n}"}) for n in (1, 2, 4, 6)],
        at=clock(),
    ))  # fmt: skip
    assert said[:4] == ["done"] * 4
    assert [desk.show(f"PROJ-{n}")["state"] for n in (3, 5, 7, 8)] == ["ready", "ready", "ready", "blocked"]
    _well(desk)


# --- who looks while another decides -----------------------------------------------------------------------------------


def _while_open(desk, verb, task, meanwhile, **args):
    """Makes a move, and starts another one before its commit."""
    store = desk.desk.store
    found = []
    thread = threading.Thread(target=lambda: found.append(meanwhile()))
    with store.begin() as run:
        tx = UnitOfWork(store, run, desk.desk.workspace)
        Moves(tx, desk.desk.now).make(say(verb, desk.who, task=task, **args))
        tx.write()
        thread.start()
        thread.join(0.3)
        assert thread.is_alive(), "they wait for each other"
    thread.join(20)
    assert not thread.is_alive()
    return found[0] if found else None


@pytest.fixture
def other(open_desk):
    return open_desk()


def test_a_dependency_that_ends_while_a_task_joins_it(desk, other):
    desk.create("A")
    born = _while_open(desk, "close", 1, lambda: other.create("B", depends_on=["PROJ-1"]))
    assert born["state"] == "ready"
    desk.create("C")
    desk.create("D")
    joined = _while_open(desk, "close", 3, lambda: other.depend("PROJ-4", "PROJ-3"))
    assert joined["state"] == "ready"
    _well(desk)


def test_a_parent_that_ends_while_a_child_is_born(desk, other):
    from yourturn.core.errors import Precondition

    def try_it():
        with pytest.raises(Precondition, match="its parent PROJ-1 is 'done'"):
            other.create("B", parent="PROJ-1")

    desk.create("A")
    _while_open(desk, "close", 1, try_it)
    _well(desk)


def test_a_parent_that_ends_while_a_child_is_reopened(desk, other):
    from yourturn.core.errors import Precondition

    def try_it():
        with pytest.raises(Precondition, match="its parent PROJ-1 is 'done'"):
            other.reopen("PROJ-2")

    desk.create("A")
    desk.create("B", parent="PROJ-1")
    desk.close("PROJ-2")
    _while_open(desk, "close", 1, try_it)
    _well(desk)


def test_a_parent_that_ends_while_a_failed_run_goes_back(desk, other):
    from yourturn.core.errors import Precondition

    def try_it():
        with pytest.raises(Precondition, match="its parent PROJ-1 is 'done'"):
            other.rewind("PROJ-2", 1)

    desk.create("A")
    desk.create("B", parent="PROJ-1", workflow="b.py")
    desk.fail("PROJ-2")
    _while_open(desk, "close", 1, try_it)
    _well(desk)


def test_a_person_settles_a_step_while_its_holder_writes_it(desk, other, agent):
    """The second writer is refused by the rows as they are then; the first result stays."""
    from yourturn.core.errors import Precondition

    desk.create("A", workflow="a.py")
    claim = agent.claim("PROJ-1", "w1")["claim"]
    step = {"path": "1", "name": "run", "status": "waiting"}
    agent.flag("PROJ-1", "Which?", kind="input", claim=claim, step="1", steps=[step], hold=True)

    def try_it():
        with pytest.raises(Precondition, match="a result never changes"):
            agent.record(claim, [{**step, "status": "completed", "result": "the holder's"}])

    _while_open(desk, "answer", 1, try_it, value="so", signal={"by": "a person"})
    assert desk.steps("PROJ-1")[0]["result"] == {"by": "a person"}
    _well(desk)


def test_two_people_rewind_a_run(desk, other):
    desk.create("A", workflow="a.py")
    claim = desk.claim("PROJ-1", "w1")["claim"]
    desk.record(claim, [{"path": "1", "name": "run", "status": "completed"}])
    desk.park(claim)
    other.note("PROJ-1", "known to both")
    found = _while_open(desk, "rewind", 1, lambda: other.rewind("PROJ-1", 2), to="2")
    assert found["journal"] == 2 and [len(desk.steps("PROJ-1", n)) for n in range(3)] == [1, 1, 1]
    _well(desk)


def test_two_needs_that_end_together(desk, other):
    desk.create("A")
    desk.create("B")
    desk.create("C", depends_on=["PROJ-1", "PROJ-2"])
    _while_open(desk, "close", 1, lambda: other.close("PROJ-2"))
    assert desk.show("PROJ-3")["state"] == "ready"
    _well(desk)


def test_a_circle_of_four_that_two_would_close(desk, other):
    """Neither locks a task that the other has, and neither sees what the other does: only the lock on the graph is left."""
    from yourturn.core.errors import Precondition

    def try_it():
        with pytest.raises(Precondition, match="circle"):
            other.depend("PROJ-3", "PROJ-4")

    for title in "ABCD":
        desk.create(title)
    desk.depend("PROJ-2", "PROJ-3")
    desk.depend("PROJ-4", "PROJ-1")
    _while_open(desk, "dep_add", 1, try_it, needs=desk._refs(["PROJ-2"]))
    assert desk.show("PROJ-3")["depends_on"] == []
    _well(desk)


def test_a_late_move_is_decided_on_fresh_rows(desk, other, agent):
    from yourturn.core.errors import AlreadyClosed

    desk.create("A", awaiting="approval")

    def try_it():
        with pytest.raises(AlreadyClosed, match="human:ana said yes"):
            other.approve("PROJ-1")

    _while_open(desk, "approve", 1, try_it)
    assert audit.verify(desk)["ok"]


def test_a_task_that_is_affected_twice_is_settled_twice(desk):
    """PROJ-1 waits for a container and for its child: it must be looked at again after the container ended."""
    desk.create("Last of all")
    desk.create("Epic", type="epic")
    desk.create("Child", parent="PROJ-2")
    desk.depend("PROJ-1", "PROJ-2", "PROJ-3")
    desk.close("PROJ-3")
    assert [desk.show(f"PROJ-{n}")["state"] for n in (1, 2, 3)] == ["ready", "done", "done"]
    _well(desk)
