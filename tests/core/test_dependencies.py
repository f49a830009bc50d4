"""Dependencies, parents and the queue."""

from __future__ import annotations

import pytest

from yourturn.core.actions import say
from yourturn.core.decide import decide
from yourturn.core.errors import Invalid, Precondition
from yourturn.core.model import Ref

from .states import case, everything, moves, number, row, state, verbs


def states(bench, *keys):
    return [state(bench.desk, key) for key in keys]


# --- dependencies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["close", "cancel"])
def test_the_last_resolved_dependency_unblocks_in_the_same_commit(bench, ending):
    first, second = bench.ready(), bench.ready()
    key = bench.ready(depends_on=[first, second])
    assert bench.desk.show(key)["blocked_by"] == [first, second]
    bench.desk.close(first)
    assert states(bench, key) == ["blocked"]
    getattr(bench.desk, ending)(second)
    assert row(bench.desk, key).state == "ready"
    assert (bench.desk.show(key)["depends_on"], bench.desk.show(key)["blocked_by"]) == ([first, second], [])
    ended, freed = bench.desk.history()[-2:]
    assert (ended["task"], freed["task"], freed["action"], freed["actor"]) == (second, key, "unblock", "system")


def test_a_chain_moves_one_link_at_a_time(bench):
    a = bench.ready()
    b = bench.ready(depends_on=[a])
    c = bench.ready(depends_on=[b])
    bench.desk.close(a)
    assert states(bench, b, c) == ["ready", "blocked"]


def test_dependency_added_during_work_blocks_after_release(bench):
    key = bench.working()
    needs = [bench.add_need(key), bench.add_need(key)]
    assert state(bench.desk, key) == "working", "who works already goes on"
    bench.agent.release(bench.claims[key])
    assert state(bench.desk, key) == "blocked"
    bench.desk.undepend(key, *needs)
    assert state(bench.desk, key) == "ready"


def test_a_circle_is_refused_however_long_also_through_parents(bench):
    a = bench.ready()
    b = bench.ready(depends_on=[a])
    c = bench.ready(depends_on=[b])
    epic = bench.ready(type="epic")
    child = bench.ready(parent=epic)
    waits = bench.ready(depends_on=[epic])
    before = everything(bench.desk)
    for task, need in ((a, a), (a, b), (a, c), (b, c), (child, epic), (child, waits), (epic, waits)):
        with pytest.raises(Precondition, match=r"circle|wait for itself"):
            bench.desk.depend(task, need)
    for need in (epic, waits):
        with pytest.raises(Precondition, match="circle"):
            bench.desk.create("another child", parent=epic, depends_on=[need])
    assert everything(bench.desk) == before


def test_decomposing_into_a_circle_changes_nothing(bench):
    key = bench.ready()
    waits = bench.ready(depends_on=[key])
    before = everything(bench.desk)
    with pytest.raises(Precondition, match="circle"):
        bench.desk.decompose(key, ["fine", {"title": "waits for who waits", "depends_on": [waits]}])
    assert everything(bench.desk) == before


def test_a_dependency_that_ended_meanwhile_does_not_block(bench):
    """The caller's picture of a need may be old; the door looks again."""
    key, need = bench.ready(), bench.ready()
    bench.desk.close(need)
    stale = Ref(number(bench.desk, need), need, "working")
    bench.desk.desk.do(say("dep_add", bench.desk.who, task=number(bench.desk, key), needs=[stale]))
    assert state(bench.desk, key) == "ready"


