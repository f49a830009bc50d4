"""The journal of a run: the durable calls of its script and their results.

A run is a task whose body is a script. Each durable call of the script is a **step**, identified by its path: the call
index, or a dotted path inside parallel branches (`3.1.0`: the third call, its second branch, the first call there). A step
is `running`, `waiting` for a person or a date, or `completed`. A completed step never changes, so every replay of the
script, on any machine, gets the same results.

A journal is never rewritten. A restart begins a new journal: an empty one (`reopen`), or one with the steps before a given
path (`rewind`). The steps behind that path stay in the old journal; if a person continues with a changed script, the new
journal keeps them as superseded steps (`spare`): a call that the new script makes in exactly the same way reuses its result.
"""

from __future__ import annotations

from typing import Any

from .canonical_json import digest, dumps
from .decision_builder import Draft
from .errors import ClaimLost, Invalid, NotAllowed, Precondition
from .guards import may_bring_code, script_speaks
from .model import (
    COMPLETED,
    CREATED,
    DEFERRED,
    ENDED,
    HUMAN,
    PENDING,
    RUNNING,
    WAITING,
    WITHDRAWN,
    WORKING,
    Program,
    Question,
    Step,
)
from .outcomes import close, drop_claim, to_ready
from .questions import make
from .rules import SIGNALS
from .step_paths import path, place


def call_digest(name: str, call: Any) -> str:
    """Identifies a call: equal calls have equal digests."""
    return digest([name, call])


def write(d: Draft) -> None:
    """Write steps and source that the holder of the run reports."""
    if d.args.get("steps") or d.args.get("program"):
        _may_write(d)
    by_place = {step.place: step for step in d.case.steps}
    for fields in d.args.get("steps", ()):
        at = place(fields["path"])
        by_place[at] = step = _written(d, at, fields, by_place.get(at))
        d.steps.append(step)
    if d.args.get("program"):
        _program(d)


def _may_write(d: Draft) -> None:
    """Only the script of a run writes steps, whichever verb carries them. A new run brings its source."""
    if not d.get("workflow"):
        raise Precondition(f"Cannot write the journal of {d.key}", reason="it has no script")
    if d.case.task is not None and not d.holds_claim:
        held = f"{d.get('holder')} holds the claim" if d.get("holder") else "you hold no claim on it"
        raise ClaimLost(f"Cannot write the journal of {d.key}", reason=held, hint="Prove yours with its token.")
    if d.case.task is not None and (why_not := script_speaks(d)):
        raise NotAllowed(f"Cannot write the journal of {d.key}", reason=why_not)
    may_bring_code(d)


def _written(d: Draft, at: str, fields: dict[str, Any], old: Step | None) -> Step:
    call = fields.get("call")
    call_hash = call_digest(fields["name"], call)
    if old is not None and old.status == COMPLETED:
        why = "it is recorded already, and a result never changes"
        raise Precondition(f"Cannot record step {path(at)} of {d.key}", reason=why)
    if old is not None and old.digest != call_hash:
        raise Precondition(f"Cannot record step {path(at)} of {d.key}", reason=f"it is another call: {old.name} {old.call}")
    status = fields["status"]
    agent, session, seat = (old.agent, old.session_id, old.seat) if old else (None, None, None)
    return Step(
        task_id=d.id, journal=d.get("journal"), place=at, name=fields["name"], agent=fields.get("agent", agent), digest=call_hash,
        call=dumps(call), status=status, session_id=fields.get("session_id", session),
        seat=dumps(fields["seat"]) if "seat" in fields else seat,
        result=dumps(fields.get("result")) if status == COMPLETED else None,
        started_at=old.started_at if old else d.now, ended_at=d.now if status == COMPLETED else None,
    )  # fmt: skip


def _program(d: Draft) -> None:
    program = d.args["program"]
    d.program = Program(d.id, d.get("journal"), d.now, program["file"], digest(program["body"]), program["body"])
    d.data["program"] = {"file": d.program.file, "digest": d.program.digest}


def step(d: Draft) -> None:
    write(d)


def settle(d: Draft) -> bool:
    """A person reports the result of a waiting step, for example after a session with its agent.

    A signal that asks a new question keeps the step waiting: the old question is withdrawn without a verdict. Returns True then.
    """
    signal, q = d.args.get("signal"), d.question
    if signal is None:
        return False
    assert q is not None
    journal, _, where = (q.step or "").partition("/")
    old = next((step for step in d.case.steps if step.place == where), None)
    if old is None or journal != str(d.get("journal")) or old.status == COMPLETED:
        raise Invalid(f"{q.name} was not asked by a step of a run", hint=f'Answer it: turn respond {q.name} "…"')
    if old.status == RUNNING and d.get("holder"):
        why, hint = f"{old.agent or 'the agent'} is still working on it", f'Answer it: turn respond {q.name} "…"'
        raise Precondition(f"Cannot settle step {path(where)} of {d.key}", reason=why, hint=hint)
    kind = SIGNALS.get(str(signal.get("status")))
    if kind is not None:
        if not q.blocking:
            raise Invalid(f"{q.name} holds nothing up, so nothing else can be asked in its place")
        _ask_again(d, q, kind, signal)
        return True
    d.steps.append(old._replace(status=COMPLETED, result=dumps(signal), ended_at=d.now))
    return False


def _ask_again(d: Draft, q: Question, kind: str, signal: dict[str, Any]) -> None:
    """Asks as the agent, for the same step, with the same timeout."""
    text = next((str(signal[name]) for name in ("question", "reason", "message", "summary") if signal.get(name)), None)
    new = make(d, {"kind": kind, "text": text, "context": signal.get("context")}, q.asked_by, tool=False)
    new = new._replace(
        step=q.step, reviewer=q.reviewer, metadata=q.metadata, on_timeout=q.on_timeout, timeout=q.timeout,
        timeout_at=d.now + q.timeout if q.timeout else None,
    )  # fmt: skip
    close(d, q, WITHDRAWN, why="something else is asked now")
    d.opened.append(new)
    d.questions.append(new)
    d.put(retry_count=0)


def rewind(d: Draft) -> None:
    """Go back to a step in a new journal that has the steps before it; without a step, continue in the same journal."""
    to = d.args.get("to")
    if to is not None:
        at = place(to).partition(".")[0]  # all branches of a parallel() go back together
        old = d.get("journal")
        d.put(journal=old + 1)
        d.rewound = (old, at, bool(d.args.get("spare")))
        d.data["rewound"] = {"to": path(at), "spare": bool(d.args.get("spare"))}
    if d.state == WORKING:
        return
    d.put(retry_count=0)
    if d.state in ENDED:
        d.put(ended_at=None, failure=None, reason="")
        d.touch += [ref.id for ref in d.case.dependents]  # their questions about its failure close
    elif d.state == HUMAN:
        drop_claim(d)
        for q in d.questions:
            if q.status == PENDING:
                close(d, q, WITHDRAWN, why=f"the run went back to step {path(at)}" if to else "the run goes on")
    elif d.state == DEFERRED:
        d.put(wake_at=None, reason="")
    else:
        return
    was = d.get("return_state")
    to_ready(d)
    if was == CREATED:
        d.put(state=CREATED)


STATUSES = (RUNNING, WAITING, COMPLETED)
