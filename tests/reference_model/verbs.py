"""The effect of each verb on the reference model: one method per verb."""

from __future__ import annotations

import copy
from typing import Any

from yourturn.core.canonical_json import digest, dumps
from yourturn.core.fields import duration
from yourturn.core.model import SYSTEM, Who
from yourturn.core.rules import KINDS, OUTCOMES, ROLES
from yourturn.core.task_fields import UPDATES

from .rows import ENDED, Asked, Call, Job, Move, No, Rows

YES, NO = ("yes", "ok"), ("no",)
#: What the system offers when it asks; with other words it takes advice, where tries ran out.
OFFERED = {"dependency_failed": ("retry", "without", "cancel"), "retry_exhausted": ("retry", "human", "cancel")}
#: What an agent may take back as the holder.
WITHDRAWABLE = ("input", "escalation", "permission", "recovery")
#: What the machines' permissions are for, mostly: their words.
SHOWN = digest("Which?")
#: Numbers of tasks that the real desk has not numbered yet.
UNBORN = 10**12


def judge(q: Asked, args: dict[str, Any]) -> tuple[str, str, Any]:
    """The verdict, the words and the value that an answer amounts to, as far as the machines know how to answer."""
    said, value, text = args.get("verdict"), args.get("value"), args.get("text") or ""
    if args.get("signal") is not None and value is None and q.answers in ("choice", "boolean", "number"):
        return said or "approved", text, None
    if q.answers in ("approval", "boolean"):
        return _yes_or_no(q, said, value, text)
    if said == "rejected":
        return said, text or str(value or ""), None
    if value is None and q.answers in ("choice", "number"):
        value, text = text or None, ""
    advice = q.other and len(str(value or "").split()) > 1
    if q.answers == "choice" and value not in q.options and not advice:
        raise No("invalid")
    if q.answers == "number" and not str(value).isdigit():
        raise No("invalid")
    if q.answers == "text" and not (value is None and not text) and not str(text if value is None else value).strip():
        raise No("invalid")
    return "approved", text, value


def _yes_or_no(q: Asked, said: str | None, value: Any, text: str) -> tuple[str, str, Any]:
    if value is None and said is None and text.strip():
        value, text = text, ""
    if value is not None and value not in YES + NO:
        raise No("invalid")
    yes = value in YES if value is not None else said != "rejected"
    if value is not None and said == "rejected" and yes:
        raise No("invalid")
    judges = "approval" in (q.answers, KINDS[q.kind].response_type)  # else a no is only information
    if value is not None and said == "approved" and not yes and judges and OUTCOMES[q.kind, "rejected"] != "refused":
        raise No("invalid")
    return "rejected" if judges and not yes else "approved", text, yes


