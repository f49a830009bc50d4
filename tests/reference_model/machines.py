"""Two random state machines that act on a desk; each step is compared with the reference model.

`Naive` says any verb of the table, by anybody, about any task, at any time. Most of it is refused, which is half of what is
promised. But a missing fence shows only where a claim is taken, lost, taken again and then used, and chance rarely gets
there; so `Biased` (in biased.py) plays the situations in which such systems break.

Both draw from the tables (verbs, kinds, what silence does, roles), so a new row is said without being listed here. Every step
goes through `Watched`, which compares the rows with the model's.
"""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from yourturn.client import Client
from yourturn.core.actions import VERBS, say
from yourturn.core.errors import YourturnError
from yourturn.core.model import SYSTEM, Ref, Who
from yourturn.core.questions import RESPONSE_TYPES
from yourturn.core.rules import ADMIN_VERBS, KINDS, ROLES, TIMEOUT_POLICIES, TRANSITIONS
from yourturn.core.task_fields import UPDATES
from yourturn.db.backend import Store
from yourturn.testing import FakeClock

from .comparison import START, Watched
from .coverage import BIRTHS, Cells
from .rows import Job
from .verbs import SHOWN

#: One actor of each role, and two agents: one of them opened the database directly.
CROWD = tuple(
    who
    for role in ROLES
    for who in (
        [SYSTEM] if role == "system" else [Who("agent:a1", "agent", True), Who("agent:a2", "agent")] if role == "agent" else
        [Who(f"human:{role}", role, role == "admin")]
    )
)  # fmt: skip
WORDS = tuple(verb for verb in VERBS if verb not in {*ADMIN_VERBS, *BIRTHS})
HOLDERS = tuple(sorted({verb for (_, verb), row in TRANSITIONS.items() if "holder" in row.who}))
#: Moves that the system makes when they are due, or after a restore. No actor can be the system, so none comes early.
BY_THE_CLOCK = ("wake", "accept", "withdraw", "reopen", "fence")
MOST_TASKS = 7

_MINUTE = 60_000_000
#: Time goes on, sometimes over a deadline, and now and then a clock is set back.
STEPS = (0, 0, 0, 0, 0, 1, _MINUTE, 10 * _MINUTE, 11 * _MINUTE, 30 * _MINUTE, 61 * _MINUTE, 25 * 60 * _MINUTE, -_MINUTE)
#: Everything that one step may need to choose, each equally likely; a step uses what its verb takes.
CHOICES: dict[str, tuple[Any, ...]] = {
    "verb": WORDS,
    "holders": HOLDERS,
    "who": CROWD,
    "proof": ("none", "none", "newest", "newest", "older", "foreign", "worker"),
    "kind": tuple(KINDS),
    "how": (None, *TIMEOUT_POLICIES),
    "type": (None, None, None, *RESPONSE_TYPES),
    "value": (None, "yes", "no", "a", "7", "words", " ", "retry", "without", "human", "cancel"),
    "verdict": ("approved", "approved", "rejected"),
    "question": ("none", "pending", "pending", "any"),
    "step": STEPS,
    "early": (1, 0, 0, -1, None),
    "flag": (False, True),
    "also": (False, True),
    "path": ("1", "2", "2", "3", "3.0.0", "3.1.0"),
    "far": ("running", "waiting", "completed", "completed"),
    "journal": ("ours", "ours", "none", "next"),
    "small": (0, 1, 2, 3),
    "one": range(5040),
    "task": range(5040),
    "other": range(5040),
}


#: One number per step, from which its choices follow.
numbers = st.integers(0, 2**48)