def test_a_failed_dependency_asks_a_person_once_for_each_task_that_waits(bench):
    need = bench.working()
    waiting = [bench.ready(depends_on=[need]) for _ in range(2)]
    bench.agent.fail(bench.claims[need], "the API is gone")
    for key in waiting:
        task = bench.desk.show(key)
        assert (task["state"], task["awaiting"], len(task["questions"])) == ("human", "escalation", 1)
        asked = task["questions"][0]
        assert (asked["reason"], asked["asked_by"], asked["metadata"]) == ("dependency_failed", "system", {"failed": need})
        assert need in asked["text"] and "the API is gone" in asked["text"]
    bench.desk.answer(waiting[0], "retry")
    bench.desk.reconcile(), bench.desk.note(waiting[0], "still here")
    assert states(bench, need, *waiting) == ["ready", "blocked", "blocked"]
    assert [len(bench.desk.show(key)["questions"]) for key in waiting] == [1, 1]
    bench.desk.fail(need, "again")
    assert [len(bench.desk.show(key)["questions"]) for key in waiting] == [2, 2], "a new failure is news"


def test_the_answer_to_a_failed_dependency_acts(bench):
    failed = bench.failed()
    keys = {option: bench.ready(depends_on=[failed]) for option in ("without", "cancel", "retry")}
    assert bench.desk.answer(keys["without"], "Go on without it")["task_state"] == "ready"
    assert bench.desk.show(keys["without"])["depends_on"] == []
    assert bench.desk.answer(keys["cancel"], "cancel")["task_state"] == "cancelled"
    assert state(bench.desk, failed) == "failed"
    bench.desk.answer(keys["retry"], "retry")
    assert states(bench, failed, keys["retry"]) == ["ready", "blocked"]
    bench.desk.close(failed)
    assert state(bench.desk, keys["retry"]) == "ready"


def test_words_do_not_answer_a_failed_dependency(bench):
    key = bench.ready(depends_on=[bench.failed()])
    before = everything(bench.desk)
    with pytest.raises(Invalid, match="takes one of: retry, without, cancel"):
        bench.desk.answer(key, "go on without it, please")
    assert everything(bench.desk) == before


@pytest.mark.parametrize("how", ["reopen", "cancel", "dep_remove", "close"])
def test_question_about_failed_dependency_closes_when_its_cause_is_gone(bench, how):
    failed = bench.failed()
    key = bench.ready(depends_on=[failed])
    {
        "reopen": lambda: bench.desk.reopen(failed), "cancel": lambda: bench.desk.cancel(failed),
        "dep_remove": lambda: bench.desk.undepend(key, failed), "close": lambda: bench.desk.close(failed),
    }[how]()  # fmt: skip
    task = bench.desk.show(key)
    assert task["state"] == ("blocked" if how == "reopen" else "ready")
    assert [(q["status"], q["responded_by"]) for q in task["questions"]] == [("cancelled", "system")]


def test_nothing_stays_blocked_on_something_failed_without_a_question(bench):
    failed = bench.failed()
    key = bench.ready(depends_on=[failed])
    assert bench.desk.hand_back(key)["awaiting"] == "escalation", "it is asked again at once"


def test_the_last_try_asks_with_choices_that_act(bench):
    lands = {"retry": "ready", "human": "human", "cancel": "cancelled", "use the other API": "ready"}
    for answer, lands_in in lands.items():
        key = bench.working(max_retries=1)
        bench.agent.release(bench.claims[key])
        asked = bench.desk.show(key)["questions"][-1]
        assert [o["id"] for o in asked["options"]] == ["retry", "human", "cancel"] and asked["allow_other"]
        told = bench.desk.answer(asked["id"], answer)
        task = bench.desk.show(key)
        assert (task["state"], task["retry_count"]) == (lands_in, 0)
        if answer == "human":
            assert told["id"] == asked["id"] and told["status"] == "answered", "not the question that it led to"
            assert task["awaiting"] == "work" and bench.desk.approve(key)["state"] == "done"


@pytest.mark.parametrize("word", ["no", "No.", "yes", "ok", "0", "nope", "stop", "nah"])
def test_a_bare_yes_or_no_is_no_advice_for_the_next_try(bench, word):
    key = bench.working(max_retries=1)
    bench.agent.release(bench.claims[key])
    with pytest.raises(Invalid, match=r"takes one of: retry, human, cancel \(or advice of more than a word\)"):
        bench.desk.answer(key, word)
    assert state(bench.desk, key) == "human"


