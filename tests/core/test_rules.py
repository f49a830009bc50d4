"""Every cell of the transition table: which verb is legal in which state, for which actors, and its target state."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from yourturn.core.actions import VERBS, say
from yourturn.core.decide import decide
from yourturn.core.errors import ClaimLost, IllegalMove, NotAllowed, Precondition, YourturnError
from yourturn.core.model import REVIEW, STATES, SYSTEM, Who
from yourturn.core.rules import ADMIN_VERBS, ALIASES, TRANSITIONS, matrix, valid_from

from .states import LEAST, Bench, case, everything, moves, number
from .transition_recipes import recipes

BIRTHS = {"create", "import"}
ALL_VERBS = [verb for verb in VERBS if verb not in ADMIN_VERBS and verb not in BIRTHS]
SYSTEMS = {verb for (_, verb), rule in TRANSITIONS.items() if rule.who == {"system"}}
#: Cells that exist only for a question which is open without holding the task up.
ASIDE = ("answer", "withdraw", "assign")
#: The actors that a word of the table's `who` column allows, repeated here as the expectation.
MAY = {
    "any": {"agent", "member", "approver", "admin"},
    "holder": {"agent", "member", "approver", "admin"},
    "human": {"member", "approver", "admin"},
    "admin": {"admin"},
    "system": {"system"},
}
ROLES = ("viewer", "agent", "member", "approver", "admin", "system")


def who(role: str) -> Who:
    return {"system": SYSTEM, "agent": Who("agent:coder", "agent")}.get(role) or Who(f"human:{role}", role)


def cell(state: str, verb: str) -> Any:
    return TRANSITIONS.get((state, ALIASES.get((verb, state), verb)))


def test_every_verb_of_the_table_has_an_action():
    said = {verb for _, verb in TRANSITIONS}
    assert said == {*ALL_VERBS, *BIRTHS} - {"approve", "reject"}


def test_every_transition_of_the_table_is_reached_and_no_other(bench):
    wanted = {(source, verb, to) for (source, verb), rule in TRANSITIONS.items() for to in rule.to}
    found = dict(recipes())
    assert set(found) == wanted
    legal = matrix()
    assert len(legal) == 100
    reached = set()
    for landing, recipe in found.items():
        seen = moves(bench.desk, recipe(bench))
        if landing[1] == "heartbeat":  # leaves no event; the recipe has looked at the lease
            seen = [landing]
        assert landing in seen, f"{landing} did not happen: {seen}"
        for source, verb, to in seen:
            assert source is None or verb in legal[source, to], f"{verb} led from {source} to {to}"
        reached |= set(seen)
    assert reached == wanted
    cells = {(source, to) for source, _, to in reached if source is not None}
    assert cells == {cell for cell, verbs in legal.items() if verbs}


def test_ended_is_left_by_reopen_settling_a_failure_or_a_continued_run():
    for (source, target), verbs in matrix().items():
        if source in ("done", "cancelled", "failed") and source != target:
            assert set(verbs) <= ({"reopen"} if source != "failed" else {"reopen", "cancel", "close", "rewind"})


def test_a_failure_goes_on_where_it_was_only_if_it_is_a_run(bench):
    key = bench.failed()
    with pytest.raises(Precondition, match="it has no script"):
        bench.desk.rewind(key)
    assert bench.desk.rewind(bench.failed(workflow="feature.py"))["state"] == "ready"


def speaks_to_nothing(state: str, verb: str) -> bool:
    """A word about a question, in a state that has none."""
    return ALIASES.get((verb, state), verb) in ASIDE and state not in ("human", "review")


def test_illegal_moves_say_what_is_valid_and_change_nothing(bench):
    keys = {state: bench.into(state) for state in STATES}
    tried = 0
    before = everything(bench.desk)
    for state, key in keys.items():
        for verb in ALL_VERBS:
            if cell(state, verb) is not None and not speaks_to_nothing(state, verb):
                continue
            speaker = bench.desk.as_(SYSTEM) if verb in SYSTEMS and verb != "accept" else bench.desk
            with pytest.raises((IllegalMove, Precondition)) as error:
                speaker.do(verb, task=number(bench.desk, key), **LEAST.get(verb, {}))
            words = [
                f"Error: Cannot {verb.replace('_', ' ')} {key}: it is '{state}'",
                f"Valid from '{state}': {', '.join(valid_from(state))}",
            ]
            if (state, verb) == ("blocked", "claim"):  # says what it waits for instead
                (need,) = bench.desk.show(key)["blocked_by"]
                words = [f"Error: Cannot claim {key}", f"Reason: unresolved dependencies: {need}"]
            if (state, verb) == ("working", "claim"):  # and who was faster
                ends = bench.desk.show(key)["claim"]["expires_at"]
                words.insert(1, f"Reason: w1 holds it until {ends[:10]} {ends[11:16]} UTC")
            assert error.value.lines() == words
            assert error.value.exit_code == 4
            assert everything(bench.desk) == before, f"{verb} in {state} changed something"
            tried += 1
    cells = len(STATES) * len(ALL_VERBS)
    assert cells - tried == sum(
        cell(state, verb) is not None and not speaks_to_nothing(state, verb)
        for state in STATES
        for verb in ALL_VERBS
    )
    assert tried > 200


@pytest.mark.parametrize(
    ("state", "valid"),
    [
        ("done", "reopen (admin)"),
        ("cancelled", "reopen (admin)"),
        ("failed", "cancel (human), close (human), reopen (admin)"),
        ("deferred", "stop (human), cancel (human), close (human), wake (human)"),
        ("blocked", "ask, flag, cancel (human), close (human), defer (human)"),
    ],
)
def test_error_lists_the_valid_verbs(state, valid):
    assert ", ".join(valid_from(state)) == valid


def test_the_message_of_the_contract(desk):
    for _ in range(42):
        key = desk.create("work")["key"]
    desk.close(key)
    with pytest.raises(IllegalMove) as error:
        desk.claim(key, "w1")
    assert error.value.lines() == ["Error: Cannot claim PROJ-42: it is 'done'", "Valid from 'done': reopen (admin)"]


# --- who may say it -------------------------------------------------------------------------------------------------


def bring(bench: Bench, state: str, verb: str) -> tuple[str, int | None]:
    """A task in this state, with a question to speak of where the verb needs one."""
    if verb not in ASIDE and (verb not in ("approve", "reject", "accept") or state == REVIEW):
        return bench.into(state), None
    key, asked = bench.waiting("working") if state == "human" else bench.asked_aside(state)
    return key, int(asked[1:])


def refusal(bench: Bench, key: str, verb: str, role: str, question: int | None, claim: str | None) -> YourturnError | None:
    """What the law says to this role; the law is pure, so the task stays where it is."""
    args = dict(LEAST.get(verb, {}))
    if claim is not None and "claim" in VERBS[verb].args:
        args["claim"] = claim
    action = say(verb, who(role), task=number(bench.desk, key), question_id=question, **args)
    try:
        decide(case(bench.desk, key), action, bench.clock())
    except (NotAllowed, ClaimLost) as error:
        return error
    except YourturnError:
        return None
    return None


def test_which_roles_may_use_which_verbs(bench):
    for state, verb in itertools.product(STATES, ALL_VERBS):
        rule = cell(state, verb)
        if rule is None:
            continue
        key, question = bring(bench, state, verb)
        token = bench.claims.get(key, {}).get("token") if state in ("working", "human") else None
        for role in ROLES:
            named = {word for word in rule.who if role in MAY[word]}
            if role == "system":
                named = set() if verb in ("approve", "reject") else {"system"} if verb == "accept" else named | rule.who & {"any"}
            if verb in ("withdraw", "accept") and role == "system":
                continue
            without = refusal(bench, key, verb, role, question, None)
            if verb == "withdraw" and role == "agent" and state == "human":
                assert isinstance(without, NotAllowed), "an agent took a person's gate away"
            elif not named:
                assert isinstance(without, NotAllowed), f"{role} may {verb} in {state}"
            elif named == {"holder"}:
                assert isinstance(without, ClaimLost), f"{role} may {verb} in {state} without the claim"
                if token:
                    assert refusal(bench, key, verb, role, question, token) is None
            else:
                assert without is None, f"{role} may not {verb} in {state}: {without}"


def test_a_refused_actor_changes_nothing(bench):
    keys = {state: bench.into(state) for state in STATES}
    before = everything(bench.desk)
    tried = 0
    for (source, verb), rule in TRANSITIONS.items():
        for role in ROLES[:-1]:
            if source is None or any(role in MAY[word] for word in rule.who) or (verb, source) in ALIASES:
                continue
            with pytest.raises(NotAllowed) as error:
                bench.desk.as_(who(role)).do(verb, task=number(bench.desk, keys[source]), **LEAST.get(verb, {}))
            assert error.value.exit_code == 5
            tried += 1
    assert everything(bench.desk) == before
    assert tried > 150


NEVER = """vet answer approve reject accept resolve hand_back cancel close defer wake reopen assign dep_remove"""


def test_agent_is_refused_a_persons_verb_in_every_state(bench):
    said = []
    for state in STATES:
        for verb in NEVER.split():
            key, question = bring(bench, state, verb) if cell(state, verb) else (bench.into(state), None)
            said.append((verb, {"task": number(bench.desk, key), "question_id": question, **LEAST.get(verb, {})}))
    before = everything(bench.desk)
    for verb, args in said:
        with pytest.raises(NotAllowed):
            bench.agent.do(verb, **args)
    assert everything(bench.desk) == before


def test_an_agent_raises_no_limit_and_removes_no_gate(bench):
    key = bench.ready(requires="approval")
    before = everything(bench.desk)
    limits = {"priority": 0, "max_retries": 99, "complexity": "small", "type": "bug", "acceptance": "none"}
    for field, value in {**limits, "requires": None, "role": None}.items():
        with pytest.raises(NotAllowed, match=f"Cannot change {field} of {key}"):
            bench.agent.update(key, **{field: value})
    assert everything(bench.desk) == before


def test_viewer_is_refused_every_verb(bench):
    viewer = bench.desk.as_(who("viewer"))
    before = everything(bench.desk)
    with pytest.raises(NotAllowed):
        viewer.create("work")
    assert everything(bench.desk) == before
