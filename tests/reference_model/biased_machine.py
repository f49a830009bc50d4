"""A random machine that prefers the dangerous moves: claims that are lost and used all the same, answers a moment before and
after the time is up, several questions at once, reopening, families, the same request twice."""

from __future__ import annotations

from typing import Any

from hypothesis.stateful import rule

from yourturn.core.actions import say
from yourturn.core.model import SYSTEM
from yourturn.core.rules import ROLES, TRANSITIONS

from .coverage import ILLEGAL
from .machines import CROWD, MOST_TASKS, Machine, numbers
from .rows import Job

PEOPLE = tuple(who for who in CROWD if "human" in ROLES[who.role])
SYSTEMS = {verb for (_, verb), row in TRANSITIONS.items() if row.who == {"system"}}
AGENTS = tuple(who for who in CROWD if who.role == "agent")
ADMINS = tuple(who for who in CROWD if "admin" in ROLES[who.role])
LATE_ANSWERS = ("answer", "approve", "reject", "withdraw")
ANSWERS = (*LATE_ANSWERS, "accept", "hand_back")


class Biased(Machine):
    """Claims that are lost and used all the same, deadlines met to the microsecond, families, reopening, echoes."""

    @rule(n=numbers)
    def one_step(self, n: int) -> None:
        c = self.chosen(n)
        scene = SCENES[c["one"] % len(SCENES)]
        getattr(self, scene)(c)

    def claims(self, c: dict[str, Any]) -> None:
        who, worker = AGENTS[c["other"] % 2], f"w{c['task'] % 2}"
        job = self.one_in(c, "ready")
        if job is None or c["flag"]:
            self.cells.steps += 1
            self.desk.as_(who).claim_next(worker, lease="10m" if c["also"] else None, runs=c["task"] % 3 > 0)
        else:
            self.say("claim", who, job, key=self.key(c), args={"worker": worker, "secret": f"s{self.said}"})

    def writes_with_a_claim(self, c: dict[str, Any]) -> None:
        """Whichever claim was ever given, late or not."""
        tokens = self.desk.tokens
        if not tokens:
            self.moves_on(c)
            return
        task, token, _ = tokens[-1] if c["flag"] else tokens[c["other"] % len(tokens)]
        self.write(c, self.desk.model.jobs[task], token)

    def write(self, c: dict[str, Any], job: Job, token: str) -> None:
        args = self.args(c["holders"], job, {**c, "proof": "none"})
        self.say(c["holders"], AGENTS[c["task"] % 2], job, args={**args, "claim": token})

    def outlives_its_lease(self, c: dict[str, Any]) -> None:
        """To the microsecond at which a lease ends, perhaps past another's claim; then its holder writes."""
        held = [job for job in self.jobs() if job.holder]
        if not held:
            self.moves_on(c)
            return
        job = held[c["task"] % len(held)]
        assert job.ends is not None and job.token is not None
        token = job.token
        self.clock.micros = max(self.clock.micros, job.ends - (c["early"] or 0))
        if c["also"]:
            self.say("claim", AGENTS[1], job, args={"worker": "w1", "secret": f"s{self.said}"})
        self.write(c, self.desk.model.jobs[job.id], token)

    def asks(self, c: dict[str, Any]) -> None:
        job = self.one_in(c, "working", "human") or self.job(c)
        c = {**c, "proof": "newest" if c["also"] else "none", "type": None if c["small"] else c["type"]}
        self.say("ask", AGENTS[c["other"] % 2], job, key=self.key(c), args=self.args("ask", job, c))

    def answers(self, c: dict[str, Any]) -> None:
        """A moment before, at, or after the end of the question's time; after a reconciler or before it."""
        asking = [job for job in self.jobs() if job.pending()]
        if not asking:
            self.moves_on(c)
            return
        job = asking[c["task"] % len(asking)]
        ends = [q.ends for q in job.pending() if q.ends is not None]
        if c["early"] is not None and ends:
            self.clock.micros = max(self.clock.micros, min(ends) - c["early"])
        if c["also"]:
            self.desk.reconcile()
        who, verb = PEOPLE[c["other"] % len(PEOPLE)], ANSWERS[c["task"] % len(ANSWERS)]
        self.anything(verb, who, self.desk.model.jobs[job.id], {**c, "question": "pending"}, self.key(c))

    def answers_the_system(self, c: dict[str, Any]) -> None:
        """A failure is asked about, or used-up tries: what each choice does, and what is no choice."""
        asking = [(job, q) for job in self.jobs() for q in job.pending() if q.by == "system" and q.reason != "finished"]
        if not asking:
            job = self.one_in(c, "working") or self.one_in(c, "ready") or self.job(c)
            if job.state == "working" and c["small"]:
                self.say("update", ADMINS[0], job, args={"fields": {"max_retries": job.tries + 1}})
                self.say("release", ADMINS[0], job)
            else:
                verb, args = ("fail", {}) if c["flag"] else ("dep_add", self.args("dep_add", job, {**c, "proof": "none"}))
                self.say(verb, ADMINS[0], job, args=args)
            asking = [(job, q) for job in self.jobs() for q in job.pending() if q.by == "system" and q.reason != "finished"]
        if not asking:
            return
        job, q = asking[c["task"] % len(asking)]
        self.say("answer", ADMINS[0], job, q.id, args={"value": c["value"]})

    def answers_again(self, c: dict[str, Any]) -> None:
        closed = [(job, q.id) for job in self.jobs() for q in job.asked if q.status != "pending"]
        if not closed:
            self.moves_on(c)
            return
        job, question = closed[c["task"] % len(closed)]
        verb = (*LATE_ANSWERS, "assign")[c["other"] % 5]
        self.say(verb, ADMINS[0], job, question, args=self.args(verb, job, c))

    def uses(self, c: dict[str, Any]) -> None:
        """What was given, or was not, for this or something else, by one call or another."""
        asked = [(job, q) for job in self.jobs() for q in job.asked if q.kind == "permission"]
        if not asked or c["small"] == 0:
            job = self.one_in(c, "working", "ready", "human") or self.job(c)
            proof = self.proof(job, "newest")
            self.say("ask", AGENTS[c["other"] % 2], job, args={"text": "Which?", "kind": "permission", **proof})
            return
        job, q = asked[c["task"] % len(asked)]
        if q.status == "pending" and c["flag"]:
            self.say("approve", ADMINS[0], job, q.id)
        who = AGENTS[c["other"] % 2]
        self.say("use", who, job, q.id, args=self.args("use", job, {**c, "proof": "newest" if job.holder else "none"}))

    def reopens(self, c: dict[str, Any]) -> None:
        job = self.one_in(c, "done", "failed", "cancelled")
        if job is None:
            self.moves_on(c)
            return
        self.say("reopen", ADMINS[0], job)

    def makes_a_family(self, c: dict[str, Any]) -> None:
        if c["flag"] and len(self.jobs()) < MOST_TASKS:
            self.make({**c, "other": c["other"] * 3, "proof": "none"}, PEOPLE[c["small"] % len(PEOPLE)])
        else:
            verb = ("dep_add", "dep_add", "dep_remove", "decompose")[c["small"]]
            self.say(verb, ADMINS[0], self.job(c), args=self.args(verb, self.job(c), {**c, "proof": "none"}))

    def moves_on(self, c: dict[str, Any]) -> None:
        """A legal move by an actor that the rules allow, with the proof of a claim if there is one."""
        job = self.job(c)
        rows = [(verb, row) for (state, verb), row in TRANSITIONS.items() if state == job.state]
        verb, row = rows[c["other"] % len(rows)]
        who = next(who for who in (*PEOPLE[c["small"] % 3 :], *ADMINS, *AGENTS, SYSTEM) if row.who & ROLES[who.role])
        self.anything(verb, who, job, {**c, "proof": "newest" if c["flag"] else "none"}, self.key(c))

    def says_what_the_table_does_not_know(self, c: dict[str, Any]) -> None:
        job = self.job(c)
        unknown = [verb for state, verb in sorted(ILLEGAL) if state == job.state]
        verb = unknown[c["other"] % len(unknown)]
        self.anything(verb, SYSTEM if verb in SYSTEMS else ADMINS[0], job, {**c, "proof": "none", "question": "none"})

    def says_it_twice(self, c: dict[str, Any]) -> None:
        """The same words with the same idempotency key."""
        if not self.keyed:
            self.moves_on(c)
            return
        action = self.keyed[c["task"] % len(self.keyed)]
        fresh = {"secret": f"s{self.said}x"} if "secret" in action.args else {}
        self.deliver(action._replace(args={**action.args, **fresh}))

    def goes_on_with_a_run(self, c: dict[str, Any]) -> None:
        """A worker claims it, records its calls, asks, is answered; the run is rewound, or ends."""
        runs = [job for job in self.jobs() if job.workflow]
        if not runs:
            self.say("create", ADMINS[0], args={"title": "run", "project": "PROJ", "workflow": "feature.py"})
            return
        job = runs[c["task"] % len(runs)]
        who = AGENTS[c["other"] % 2]
        if job.state == "ready" and c["small"]:
            self.say("claim", who, job, args={"worker": "w0", "secret": f"s{self.said}"})
        elif job.holder and c["small"]:
            verb = ("step", "step", "step", "flag", "flag", "park", "rewind", "complete", "fail")[c["other"] % 9]
            proof = "worker" if c["small"] == 3 else "newest"  # a name holds it, and is not the script
            self.say(verb, who, job, args=self.args(verb, job, {**c, "proof": proof}))
        elif job.pending() and c["small"] > 1:
            asked = job.pending()[0].id
            signal = {"signal": {"status": "COMPLETE"}} if c["flag"] else {}
            value = c["value"] if c["also"] else None
            self.say("answer", PEOPLE[c["other"] % len(PEOPLE)], job, asked, args={"value": value, **signal})
        else:
            self.say("rewind", (ADMINS[0], *PEOPLE)[c["other"] % 3], job, args=self.args("rewind", job, {**c, "proof": "none"}))

    def asks_in_a_step(self, c: dict[str, Any]) -> None:
        """From the claim to the answer, with what may come between them."""
        ready = [job for job in self.jobs() if job.workflow and job.state == "ready"]
        if not ready:
            self.goes_on_with_a_run(c)
            return
        job, who, path = ready[c["task"] % len(ready)], AGENTS[c["other"] % 2], c["path"]
        self.say("claim", who, job, args={"worker": "w0", "secret": f"s{self.said}"})
        held = {"claim": self.desk.model.jobs[job.id].token}
        aside = {"blocking": False, "default": "so"} if c["small"] == 0 else {}
        step = {"path": path, "name": "step", "call": path, "status": "waiting"}
        self.say("step", who, job, args={**held, "steps": [step]})
        verb, more = ("ask", aside) if aside else ("flag", {"hold": True})
        self.say(verb, who, job, args={**held, **more, "text": "Which?", "kind": "input", "step": path})
        asked = self.desk.model.jobs[job.id].asked[-1:]
        if c["small"] == 0:  # the journal is an older one by then
            self.say("rewind", who, job, args={**held, "to": "9"})
        elif c["small"] == 1:  # who holds it is late
            self.clock.micros += 61 * 60_000_000
        elif c["small"] == 2:
            self.say("rewind", ADMINS[0], job, args={"to": path if c["also"] else None, "spare": c["flag"]})
        elif c["also"]:
            self.say("step", who, job, args={**held, "steps": [{**step, "status": "completed"}]})
        for q in asked:
            self.say("answer", ADMINS[0], job, q.id, args={"value": "so", "signal": {"status": "COMPLETE"}})

    def restores(self, c: dict[str, Any]) -> None:
        """What was handed out before is void: every claim that is used after this is late."""
        if c["small"] == 0:
            self.desk.as_(ADMINS[0]).do(say("restore", ADMINS[0]))
        else:
            self.writes_with_a_claim(c)

    def time_passes(self, c: dict[str, Any]) -> None:
        self.clock.micros += c["step"]
        if c["flag"]:
            self.desk.check_reads()
        else:
            self.desk.reconcile()


#: What the biased machine plays, each as often as it stands here.
SCENES = (
    *3 * ("claims", "moves_on"),
    *2 * ("writes_with_a_claim", "outlives_its_lease", "asks", "answers", "says_what_the_table_does_not_know"),
    *2 * ("goes_on_with_a_run", "asks_in_a_step"),
    *2 * ("answers_the_system",),
    *("answers_again", "uses", "reopens", "makes_a_family", "says_it_twice", "time_passes", "restores"),
)