def test_more_tries_close_the_question_about_the_last_one(bench):
    key = bench.working(max_retries=1)
    bench.agent.release(bench.claims[key])
    task = bench.desk.update(key, max_retries=5)
    assert (task["state"], task["awaiting"]) == ("ready", None)
    assert bench.agent.claim(key, "w9")["claim"]


def test_two_failed_dependencies_are_two_questions_one_after_the_other(bench):
    needs = [bench.ready(), bench.ready()]
    key = bench.ready(depends_on=needs)
    for need in needs:
        bench.desk.fail(need)
    assert len(bench.desk.show(key)["questions"]) == 1
    bench.desk.answer(key, "without")
    assert [q["metadata"]["failed"] for q in bench.desk.show(key)["questions"]] == needs


def test_new_dependency_on_a_failed_task_asks_a_person(bench):
    failed = bench.failed()
    assert bench.desk.show(bench.ready(depends_on=[failed]))["state"] == "human"
    key = bench.ready()
    assert bench.desk.depend(key, failed)["state"] == "human"
    asleep = bench.deferred()
    bench.desk.depend(asleep, failed)
    assert state(bench.desk, asleep) == "deferred"
    assert bench.desk.wake(asleep)["awaiting"] == "escalation"
    bench.desk.cancel(failed)
    assert state(bench.desk, key) == "ready"


def test_reopening_blocks_ready_dependants_again(bench):
    need = bench.done()
    ready, busy = bench.ready(depends_on=[need]), bench.working(depends_on=[need])
    bench.desk.reopen(need)
    assert states(bench, ready, busy) == ["blocked", "working"]
    bench.desk.close(need)
    assert states(bench, ready) == ["ready"]


# --- parents ----------------------------------------------------------------------------------------------------------


def test_a_parent_waits_for_its_children_and_then_has_work_left(bench):
    parent = bench.ready()
    children = [bench.ready(parent=parent), bench.ready(parent=parent)]
    assert states(bench, parent) == ["blocked"]
    bench.desk.close(children[0])
    assert states(bench, parent) == ["blocked"]
    bench.desk.cancel(children[1])
    assert states(bench, parent) == ["ready"]


@pytest.mark.parametrize("review", ["auto", "ask"])
def test_container_completes_with_its_children_and_so_does_its_parent(bench, review):
    bench.desk.set("review", review)
    top = bench.ready(type="epic")
    epic = bench.ready(type="epic", parent=top)
    child = bench.ready(parent=epic)
    after = bench.ready(depends_on=[top])
    bench.desk.close(child)
    if review == "ask":
        assert states(bench, epic, top, after) == ["review", "blocked", "blocked"]
        bench.desk.accept(epic)
        assert states(bench, epic, top) == ["done", "review"]
        bench.desk.accept(top)
    assert states(bench, epic, top, after) == ["done", "done", "ready"]
    assert ("blocked", "parent", "review") in moves(bench.desk, epic)


def test_task_that_waits_for_child_and_container_is_freed_in_any_order(bench):
    bench.desk.set("review", "auto")
    waits = bench.ready()
    epic = bench.ready(type="epic")
    child = bench.ready(parent=epic)
    bench.desk.depend(waits, child, epic)
    bench.desk.close(child)
    assert states(bench, epic, waits) == ["done", "ready"]


def test_a_parent_cannot_be_done_while_a_child_is_open(bench):
    parent = bench.working()
    child = bench.ready(parent=parent)
    moves_to_done = (
        lambda: bench.agent.complete(bench.claims[parent]),
        lambda: bench.desk.close(parent),
        lambda: bench.desk.resolve(bench.desk.flag(parent, "?")),
    )
    for move in moves_to_done:
        with pytest.raises(Precondition, match=f"open children: {child}"):
            move()
    assert states(bench, parent) == ["human"]
    bench.desk.fail(child)
    assert bench.desk.resolve(parent)["state"] == "done"