class Machine(RuleBasedStateMachine):
    """A desk, its clock, and the things that can be said."""

    store: Store  # set by runs.py, for all examples of a run
    cells: Cells

    @initialize(
        review=st.sampled_from(["auto", "ask", "10m"]),
        approvals=st.sampled_from(["members", "members", "approvers"]),
        vetting=st.sampled_from([False, False, False, True]),
        tasks=st.integers(1, 3),
    )
    def begin(self, review: str, approvals: str, vetting: bool, tasks: int) -> None:
        self.clock = FakeClock(START)
        self.desk = Watched(self.store, self.clock, self.cells)
        self.said = self.turn = 0
        self.keyed: list[Any] = []
        admin = Client(self.desk, "PROJ")
        for name, value in (("review", review), ("approvals", approvals), ("vetting", vetting)):
            admin.set(name, value)
        for number in range(tasks):
            body = {"workflow": "feature.py"} if number == 1 else {}
            self.say("create", Who("human:admin", "admin", True), args={"title": "work", "project": "PROJ", **body})

    def teardown(self) -> None:
        if hasattr(self, "desk") and not self.desk.box["failed"]:
            self.desk.check_reads()
            self.desk.check_invariants()

    def say(self, verb: str, who: Who, job: Job | None = None, question: int | None = None, key: str | None = None, *,
            args: dict[str, Any] | None = None) -> Any:  # fmt: skip
        """Said and compared; what was refused as it should be is nothing to stop for."""
        self.said += 1
        if who == SYSTEM and verb in BY_THE_CLOCK:
            who = CROWD[-2]
        try:
            action = say(verb, who, task=job.id if job else None, question_id=question, key=key, **(args or {}))
        except YourturnError:
            return None  # not even words
        return self.deliver(action)

    def deliver(self, action: Any) -> Any:
        self.cells.steps += 1
        try:
            done = self.desk.as_(action.who).do(action._replace(args=dict(action.args)))
        except YourturnError:
            return None
        if action.key is not None:
            self.keyed.append(action)
        return done

    # --- choosing ---------------------------------------------------------------------------------------------------

    def chosen(self, number: int) -> dict[str, Any]:
        """hypothesis likes to repeat a number; the step that it is for makes something else of it."""
        self.turn += 1
        chance = Random(number * 1_000_003 + self.turn)
        return {name: chance.choice(values) for name, values in CHOICES.items()}

    def jobs(self) -> list[Job]:
        return list(self.desk.model.jobs.values())

    def job(self, c: dict[str, Any]) -> Job:
        return self.jobs()[c["task"] % len(self.jobs())]

    def one_in(self, c: dict[str, Any], *states: str) -> Job | None:
        fit = [job for job in self.jobs() if job.state in states]
        return fit[c["task"] % len(fit)] if fit else None

    def key(self, c: dict[str, Any]) -> str | None:
        """An idempotency key, now and then."""
        return f"k{self.said}" if c["small"] == 0 else None

    def proof(self, job: Job, how: str, pick: int = 0) -> dict[str, Any]:
        mine = [(token, worker) for task, token, worker in self.desk.tokens if task == job.id]
        others = [(token, worker) for task, token, worker in self.desk.tokens if task != job.id]
        if how == "newest" and mine:
            return {"claim": mine[-1][0]}
        if how == "older" and mine:
            return {"claim": mine[pick % len(mine)][0]}
        if how == "foreign" and others:
            return {"claim": others[pick % len(others)][0]}
        if how == "worker" and mine:
            return {"worker": mine[-1][1]}
        return {}

    def asked(self, job: Job, how: str, pick: int) -> int | None:
        if how == "any":
            every = [q.id for other in self.jobs() for q in other.asked]
            return every[pick % len(every)] if every else None
        fit = [q.id for q in job.asked if q.status == "pending"]
        return fit[pick % len(fit)] if fit and how == "pending" else None

    def args(self, verb: str, job: Job, c: dict[str, Any]) -> dict[str, Any]:
        """Something to say with a verb: what it takes, from what was drawn."""
        takes = VERBS[verb].args
        now = self.clock()
        found: dict[str, Any] = self.proof(job, c["proof"], c["other"]) if "claim" in takes else {}
        if verb == "claim":
            found = {"worker": f"w{c['small']}", "secret": f"s{self.said}", "lease": (None, None, "10m", "2d")[c["small"]]}
        elif verb in ("ask", "flag"):
            found |= self.question_of(verb, c)
        elif "verdict" in takes:
            found |= {"value": c["value"], "verdict": c["verdict"] if verb == "answer" else None, "restart": c["small"] == 3}
            found |= {"text": "late words"} if c["flag"] and c["small"] == 3 else {}
            found |= {"signal": {"status": "COMPLETE"}} if c["other"] % (2 if job.workflow else 9) == 0 else {}
        elif verb == "use":
            found |= {"by": f"s/c{c['small'] % 2}", "digest": SHOWN if c["flag"] or c["also"] else "0" * 64}
        elif verb == "decompose":
            found["children"] = ["a part", "another"][: c["small"] % 3] if len(self.jobs()) < MOST_TASKS else []
        elif verb in ("update", "hand_back"):
            found |= {"fields": self.field_of(c)} if verb == "update" or c["also"] else {}
        elif "needs" in takes:
            other = self.jobs()[c["other"] % len(self.jobs())]
            found["needs"] = [Ref(other.id, "", other.state)]
        elif verb in ("defer", "park"):
            found["until"] = (None, now + 10 * _MINUTE, now + _MINUTE, now - _MINUTE)[c["small"]]
        elif verb == "rewind":
            found |= {"to": (None, c["path"])[c["also"]], "spare": c["flag"]}
        if "steps" in takes:
            found |= self.journal_of(verb, job, c)
        for name, value in (("text", "words"), ("reviewer", "bob")):
            if name in VERBS[verb].required:
                found.setdefault(name, value)
        return found

    def journal_of(self, verb: str, job: Job, c: dict[str, Any]) -> dict[str, Any]:
        """Steps that a run's holder records; now and then another actor records one, on a task without a script."""
        found: dict[str, Any] = {}
        if verb == "step" or c["other"] % (2 if job.workflow else 9) == 0:
            call = {"path": c["path"], "name": "run" if c["task"] % 9 == 0 else "step", "call": c["path"], "status": c["far"]}
            found["steps"] = [{**call, "result": c["value"]}, {**call, "path": "4", "call": 4}][: 1 + (c["task"] % 5 == 0)]
        if c["other"] % 8 == 0:
            found["program"] = {"file": "feature.py", "body": c["path"]}
        if "journal" in VERBS[verb].args:
            found["journal"] = {"ours": job.journal, "none": None, "next": job.journal + 1}[c["journal"]]
        return found

    def question_of(self, verb: str, c: dict[str, Any]) -> dict[str, Any]:
        found = {"kind": c["kind"], "on_timeout": c["how"], "response_type": c["type"], "text": "Which?"}
        found["timeout"] = (None, "10m", "11m", "1m")[c["small"]] if c["task"] % 4 else None
        if c["type"] == "choice":
            found["options"] = ["a", "b"]
        fits = {"choice": "a", "number": "7", "boolean": "yes"}.get(c["type"] or "text", "words")
        if c["task"] % 3:
            found["step"] = c["path"]
        if verb == "flag":
            found |= {"hold": c["also"], "once": c["task"] % 7 == 0, "replace": c["task"] % 5 < 2}
            found |= {"fields": self.field_of(c)} if c["task"] % 6 == 0 else {}
        if verb == "ask" and c["flag"] and c["other"] % 2:
            found |= {"blocking": False, "default": fits}
        elif c["flag"] and c["other"] % 3 == 0:
            found["default"] = fits
        return found

    def field_of(self, c: dict[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {
            "max_retries": 1 + c["small"], "priority": c["small"], "requires": (None, "approval", "review", None)[c["small"]],
            "type": ("task", "epic")[c["small"] % 2], "complexity": ("medium", "xlarge")[c["small"] % 2], "labels": ["l"],
        }  # fmt: skip
        name = tuple(UPDATES)[c["other"] % len(UPDATES)]
        return {name: values.get(name, f"n{c['small']}")}

    def make(self, c: dict[str, Any], who: Who) -> Any:
        jobs = self.jobs()
        args: dict[str, Any] = {"title": "work", "project": "PROJ", "draft": c["small"] == 3}
        args["max_retries"] = (None, 1, 2, 4)[c["other"] % 4]
        args["type"] = "epic" if c["flag"] else None
        args["complexity"] = "xlarge" if c["one"] % 7 == 0 else None
        if c["proof"] == "older":
            args["awaiting"] = c["kind"]
        if c["proof"] == "worker":
            args["requires"] = "approval"
        if c["proof"] == "foreign":
            args["workflow"] = "feature.py"
        if c["one"] % (3 if c["proof"] == "foreign" else 19) == 0:
            args["program"] = {"file": "feature.py", "body": "go()"}
        if jobs and c["small"] in (1, 2):
            args["depends_on"] = [jobs[c["task"] % len(jobs)].id]
        if jobs and c["other"] % 3 == 0:
            args["parent"] = jobs[c["other"] % len(jobs)].id
        if c["one"] % 8 == 0:
            known = {name: value for name, value in args.items() if name in VERBS["import"].args}
            elsewhere = ("ready", "deferred", "done", "failed", "cancelled")[c["one"] // 8 % 5]
            return self.say("import", who, args={**known, "external_id": f"old-{self.said}", "state": elsewhere})
        return self.say("create", who, args=args)

    def anything(self, verb: str, who: Who, job: Job, c: dict[str, Any], key: str | None = None) -> Any:
        about = verb in ("answer", "approve", "reject", "accept", "withdraw", "assign", "use")
        question = self.asked(job, c["question"], c["other"]) if about else None
        return self.say(verb, who, job, question, key, args=self.args(verb, job, c))


class Naive(Machine):
    """Any verb, any actor, any task, any time."""

    @rule(n=numbers)
    def one_step(self, n: int) -> None:
        c = self.chosen(n)
        self.clock.micros += c["step"]
        if c["one"] % 30 == 0:
            self.desk.check_reads()
        elif c["one"] % 30 == 1:
            self.desk.reconcile()
        elif c["one"] % 30 < 5 and len(self.jobs()) < MOST_TASKS:
            self.make(c, c["who"])
        else:
            self.anything(c["verb"], c["who"], self.job(c), c)
