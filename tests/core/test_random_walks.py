"""Random walks over the table on a real desk: the invariants hold after every step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yourturn.client import Client
from yourturn.core.actions import VERBS
from yourturn.core.decide import due, next_due
from yourturn.core.errors import ClaimLost, YourturnError
from yourturn.core.model import ENDED, FINISHED, HUMAN, PENDING, REVIEW, STATES, SYSTEM, WORKING, Case, Who
from yourturn.core.rules import ADMIN_VERBS, ALIASES, KINDS, OUTCOMES, TIMEOUT_POLICIES, TRANSITIONS
from yourturn.testing import FakeClock, temporary_desk

from .states import case, everything, moves, number

pytestmark = pytest.mark.long

TASKS = 4
SPEAKERS = {"admin": Who("human:ana", "admin"), "agent": Who("agent:coder", "agent"), "system": SYSTEM}
VERBS_OF_TASKS = sorted(verb for verb in VERBS if verb not in ADMIN_VERBS and verb != "create")
#: What ends a walk or leads nowhere is proposed less often.
DULL = {"note", "update", "assign", "heartbeat", "cancel", "close", "dep_remove"}

step = st.fixed_dictionaries(
    {
        "pick": st.integers(0, 10_000),
        "wild": st.sampled_from([False] * 5 + [True]),
        "task": st.integers(0, TASKS - 1),
        "other": st.integers(0, TASKS - 1),
        "speaker": st.sampled_from(["admin", "agent", "system"]),
        "kind": st.sampled_from(sorted(KINDS)),
        "silence": st.sampled_from(sorted(TIMEOUT_POLICIES)),
        "verdict": st.sampled_from(["approved", "approved", "rejected"]),
        "blocking": st.booleans(),
        "late": st.sampled_from([False, False, False, True]),
        "minutes": st.sampled_from([0, 0, 0, 1, 11, 61]),
        "reconcile": st.booleans(),
    }
)


class Walk:
    """A desk with a few tasks, the claims that were ever taken, and what must never get smaller."""

    def __init__(self, desk: Client, clock: FakeClock) -> None:
        self.desk, self.clock = desk, clock
        desk.set("review", "10m")
        self.keys = [desk.create(f"task {i}", max_retries=2)["key"] for i in range(TASKS)]
        self.claims: dict[str, list[str]] = {key: [] for key in self.keys}
        self.before: dict[str, Case] = {key: case(desk, key) for key in self.keys}
        self.moved = 0

    def take(self, s: dict[str, Any]) -> None:
        self.clock.advance(minutes=s["minutes"])
        if s["reconcile"]:
            self.desk.reconcile()
            twice = everything(self.desk)
            self.desk.reconcile()
            assert everything(self.desk) == twice, "reconciling twice changed something"
        key = self.keys[s["task"]]
        s = {**s, **self.propose(s, key)}
        frozen, args = everything(self.desk), self.args(s, key)
        try:
            done = self.desk.as_(SPEAKERS[s["speaker"]]).do(s["verb"], task=number(self.desk, key), **args)
        except YourturnError as error:
            assert everything(self.desk) == frozen, f"{s['verb']} was refused ({error}) and changed something"
        else:
            assert args.get("claim") in (None, *self.claims[key][-1:]), "a late write was accepted"
            self.moved += 1
            if done.claim:
                self.claims[key].append(done.claim.token)
        self.check()

    def propose(self, s: dict[str, Any], key: str) -> dict[str, str]:
        """A legal move by an allowed actor; now and then any move by any actor."""
        if s["wild"]:
            return {"verb": VERBS_OF_TASKS[s["pick"] % len(VERBS_OF_TASKS)]}
        state = self.desk.show(key)["state"]
        known = [(verb, rule) for (source, verb), rule in TRANSITIONS.items() if source == state and rule.who != {"system"}]
        lively = [move for move in known if move[0] not in DULL]
        choice = lively if lively and s["pick"] % 5 else known
        verb, rule = choice[s["pick"] % len(choice)]
        agents = rule.who & {"any", "holder"}
        return {"verb": verb, "speaker": "agent" if agents and (s["blocking"] or "human" not in rule.who) else "admin"}

    def args(self, s: dict[str, Any], key: str) -> dict[str, Any]:
        verb, found = s["verb"], dict[str, Any]()
        claims = self.claims[key]
        if "claim" in VERBS[verb].args and claims and s["speaker"] == "agent":
            found["claim"] = claims[0 if s["late"] else -1]
        if verb == "claim":
            return {"worker": "w1", "secret": f"s{self.moved}", "lease": "1h"}
        if verb in ("ask", "flag"):
            fields = {"text": "Which?", "kind": s["kind"], "timeout": "10m", "on_timeout": s["silence"]}
            aside = {"blocking": False, "kind": "input", "default": "x"} if verb == "ask" and not s["blocking"] else {}
            return {**found, **fields, **aside}
        if verb == "answer":
            return {"verdict": s["verdict"], "text": "words"} if s["kind"] == "input" else {"verdict": s["verdict"]}
        if verb in ("dep_add", "dep_remove"):
            return {"needs": self.desk._refs([self.keys[s["other"]]])}
        simple: dict[str, dict[str, Any]] = {
            "assign": {"reviewer": "bob"}, "decompose": {"children": ["a child"]}, "note": {"text": "By the way"},
            "update": {"fields": {"title": "Better"}}, "defer": {"until": self.clock() + 1_000_000},
        }  # fmt: skip
        return {**found, **simple.get(verb, {})}

    def check(self) -> None:
        for key in [task["key"] for task in self.desk.list()]:
            now = case(self.desk, key)
            self.sound(now)
            if key in self.before:
                self.grown(self.before[key], now)
            self.before[key] = now
            for source, verb, to in moves(self.desk, key)[-5:]:
                assert to in TRANSITIONS[source, ALIASES.get((verb, source or ""), verb)].to
        self.graph()

    def sound(self, c: Case) -> None:
        t = c.task
        assert t is not None and t.state in STATES
        pending = [q for q in c.questions if q.status == PENDING]
        asked = [q for q in pending if q.blocking]
        finished = [q for q in asked if q.reason == FINISHED]
        assert (t.state == HUMAN) == (len(asked) > len(finished))
        assert len(finished) <= 1 and (not finished or t.state in (HUMAN, REVIEW))
        assert t.state != WORKING or t.holder is not None
        assert t.holder is None or t.state in (WORKING, HUMAN)
        assert t.state not in ENDED or not pending
        assert (t.state in ENDED) == (t.ended_at is not None)
        assert t.due_at == next_due(t, list(c.questions))
        assert t.state != "ready" or not c.needs
        assert t.state != "blocked" or c.needs
        assert t.state != "done" or not c.children
        assert sum(q.reason == "retry_exhausted" for q in pending) <= 1
        assert t.event_count == len(self.desk.history(t.key))
        owed = due(c, self.clock())
        assert owed is None or (t.due_at is not None and t.due_at <= self.clock()), f"{owed} is owed, but nobody would notice"

    def grown(self, old: Case, new: Case) -> None:
        a, b = old.task, new.task
        assert a is not None and b is not None
        assert b.epoch >= a.epoch and b.version >= a.version and b.updated_at >= a.updated_at
        assert (b.version > a.version) == (a != b)
        if a.state in ("done", "cancelled") and b.state != a.state:
            assert moves(self.desk, b.key)[a.event_count][1] == "reopen"

    def graph(self) -> None:
        """No task waits for itself, and every answer fits the table."""
        tasks = {task["key"]: task for task in self.desk.list()}
        rest = {key: set(task["depends_on"]) for key, task in tasks.items()}
        while free := [key for key, needs in rest.items() if not needs & rest.keys()]:
            for key in free:
                del rest[key]
        assert not rest, f"a circle: {rest}"
        for task in tasks.values():
            for q in task["questions"]:
                if q["status"] == "answered":
                    assert q["responded_by"] == "human:ana"
                    assert OUTCOMES[q["kind"], q["response"]["verdict"]] != "refused"
                elif q["status"] == "timeout":
                    assert q["responded_by"] == "system" and (q["response"] or {"verdict": None})["verdict"] is None


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(step, min_size=25, max_size=60))
def test_the_invariants_hold_after_every_step_of_a_random_walk(steps):
    clock = FakeClock(1_790_000_000_000_000)
    with temporary_desk(clock=clock) as desk:
        walk = Walk(desk, clock)
        for taken in steps:
            walk.take(taken)


zombie = st.fixed_dictionaries(
    {
        "late": st.sampled_from(["complete", "heartbeat", "release", "park", "fail", "ask", "decompose"]),
        "between": st.lists(st.sampled_from(["expire", "claim", "ask", "answer", "reconcile", "release"]), max_size=6),
    }
)


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(zombie, min_size=1, max_size=4))
def test_a_claim_that_was_once_lost_stays_lost(plans):
    """Biased toward re-claims and late writes: each plan loses a claim, lets things happen, then writes with it."""
    clock = FakeClock(1_790_000_000_000_000)
    with temporary_desk(clock=clock) as desk:
        desk.set("review", "ask")
        agent = desk.as_(SPEAKERS["agent"])
        for plan in plans:
            key = desk.create("work", max_retries=100)["key"]
            lost = agent.claim(key, "w1")["claim"]
            clock.advance(hours=1)
            fresh: list[dict[str, Any]] = []
            for move in plan["between"]:
                happen(desk, agent, clock, key, fresh, move)
            frozen = everything(desk)
            args = {"ask": {"text": "late?"}, "decompose": {"children": ["late"]}}.get(plan["late"], {})
            try:
                agent.do(plan["late"], task=number(desk, key), claim=lost["token"], **args)
            except ClaimLost:
                assert everything(desk) == frozen
            else:
                raise AssertionError(f"{plan['late']} of a lost claim was accepted")


def happen(desk: Client, agent: Client, clock: FakeClock, key: str, fresh: list[dict[str, Any]], move: str) -> None:
    """Something that a second worker or a person may do meanwhile; what is not possible now is left out."""
    try:
        if move == "expire":
            clock.advance(hours=1)
        elif move == "claim":
            fresh.append(agent.claim(key, "w1")["claim"])
        elif move == "ask":
            agent.ask(key, "?", kind="approval", claim=fresh[-1] if fresh else None)
        elif move == "answer":
            desk.reject(key, "again")
        elif move == "release" and fresh:
            agent.release(fresh[-1])
        elif move == "reconcile":
            desk.reconcile()
    except YourturnError:
        pass