@pytest.mark.parametrize("ended", ["done", "failed", "cancelled", "review"])
def test_no_child_is_born_to_or_reopened_under_a_parent_that_has_ended(bench, ended):
    parent = bench.into(ended)
    with pytest.raises(Precondition, match=f"its parent {parent} is '{ended}'"):
        bench.desk.create("too late", parent=parent)
    family = bench.ready()
    child = bench.ready(parent=family)
    bench.desk.close(child), bench.desk.close(family)
    with pytest.raises(Precondition, match=f"its parent {family} is 'done'"):
        bench.desk.reopen(child)
    bench.desk.reopen(family), bench.desk.reopen(child)
    assert states(bench, family, child) == ["blocked", "ready"]


def test_a_failed_child_is_a_question_to_its_parent(bench):
    parent = bench.ready()
    child = bench.ready(parent=parent)
    bench.desk.fail(child, "no luck")
    assert bench.desk.show(parent)["questions"][0]["reason"] == "dependency_failed"


# --- decompose --------------------------------------------------------------------------------------------------------


def test_decompose_makes_children_and_waits_for_them_in_one_commit(bench):
    outside = bench.ready()
    key = bench.working(priority=1)
    children = ["A", {"title": "B", "priority": 0, "depends_on": [outside]}]
    task = bench.agent.decompose(bench.claims[key], children)
    assert (task["state"], task["claim"], task["retry_count"]) == ("blocked", None, 0)
    a, b = bench.desk.list(parent=key)
    assert task["depends_on"] == [a["key"], b["key"]]
    assert [(t["title"], t["priority"], t["state"]) for t in (a, b)] == [("A", 1, "ready"), ("B", 0, "blocked")]
    assert verbs(bench.desk, key) == ["create", "claim", "decompose"]
    for child in (outside, a, b):
        bench.desk.close(child)
    assert state(bench.desk, key) == "ready"


def test_a_container_that_is_decomposed_again_waits_for_the_new_children(bench):
    bench.desk.set("review", "auto")
    epic = bench.ready(type="epic")
    bench.desk.close(bench.ready(parent=epic))
    bench.desk.reopen(epic)
    assert bench.desk.decompose(epic, ["more"])["state"] == "blocked"


def test_a_container_made_by_decomposing_completes_too(bench):
    bench.desk.set("review", "auto")
    epic = bench.created(type="epic", complexity="xlarge")
    with pytest.raises(Precondition, match="decompose it first"):
        bench.desk.vet(epic)
    bench.desk.decompose(epic, ["A", "B"])
    for child in bench.desk.list(parent=epic):
        bench.desk.close(child)
    assert state(bench.desk, epic) == "done"


@pytest.mark.parametrize("children", [[], [5], [{"description": "no title"}], [""], [{"title": "x", "nonsense": 1}]])
def test_children_that_cannot_be_are_refused_and_nothing_is_left_behind(bench, children):
    key = bench.ready()
    before = everything(bench.desk)
    with pytest.raises((Invalid, Precondition)):
        bench.desk.decompose(key, ["fine", *children] if children else [])
    assert everything(bench.desk) == before


# --- who is next ------------------------------------------------------------------------------------------------------


def test_next_goes_by_priority_then_age_then_id(bench):
    late = bench.ready(priority=3)
    old = bench.ready(priority=1)
    bench.clock.advance(seconds=1)
    young, twin = bench.ready(priority=1), bench.ready(priority=1)
    first = bench.ready(priority=0)
    order = [first, old, young, twin, late]
    assert [task["key"] for task in bench.desk.ready()] == order
    assert bench.desk.next()["key"] == first
    assert [bench.agent.claim_next("w1")["task"]["key"] for _ in order] == order
    assert bench.agent.claim_next("w1") is None and bench.desk.next() is None