class Verbs(Rows):
    # --- births and shape -------------------------------------------------------------------------------------------

    def _born(self, args: dict[str, Any], who: Who, now: int) -> Job:
        self._open_parent(args.get("parent"))
        self._no_circle(args)
        tries = args.get("max_retries") or self.settings["max_retries"]
        if not who.is_person and (tries > self.settings["max_retries"] or args.get("workflow")):
            raise No("not_allowed")
        if args.get("program") and not (who.direct or who.role == "admin"):
            raise No("not_allowed")
        if args.get("program") and not args.get("workflow"):
            raise No("precondition")
        if args.get("workflow") and args.get("requires"):
            raise No("invalid")
        job = self._written(args, now)
        job.sources += bool(args.get("program"))
        if args.get("draft") or self.settings["vetting"] or self.too_large(job):
            job.state = "created"
        if args.get("awaiting"):
            self._open(job, {"kind": args["awaiting"]}, who.name, now)
        self.moves.append((None, "create"))
        return job

    def _brought(self, args: dict[str, Any], who: Who, now: int) -> Job:
        """From another tracker, in the state that it had there."""
        if args["state"] not in ENDED:
            self._open_parent(args.get("parent"))
        self._no_circle(args)
        job = self._written(args, now)
        if self.settings["vetting"]:
            job.state = "created"
        if args["state"] == "deferred":
            job.back, job.state = "created" if job.state == "created" else "ready", "deferred"
        elif args["state"] in ENDED:
            job.state, job.ended = args["state"], now
            job.failure = "error" if args["state"] == "failed" else None
        for asked in args.get("questions", ()):
            self._open(job, asked, who.name, now)
        self.moves.append((None, "import"))
        return job

    def _no_circle(self, args: dict[str, Any]) -> None:
        parent = args.get("parent")
        if parent is not None and any(self.waits_for(other, parent) for other in args.get("depends_on") or ()):
            raise No("precondition")

    def _written(self, args: dict[str, Any], now: int) -> Job:
        parent = args.get("parent")
        job = Job(
            UNBORN + len(self.jobs), "ready", now, args.get("type", "task"), args.get("complexity", "medium"), parent,
            args.get("requires"), args.get("role"), bool(args.get("workflow")), args.get("priority", 2), now, 0,
            args.get("max_retries") or self.settings["max_retries"],
        )  # fmt: skip
        job.needs = set(args.get("depends_on") or ())
        self.jobs[job.id] = job
        if self.open_needs(job):
            job.state = "blocked"
        if parent is not None:
            self.jobs[parent].needs.add(job.id)
            self.touched.add(parent)
        job.events = 1
        return job

    def _decompose(self, job: Job, m: Move) -> None:
        if not m.args.get("children"):
            raise No("precondition")
        if job.state == "working":
            self._script_says(job, m)
        self._drop(job)
        job.state, job.back, job.outcome = "blocked", None, None
        for child in m.args["children"]:
            self._born({"priority": job.priority, "role": job.role, **child, "parent": job.id}, m.who, max(m.clock, self.fenced))

    def _vet(self, job: Job, m: Move) -> None:
        if self.too_large(job):
            raise No("precondition")
        self._rest(job)

    def _unvet(self, job: Job, m: Move) -> None:
        if not self.too_large(job):
            raise No("precondition")
        job.state = "created"

    def _block(self, job: Job, m: Move) -> None:
        if not self.open_needs(job):
            raise No("precondition")
        self._rest(job)

    def _unblock(self, job: Job, m: Move) -> None:
        if self.open_needs(job):
            raise No("precondition")
        self._rest(job)

    def _parent(self, job: Job, m: Move) -> None:
        if self.open_needs(job):
            raise No("precondition")
        self._finished(job, m)

    def _note(self, job: Job, m: Move) -> None:
        job.notes += 1

    def _update(self, job: Job, m: Move) -> None:
        fields = dict(m.args.get("fields") or ())
        for name in fields:
            if UPDATES[name] not in ROLES[m.who.role]:
                raise No("not_allowed")
            if UPDATES[name] == "holder" and not m.who.is_person and not m.holds:
                raise No("not_allowed")
        if "requires" in fields:
            self._approver(m)
            if job.workflow and fields["requires"]:
                raise No("invalid")
        if fields.get("max_retries") is not None and fields["max_retries"] <= job.tries:
            raise No("precondition")
        if "max_retries" in fields:
            job.limit = fields.pop("max_retries")
        for name in ("requires", "role", "priority", "type", "complexity"):
            if name in fields:
                setattr(job, name, fields[name])

    def _dep_add(self, job: Job, m: Move) -> None:
        wanted = [ref.id for ref in m.args["needs"]]
        if any(self.waits_for(other, job.id) for other in wanted):
            raise No("precondition")
        for other in wanted:
            job.needs.add(other)

    def _dep_remove(self, job: Job, m: Move) -> None:
        for ref in m.args["needs"]:
            job.needs.discard(ref.id)

    def _defer(self, job: Job, m: Move) -> None:
        until = m.args.get("until")
        if until is not None and until <= m.now:
            raise No("precondition")
        job.back = "created" if job.state == "created" else "ready"
        job.state, job.wake = "deferred", until

    def _wake(self, job: Job, m: Move) -> None:
        was = job.back
        job.wake = None
        self._rest(job)
        if was == "created":
            job.state = "created"

    # --- claims -----------------------------------------------------------------------------------------------------

    def _claim(self, job: Job, m: Move) -> None:
        wish = m.args.get("lease")
        if job.type == "epic" or self.too_large(job):
            raise No("precondition")
        if self.open_needs(job) or job.tries >= job.limit or (wish or 0) > self.settings["max_lease"]:
            raise No("precondition")
        lease = wish or self.settings["lease"]
        job.state, job.epoch = "working", max(job.epoch, self.fenced) + 1
        job.holder, job.claimer = m.args["worker"], m.who.name
        job.token = None  # the reply will say
        job.lease, job.ends = lease, m.now + lease

    def _heartbeat(self, job: Job, m: Move) -> None:
        assert job.lease is not None
        job.ends = m.now + job.lease

    def _release(self, job: Job, m: Move) -> None:
        self._drop(job)
        job.tries += 1
        self._rest(job)
        if job.tries >= job.limit:
            self._system_asks(job, "retry_exhausted", m)

    def _expire(self, job: Job, m: Move) -> None:
        if job.holder is None and job.state == "human":
            raise No("precondition")
        if job.ends is None or job.ends > m.now:
            raise No("precondition")
        if job.state == "human":
            self._drop(job)
        else:
            self._release(job, m)

    def _park(self, job: Job, m: Move) -> None:
        self._record(job, m)
        asleep = job.state == "human"
        self._drop(job)
        if asleep:
            return
        self._rest(job)
        if m.args.get("until"):
            job.state, job.back, job.wake = "deferred", "ready", m.args["until"]

    def _fence(self, job: Job, m: Move) -> None:
        self._drop(job)
        if job.state == "working":
            self._rest(job)
        job.notes += bool(m.args.get("approvals"))

    # --- questions --------------------------------------------------------------------------------------------------

    def _open(self, job: Job, args: dict[str, Any], by: str, now: int, tool: bool = False, free: bool = False) -> Asked:
        kind, blocking = args.get("kind") or "input", args.get("blocking", True)
        row = KINDS[kind]
        options = tuple(str(option["value"]) for option in args.get("options") or ())
        answers = args.get("response_type") or ("choice" if options else row.response_type)
        if row.response_type == "approval" and answers not in ("approval", "boolean"):
            raise No("invalid")
        low, high = self.settings["min_timeout"], self.settings["max_timeout"]
        time = args.get("timeout")
        if time is not None and not low <= time <= high and not free:
            raise No("invalid")
        if time is None and tool and row.timeout:
            time = min(max(duration(row.timeout), low), high)
        if (answers == "choice") != bool(options):
            raise No("invalid")
        q = Asked(kind, blocking, by, args.get("on_timeout") or row.on_timeout, answers, options=options)
        q.reason, q.reviewer = args.get("reason"), args.get("reviewer")
        q.shown = digest(args.get("action") or args.get("text") or "a prompt")
        if blocking and time:
            q.ends, q.step = now + time, time
        default = args.get("default")
        if default is None and not blocking:
            raise No("invalid")
        if default is not None:
            if not row.default or answers == "approval":
                raise No("invalid")
            judge(q, {"value": default})
            q.default = True
        job.asked.append(q)
        if blocking and job.state != "human":
            for waiting in job.asks_for_acceptance():
                waiting.ends = None  # silence accepts nothing while something else is asked
            job.back, job.state, job.outcome = job.state, "human", None
        return q

    def _system_asks(self, job: Job, reason: str, m: Move, about: int | None = None) -> None:
        options = [{"value": word} for word in OFFERED[reason]]
        q = self._open(job, {"kind": "escalation", "reason": reason, "options": options}, "system", m.now)
        q.about, q.other = about, reason == "retry_exhausted"

    def _ask(self, job: Job, m: Move) -> None:
        if m.args.get("reason") == "finished":
            self._ask_for_acceptance(job, m)
            return
        asked = self._open(job, m.args, m.who.name, m.now, tool=True)
        self._asker(job, m, asked)
        if asked.blocking and not m.holds:
            self._drop(job)

    def _flag(self, job: Job, m: Move) -> None:
        if m.args.get("reason") == "dependency_failed":
            self._system_asks(job, "dependency_failed", m, m.args["about"])
            return
        self._update(job, m)
        wrote = self._record(job, m)
        if m.args.get("once") and any(q.kind == m.args.get("kind") for q in job.waiting()):
            m.again = not (wrote or m.args.get("fields"))
            return
        for replaced in [q for q in job.waiting() if m.args.get("replace") and self._takes_off(q, m)]:
            self._shut(replaced, "cancelled", m)
        free = "steps" in m.args and m.holds and job.workflow  # a script waits as long as it says
        asked = self._open(job, m.args, m.who.name, m.now, free=free)
        self._asker(job, m, asked)
        if not (m.args.get("hold") and m.holds):
            self._drop(job)

    def _may_answer(self, job: Job, m: Move) -> None:
        assert m.q is not None
        kind = KINDS[m.q.kind]
        ends_it = m.q.blocking and kind.approved == "done" and (job.requires or job.back == "review")
        if kind.gate or ends_it:
            self._approver(m)

    def _answer(self, job: Job, m: Move) -> None:
        if m.q is None:
            raise No("illegal_move")
        self._may_answer(job, m)
        verdict, text, chosen = judge(m.q, m.args)
        if m.args.get("signal") is not None:
            self._settle_step(job, m)
        outcome = "back" if job.workflow or not m.q.blocking else OUTCOMES[m.q.kind, verdict]
        if outcome == "refused":
            raise No("precondition")
        self._shut(m.q, "answered", m, verdict)
        job.notes += verdict == "rejected" and bool(text.strip())
        if not m.q.blocking:
            return
        job.tries = 0
        offered = OFFERED.get(m.q.reason or "", ()) if m.q.by == "system" and verdict == "approved" else ()
        chosen = chosen if chosen in offered else ""
        if outcome == "cancelled" or chosen == "cancel":
            self._may_lift(job, m)
            self._end(job, "cancelled", m)
        elif chosen == "human":
            self._open(job, {"kind": "work"}, m.who.name, m.now)
        elif m.q.reason == "finished" and verdict == "rejected":
            self._sent_back(job, m)
        else:
            if chosen == "without":
                job.needs.discard(m.q.about or 0)
            self._one_less(job, outcome, m)
            if chosen == "retry" and m.q.about is not None:
                failed = self.jobs[m.q.about]
                self._made(failed, Move("reopen", SYSTEM, {}, max(m.clock, failed.updated, self.fenced), clock=m.clock))

    def _sent_back(self, job: Job, m: Move) -> None:
        """Not accepted: the next claim works on it again. Of a container a person says what is missing."""
        if job.state == "human":
            job.back = "ready"
        self._one_less(job, "back", m)
        if self.is_container(job):
            self._open(job, {"kind": "escalation"}, m.who.name, m.now)

    def _timeout(self, job: Job, m: Move) -> None:
        q = m.q
        if q is None or q.ends is None or q.ends > m.now or q.how == "keep":
            raise No("precondition")
        how = "fail" if q.how == "default" and not q.default else q.how
        if how in ("remind", "escalate"):
            assert q.step is not None
            while q.ends <= m.now:
                q.ends += q.step
            if how == "escalate":
                q.reviewer = self.settings["escalate_to"]
            return
        if how == "accept" and self.open_children(job):
            raise No("precondition")
        self._shut(q, "timeout", m)
        if how == "accept":
            self._end(job, "done", m)
        elif how == "default" or (how == "defer" and job.waiting()):
            self._one_less(job, "back", m)
        elif how in ("fail", "stuck") and q.by.startswith("agent:") and any(o.by.startswith("human:") for o in job.waiting()):
            return
        elif how == "defer":
            self._drop(job)
            job.back = "created" if job.back == "created" else "ready"
            job.state, job.outcome, job.wake = "deferred", None, None
        else:
            self._end(job, "failed", m)
            job.failure = "stuck" if how == "stuck" else "timeout"

    def _withdraw(self, job: Job, m: Move) -> None:
        if m.q is None:
            raise No("illegal_move")
        system = m.who.role == "system"
        if not system and (m.q.by == "system" or m.q.reason == "finished"):
            raise No("precondition")
        own = m.q.by == m.who.name and (not m.q.blocking or (m.holds and m.q.kind in WITHDRAWABLE))
        if not system and not m.who.is_person and not own:
            raise No("not_allowed")
        if job.state == "human" and m.who.is_person:
            self._may_lift(job, m)
        self._shut(m.q, "cancelled", m)
        if m.q.blocking:
            self._one_less(job, None if job.waiting() else job.outcome or "back", m)

    def _takes_off(self, q: Asked, m: Move) -> bool:
        if q.reason == "finished":
            return False
        if not m.who.is_person:
            return q.by == m.who.name and m.holds and q.kind in WITHDRAWABLE
        reserved = self.settings["approvals"] == "approvers" and "approver" not in ROLES[m.who.role]
        return q.by != "system" and not (reserved and KINDS[q.kind].gate)

    def _use(self, job: Job, m: Move) -> None:
        """A permission that was given since the last restore, for what it was given for, by the one call that uses it."""
        q = m.q
        if q is not None and q.by != m.who.name and not m.holds:
            raise No("not_allowed")
        if q is None or q.kind != "permission" or q.verdict != "approved" or (q.closed_at or 0) < self.fenced:
            raise No("precondition")
        if m.args["digest"] != q.shown or q.used not in (None, m.args["by"]):
            raise No("precondition")
        m.again = q.used is not None
        q.used = m.args["by"]

    def _hand_back(self, job: Job, m: Move) -> None:
        self._may_lift(job, m)
        for q in job.pending():
            if q.reason != "finished":
                self._shut(q, "cancelled", m)
        job.tries, job.outcome = 0, None
        self._update(job, m)
        self._one_less(job, "back", m)

    def _assign(self, job: Job, m: Move) -> None:
        if m.q is None:
            raise No("illegal_move")
        m.q.reviewer = m.args["reviewer"]

    # --- endings ----------------------------------------------------------------------------------------------------

    def _complete(self, job: Job, m: Move) -> None:
        if self.open_children(job):
            raise No("precondition")
        self._script_says(job, m)
        self._record(job, m)
        if job.workflow:
            self._end(job, "done", m)
        else:
            self._drop(job)
            self._finished(job, m)

    def _finished(self, job: Job, m: Move) -> None:
        if job.requires:
            job.state, job.back, job.outcome = "ready", None, None
            self._open(job, {"kind": job.requires}, m.who.name, m.now)
        else:
            self._to_review(job, m)

    def _close(self, job: Job, m: Move) -> None:
        self._may_end(job, m)
        self._end(job, "done", m)
        job.failure = None

    _resolve = _close

    def _accept(self, job: Job, m: Move) -> None:
        if self.open_children(job):
            raise No("precondition")
        self._end(job, "done", m)

    def _fail(self, job: Job, m: Move) -> None:
        if job.state != "ready":
            self._script_says(job, m)
        self._record(job, m)
        self._end(job, "failed", m)
        job.failure = m.args.get("failure") or "error"

    def _stop(self, job: Job, m: Move) -> None:
        self._end(job, "failed", m)
        job.failure = "stuck"

    def _cancel(self, job: Job, m: Move) -> None:
        self._may_lift(job, m)
        self._end(job, "cancelled", m)
        job.failure = None

    def _reopen(self, job: Job, m: Move) -> None:
        self._open_parent(job.parent)
        was = job.state
        job.ended = job.failure = job.wake = None
        job.tries = 0
        if job.workflow:
            job.journal += 1
            job.journals[job.journal] = {}
        self._rest(job)
        if was == "cancelled":
            job.state = "created"
        self._tell_dependents(job)

    # --- journals ---------------------------------------------------------------------------------------------------

    def _script_says(self, job: Job, m: Move) -> None:
        """An agent ends a run only as its script, and only if it knows the journal that is being written."""
        if job.workflow and m.who.role == "agent" and not (m.script and m.args.get("journal") == job.journal):
            raise No("precondition")

    def _record(self, job: Job, m: Move) -> bool:
        """What came along of the script's calls. Was there anything?"""
        steps, program = m.args.get("steps") or (), m.args.get("program")
        if not steps and not program:
            return False
        if not job.workflow:
            raise No("precondition")
        if not m.holds:
            raise No("claim_lost")
        if not m.script:
            raise No("not_allowed")
        if program and not (m.who.direct or m.who.role == "admin"):
            raise No("not_allowed")
        written = job.journals[job.journal]
        for step in steps:
            old, call = written.get(step["path"]), dumps(step.get("call"))
            if old is not None and (old.status == "completed" or (old.name, old.call) != (step["name"], call)):
                raise No("precondition")
            done = step["status"] == "completed"
            written[step["path"]] = Call(
                step["name"], call, step["status"], old.began if old else m.now, dumps(step.get("result")) if done else None,
                m.now if done else None,
            )  # fmt: skip
        job.sources += bool(program)
        return True

    def _asker(self, job: Job, m: Move, q: Asked) -> None:
        if job.workflow and m.holds and m.args.get("step"):
            q.asker = (job.journal, m.args["step"])

    def _settle_step(self, job: Job, m: Move) -> None:
        assert m.q is not None
        journal, path = m.q.asker or (-1, "")
        step = job.journals[job.journal].get(path) if journal == job.journal else None
        if step is None or step.status == "completed":
            raise No("invalid")
        if step.status == "running" and job.holder:
            raise No("precondition")
        step.status, step.result, step.ended = "completed", dumps(m.args["signal"]), m.now

    def _step(self, job: Job, m: Move) -> None:
        if not job.workflow or (job.state == "human" and not job.holder):
            raise No("precondition")
        self._record(job, m)

    def _rewind(self, job: Job, m: Move) -> None:
        was = job.state
        if not job.workflow:
            raise No("precondition")
        if was == "human":
            self._may_lift(job, m)
        elif was == "failed":
            self._open_parent(job.parent)
        elif was == "working" and not m.script:
            raise No("precondition")
        if m.args.get("to"):
            first, before = int(m.args["to"].split(".")[0]), job.journals[job.journal]
            spare = {f"~{at}": call for at, call in before.items() if at[0] != "~" and int(at.split(".")[0]) >= first}
            kept = {at: call for at, call in before.items() if at[0] != "~" and int(at.split(".")[0]) < first}
            job.journal += 1
            new = kept | spare if m.args.get("spare") else kept
            job.journals[job.journal] = {at: copy.copy(call) for at, call in new.items()}
        if was == "working":
            return
        job.tries = 0
        if was in ("created", "ready", "blocked"):
            return
        self._drop(job)
        for q in job.pending() if was == "human" else ():
            self._shut(q, "cancelled", m)
        job.ended = job.failure = job.wake = None
        draft = job.back == "created"
        self._rest(job)
        if draft:
            job.state = "created"
        if was == "failed":
            self._tell_dependents(job)