def test_next_is_only_work_that_can_be_claimed(bench):
    for name in ("created", "working", "human", "review", "done", "failed", "cancelled", "deferred"):
        bench.into(name)
    epic = bench.ready(type="epic")
    need = bench.ready()
    bench.ready(depends_on=[need])
    assert [task["key"] for task in bench.desk.ready()] == [need]
    assert bench.agent.claim_next("w1")["task"]["key"] == need
    assert bench.agent.claim_next("w1") is None
    assert state(bench.desk, epic) == "ready"


def test_next_stays_within_an_epic_however_deep(bench):
    bench.ready(priority=0)
    epic = bench.ready(type="epic")
    inner = bench.ready(type="epic", parent=epic)
    deep, shallow = bench.ready(parent=inner), bench.ready(parent=epic, priority=1)
    assert bench.desk.next(epic)["key"] == shallow
    assert [bench.agent.claim_next("w1", epic=epic)["task"]["key"] for _ in range(2)] == [shallow, deep]
    assert bench.agent.claim_next("w1", epic=epic) is None


def test_tries_cannot_be_lowered_below_what_is_used(bench):
    """Else the task would be ready, but not claimable, without a question about it."""
    key = bench.working(max_retries=2)
    bench.agent.release(bench.claims[key])
    with pytest.raises(Precondition, match="1 of its tries is used already"):
        bench.desk.update(key, max_retries=1)
    assert bench.desk.next()["key"] == key


def test_children_inherit_the_fields_that_choose_a_worker(bench):
    key = bench.working(priority=1, role="backend", labels=["web"])
    bench.agent.decompose(bench.claims[key], ["A", {"title": "B", "role": "docs", "labels": []}])
    first, second = (t for t in bench.desk.list(parent=key))
    assert (first["priority"], first["role"], first["labels"]) == (1, "backend", ["web"])
    assert (second["priority"], second["role"], second["labels"]) == (1, "docs", [])


@pytest.mark.parametrize("complexity", ["medium", "xlarge"])
@pytest.mark.parametrize("type_", ["task", "epic", "bug"])
@pytest.mark.parametrize("children", [False, True])
def test_what_counts_as_work_is_the_same_for_claim_ready_and_next(bench, complexity, type_, children):
    """The guards of claim and the store's WORKABLE say the same. Rows of older desks may be in any of these shapes."""
    key = bench.ready(type=type_)
    if children:
        bench.desk.close(bench.ready(parent=key))
    with bench.desk.desk.store.begin() as run:
        was = {"size": complexity, "key": key}
        run("UPDATE tasks SET state = 'ready', ended_at = NULL, complexity = :size WHERE key = :key", was)
    bench.desk.desk.store.case_cache.forget(number(bench.desk, key))
    offered = {t["key"] for t in bench.desk.desk.read_stored(lambda r: bench.desk._encode(r, r.tasks(workable=True)))}
    try:
        claim = say("claim", bench.agent.who, task=number(bench.desk, key), worker="w", secret="s")
        decide(case(bench.desk, key), claim, bench.clock())
        claimable = True
    except Precondition:
        claimable = False
    assert claimable == (key in offered)
    assert claimable == (type_ != "epic" and (complexity != "xlarge" or children))


def test_the_hint_on_a_large_task_goes_with_the_guard(bench):
    from yourturn.display import next_steps

    key = bench.created(complexity="xlarge")
    assert "turn decompose" in next_steps(bench.desk.show(key))[0]
    bench.desk.decompose(key, ["a"])
    bench.desk.close(bench.desk.list(parent=key)[0])
    task = bench.desk.show(key)
    assert task["state"] == "ready" and "turn claim" in next_steps(task)[0], "it was decomposed: it can be claimed"
