"""Checks every move in the event log against the rules.

Each row of MOVE_CHECKS takes one move (replay.py): an event, the task before it and the task after it; and yields the problems
as sentences. The checks are written from the tables of core/rules.py and from docs/guarantees.md, not from the
code of the effects, so that a bug in an effect does not hide here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..core.canonical_json import digest
from ..core.model import (
    ANSWERED,
    APPROVED,
    BLOCKED,
    CANCELLED,
    CREATED,
    DEFERRED,
    DEPENDENCY_FAILED,
    DONE,
    ENDED,
    FAILED,
    FINISHED,
    HUMAN,
    PENDING,
    READY,
    REJECTED,
    RETRY_EXHAUSTED,
    REVIEW,
    TIMEOUT,
    VERDICTS,
    WITHDRAWN,
    WORKING,
)
from ..core.rules import CHOICES, KINDS, ROLES, TRANSITIONS, WITHDRAWABLE, outcome
from ..core.step_paths import place
from ..core.task_fields import UPDATES
from .replay import Move, Replay, Row

#: The highest role of each sort of actor. Roles change, and the log keeps only the names of actors.
_SORTS = {"human": ROLES["admin"], "agent": ROLES["agent"], "system": ROLES["system"]}


def _moves(replay: Replay, m: Move) -> Iterator[str]:
    """The table has such a transition from the task's state, and allows it to the actor."""
    source, was = m.data["from"], m.was.get("state")
    if source != was:
        yield f"it comes from '{source}', and the task was '{was}'"
    rule = TRANSITIONS.get((source, m.verb))
    if rule is None or m.to not in rule.to:
        yield f"no row of the table leads from '{source}' to '{m.to}' by {m.verb}"
        return
    may = rule.who & _SORTS.get(m.event["actor"].partition(":")[0], frozenset())
    if not may:
        yield f"only {' or '.join(sorted(rule.who))} may say {m.verb} here"
    if may == {"holder"} and m.was.get("holder") is None:
        yield "the claim was not held"
    if m.verb in ("update", "flag") and m.event["actor"].startswith("agent:"):
        for name in set(m.data.get("set", ())) & set(UPDATES):
            if UPDATES[name] not in ROLES["agent"]:
                yield f"an agent changed {name}"


def _claims(replay: Replay, m: Move) -> Iterator[str]:
    """A working task is claimed; other tasks are not, except while their session waits for a person."""
    held = m.history.row["holder"] is not None
    if held and m.to not in (WORKING, HUMAN):
        yield f"it is '{m.to}', and {m.history.row['holder']} holds a claim"
    if not held and m.to == WORKING:
        yield "it is 'working' without a claim"
    if held and m.was.get("holder") not in (None, m.history.row["holder"]):
        yield f"the claim went from {m.was['holder']} to {m.history.row['holder']}"
    if held and m.was.get("holder") is None and m.verb != "claim":
        yield f"{m.verb} gave {m.history.row['holder']} a claim"


def _epochs(replay: Replay, m: Move) -> Iterator[str]:
    before, now = m.was.get("epoch", 0), m.history.row["epoch"]
    if now < before:
        yield f"the epoch fell from {before} to {now}"
    if m.verb == "claim" and now <= before:
        yield f"it was claimed with epoch {now} after {before}"


def _retries(replay: Replay, m: Move) -> Iterator[str]:
    """release and expire spend a try, a person gives them back; the last one opens one question to a person."""
    before, now = m.was.get("retry_count", 0), m.history.row["retry_count"]
    spent = m.verb in ("release", "expire") and m.was.get("state") == WORKING
    if spent and now != before + 1:
        yield f"{m.verb} took the tries from {before} to {now}"
    answered = any(q["blocking"] for _, q in m.closed if q["status"] == ANSWERED)
    forgiving = answered or m.verb in ("hand_back", "reopen", "rewind") or _accepted_unasked(m)
    person = m.event["actor"].startswith("human:") or m.verb == "reopen"  # the system reopens after a person's answer: _causes
    if not spent and now != before and not (now == 0 and forgiving and person):
        yield f"{m.verb} by {m.event['actor']} took the tries from {before} to {now}"
    if not m.was and now:
        yield f"it was created with {now} tries"
    asked = [q for q in m.history.pending() if q.get("reason") == RETRY_EXHAUSTED and q["asked_by"] == "system"]
    if len(asked) > 1:
        yield f"{len(asked)} questions say that the tries ran out"
    if now >= m.history.row["max_retries"] and m.to not in ENDED and len(asked) != 1:
        yield f"all {now} tries are spent without a question how to go on"


def _turns(replay: Replay, m: Move) -> Iterator[str]:
    """`human` if and only if a blocking question is open (`review` if it is about finished work); ended tasks have no open
    question."""
    waiting = m.history.waiting()
    finished = [q for q in waiting if q.get("reason") == FINISHED]
    if m.to == HUMAN and len(finished) == len(waiting):
        yield "it is 'human', and no blocking question is open"
    if m.to != HUMAN and len(waiting) > (len(finished) if m.to == REVIEW else 0):
        yield f"{waiting[0]['id']} is open and blocks, and the task is '{m.to}'"
    if len(finished) > 1:
        yield f"{len(finished)} questions ask about its finished work"
    if m.to in ENDED and m.history.pending():
        yield f"it has ended, and {m.history.pending()[0]['id']} is open"


def _questions(replay: Replay, m: Move) -> Iterator[str]:
    """A question begins as its kind allows. An imported one has begun, and perhaps ended, in another tracker."""
    for q in m.opened:
        if m.verb == "import":
            yield from _imported(q, m.event["at"])
        elif q["status"] != PENDING or q["asked_at"] != m.event["at"] or q["asked_by"] not in _askers(m):
            yield f"{q['id']} does not begin as it should: {q['status']}, by {q['asked_by']} at {q['asked_at']}"
        kind, default = KINDS[q["kind"]], q.get("default_value")
        if default is not None and (not kind.default or q["response_type"] == "approval"):
            yield f"{q['id']} has a default, and a timeout must not decide that"
        if not q["blocking"] and (default is None or q.get("timeout_at")):
            yield f"{q['id']} does not block, so it needs a default and no timeout"
        if q["kind"] == "permission" and q.get("digest") != digest(q["text"] if q.get("action") is None else q["action"]):
            yield f"the digest of {q['id']} is not that of what it shows"


def _askers(m: Move) -> tuple[str, ...]:
    replaced = _replaced(m)
    return (m.event["actor"], "system", *([replaced["asked_by"]] if replaced else []))


def _replaced(m: Move) -> Row | None:
    """The question of a step that another one replaces, because its agent asks something else."""
    if m.verb != "answer" or len(m.opened) != 1 or len(m.closed) != 1:
        return None
    old, new = m.closed[0][1], m.opened[0]
    same = bool(old.get("step")) and old["step"] == new.get("step")
    return old if same and old["status"] == WITHDRAWN else None


def _imported(q: Row, at: str) -> Iterator[str]:
    """An imported question is not from the future; a person answered it, with an answer that fits."""
    if not q["asked_at"] <= q.get("responded_at", at) <= at:
        yield f"{q['id']} was asked at {q['asked_at']} and closed at {q.get('responded_at')}, and that is not before now"
    if q["status"] == ANSWERED:
        if not q["responded_by"].startswith("human:"):
            yield f"{q['responded_by']} answered {q['id']}: only people answer"
        yield from _unfit(q, q.get("response"))


def _answers(replay: Replay, m: Move) -> Iterator[str]:
    """A question is closed once, while it is open, by an actor who may, with an answer that fits."""
    actor, answered = m.event["actor"], 0
    for before, q in m.closed:
        name, status = q["id"], q["status"]
        if before["status"] != PENDING:
            yield f"{name} was '{before['status']}' already, and became '{status}'"
        if status == PENDING:
            if m.verb not in ("assign", "timeout") and q.get("reason") != FINISHED:
                yield f"{m.verb} changed {name} without closing it"
            continue
        if (q["responded_by"], q["responded_at"]) != (actor, m.event["at"]):
            yield f"{name} says that {q['responded_by']} closed it at {q['responded_at']}"
        if status == ANSWERED:
            answered += 1
            if m.verb != "answer" or not actor.startswith("human:"):
                yield f"{actor} answered {name} by {m.verb}: only people answer"
            if not (m.written and (q["response"] or {}).get("value") is None and q["kind"] != "permission"):
                yield from _unfit(q, q["response"])  # otherwise the step's result has the answer
        elif status == TIMEOUT:
            if m.verb != "timeout" or actor != "system":
                yield f"{name} timed out by {m.verb} of {actor}"
            yield from _timeout_verdict(q)
        elif status != WITHDRAWN:
            yield f"{name} became '{status}'"
        elif q.get("reason") == FINISHED and _unfinished(m):
            continue
        elif m.verb in ("withdraw", "flag", "hand_back") and not _may_withdraw(m, q, actor):
            yield f"{actor} must not withdraw {name}, which {q['asked_by']} asked"
    kept_as_note = not m.closed and m.data.get("notes")
    if m.verb == "answer" and answered != 1 and not _replaced(m) and not kept_as_note and not _accepted_unasked(m):
        yield f"it answered {answered} questions"


def _accepted_unasked(m: Move) -> bool:
    """Before schema 6 finished work was accepted or sent back without a question of its own."""
    asked = any(q.get("reason") == FINISHED for q in m.history.questions.values())
    return m.verb == "answer" and m.data["from"] == REVIEW and not m.closed and not asked


def _unfinished(m: Move) -> bool:
    """A task with finished work got a child meanwhile: the question about its work is closed with the others."""
    return m.data["from"] == HUMAN and m.to in (READY, BLOCKED) and m.was.get("return_state") == REVIEW and len(m.closed) > 1


def _may_withdraw(m: Move, q: Row, actor: str) -> bool:
    """People withdraw what an actor asked; agents their own questions, blocking ones only as holder; the system its own, when
    the cause is gone. The question about finished work is never withdrawn."""
    if q.get("reason") == FINISHED:
        return False
    if actor == "system":
        return bool(q["asked_by"] == "system")
    if actor.startswith("human:"):
        return bool(q["asked_by"] != "system" or m.verb == "hand_back")
    held = m.was.get("holder") is not None
    return bool(q["asked_by"] == actor) and (not q["blocking"] or (held and q["kind"] in WITHDRAWABLE))


def _uses(replay: Replay, m: Move) -> Iterator[str]:
    """The action is the approved one, or the person's edit of it; it was approved; and it was not used before."""
    if m.used is None:
        return
    before, q = m.used
    response = q.get("response") or {}
    if q["kind"] != "permission" or q["status"] != ANSWERED or response.get("verdict") != APPROVED:
        yield f"{q['id']} was used without being granted"
    if before.get("used_by") is not None:
        yield f"{q['id']} was used already, by {before['used_by']}"
    if m.data["digest"] != response.get("digest", q.get("digest")):
        yield f"{q['id']} was used for something else than what was approved"
    if q["id"] in m.history.void:
        yield f"{q['id']} was used, and a restore had made it void"


def _steps(replay: Replay, m: Move) -> Iterator[str]:
    """Only a run has steps; its holder writes them, or a person who answers a waiting one; a result never changes."""
    was, now = m.was.get("journal", 0), m.history.row["journal"]
    if now != was and not (now == was + 1 and m.verb in ("reopen", "rewind") and m.history.row["workflow"]):
        yield f"{m.verb} took the journal from {was} to {now}"
    asked = {q.get("step") for _, q in m.closed}
    for before, step in m.written:
        where = f"step {step['index']}"
        if not m.history.row["workflow"]:
            yield f"{where} is written, and there is no script"
        if m.was.get("holder") is None and m.verb != "answer":
            yield f"{where} was written without a claim on the run"
        if before is not None and before["status"] == "completed":
            yield f"{where} was completed already"
        if before is not None and (before["name"], before["digest"]) != (step["name"], step["digest"]):
            yield f"{where} was another call"
        if (step["status"] == "completed") != ("ended_at" in step):
            yield f"{where} is '{step['status']}', and ended at {step.get('ended_at')}"
        if m.verb == "answer" and (before is None or f"{now}/{place(step['index'])}" not in asked):
            yield f"{where} was settled by an answer to something else"


def _unfit(q: Row, response: Row | None) -> Iterator[str]:
    """Problems of an answer, given its question."""
    if response is None or response.get("verdict") not in VERDICTS or response.get("type") != q["response_type"]:
        yield f"{q['id']} asks for {q['response_type']} and has {response}"
        return
    value, verdict = response["value"], response["verdict"]
    if verdict == REJECTED:
        return
    if "digest" in response:
        if q["kind"] != "permission" or response["digest"] != digest(value) or not _same_tool(q.get("action"), value):
            yield f"{q['id']} was approved with changes that it does not take"
        return
    chosen = value if q["multi"] and isinstance(value, list) else [value]
    offered = [option["value"] for option in q["options"]]
    fits = {
        "text": value is None or (isinstance(value, str) and value.strip() != ""),
        "choice": bool(chosen) and all(item in offered or _other(q, item) for item in chosen),
        "boolean": isinstance(value, bool) and (value or KINDS[q["kind"]].response_type != "approval"),
        "number": isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) != float("inf"),
        "approval": value is True,
    }
    if not fits[q["response_type"]]:
        yield f"{q['id']} asks for {q['response_type']}, and the answer {value!a} does not fit"


def _same_tool(shown: object, edited: object) -> bool:
    if not isinstance(shown, dict) or not isinstance(edited, dict) or shown.keys() != edited.keys():
        return False
    return all(shown[name] == edited[name] for name in shown if name not in ("input", "arguments"))


def _other(q: Row, item: object) -> bool:
    return bool(q["allow_other"]) and isinstance(item, str) and item.strip() != ""


def _timeout_verdict(q: Row) -> Iterator[str]:
    response, default = q["response"], q.get("default_value")
    if response is not None and (response.get("verdict") is not None or response != default):
        yield f"a timeout answered {q['id']} with {response}"


def _verdicts(replay: Replay, m: Move) -> Iterator[str]:
    """When a blocking question is closed, the task lands where the tables of verdicts and timeouts say."""
    stay = m.history.stay
    lands: tuple[str, ...] | None = None
    for _, q in m.closed:
        if q["status"] == ANSWERED:
            verdict = q["response"]["verdict"]
            result = outcome(q["kind"], verdict, bool(q["blocking"]), bool(m.history.row["workflow"]))
            if result == "refused":
                yield f"{q['id']} of kind {q['kind']} was {verdict}, which is refused"
            if not q["blocking"]:
                lands = (m.data["from"],)
            elif result == CANCELLED or _chosen(q) == "cancel":
                lands = (CANCELLED,)
            elif _chosen(q) == "human":
                lands = (HUMAN,)
            else:
                stay.add(result)
    if m.verb == "timeout":
        lands = _after_timeout(m, stay)
    elif m.verb == "hand_back":
        stay.clear()
    elif m.verb not in ("answer", "withdraw") or m.data["from"] not in (HUMAN, REVIEW) or _accepted_unasked(m):
        return
    waiting = m.history.waiting()
    if lands is None and waiting:
        lands = (REVIEW,) if all(q.get("reason") == FINISHED for q in waiting) else (HUMAN,)
    if lands is None and any(q["status"] == WITHDRAWN and q.get("reason") == FINISHED for _, q in m.closed):
        lands = (READY, BLOCKED)
    if lands is None:
        lands = (DONE,) if stay == {DONE} else _back(m)
    if m.to not in lands:
        yield f"it landed in '{m.to}', not in {' or '.join(lands)}"


def _chosen(q: Row) -> object:
    """The chosen option of a system question; "" for other questions, and for a free text, as before schema 6."""
    value = str((q["response"] or {}).get("value"))
    offered = q["asked_by"] == "system" and q["response_type"] == "choice" and q["status"] == ANSWERED
    return value if offered and (q.get("reason"), value) in CHOICES else ""


def _after_timeout(m: Move, stay: set[str]) -> tuple[str, ...] | None:
    how, others = m.data["on_timeout"], bool(m.history.waiting())
    if how == "accept":
        return (DONE,)
    if how in ("remind", "escalate", "keep"):
        return (HUMAN,)
    if how in ("fail", "stuck"):
        asked = any(q["asked_by"].startswith("human:") for q in m.history.waiting())
        outlived = asked and any(q["status"] == TIMEOUT and q["asked_by"].startswith("agent:") for _, q in m.closed)
        return (HUMAN,) if outlived else (FAILED,)
    if how == "defer" and not others:
        return (DEFERRED,)
    stay.add("back")
    return None


def _back(m: Move) -> tuple[str, ...]:
    was = str(m.was.get("return_state"))
    if was == WORKING and m.history.row["holder"] is not None:
        return (WORKING,)
    return {CREATED: (CREATED,), REVIEW: (REVIEW, READY, BLOCKED)}.get(was, (READY, BLOCKED))


def _times(replay: Replay, m: Move) -> Iterator[str]:
    """Time does not run backwards, and no due move is made too early."""
    at, was = m.event["at"], m.was
    if at < m.history.at:
        yield f"the event before it was written at {m.history.at}"
    if m.event["actor"] != "system":
        return
    due = {"expire": "lease_expires_at", "wake": "wake_at"}.get(m.verb)
    if due and (was.get(due) is None or was[due] > at):
        yield f"{due} was {was.get(due)}"
    for before, after in m.closed:
        if m.verb == "timeout" and after["status"] != WITHDRAWN:
            yield from _too_early(before, at, m.data["on_timeout"])


def _too_early(q: Row, at: str, how: str) -> Iterator[str]:
    if q.get("timeout_at") is None or q["timeout_at"] > at:
        yield f"the time of {q['id']} is up at {q.get('timeout_at')}"
    promised = "fail" if q["on_timeout"] == "default" and q.get("default_value") is None else q["on_timeout"]
    if how != promised:
        yield f"{q['id']} has the timeout policy {promised}, and got {how}"


def _causes(replay: Replay, m: Move) -> Iterator[str]:
    """No effect comes before its cause: a task is unblocked after its dependencies ended; the system reopens a task after a
    person chose that, and withdraws its question after the cause is gone."""
    system = m.event["actor"] == "system"
    if m.verb == "reopen" and system:
        if m.history.key not in replay.retried:
            yield "the system opened it again, and no person chose that"
        replay.retried.discard(m.history.key)
    for _, q in m.closed:
        if q.get("reason") == DEPENDENCY_FAILED and q["asked_by"] == "system":
            failed = str((q.get("metadata") or {}).get("failed"))
            if _chosen(q) == "retry":
                replay.retried.add(failed)
            if m.verb == "withdraw" and system and failed in m.history.needs and replay.tasks[failed].row["state"] == FAILED:
                yield f"{q['id']} was taken back, and {failed} has still failed"
    if m.verb in ("unblock", "parent"):
        for key in m.history.needs:
            other = replay.tasks.get(key)
            if other is None or not other.freed:
                yield f"it goes on before {key}, which it waits for, has ended"


MOVE_CHECKS: dict[str, Callable[[Replay, Move], Iterator[str]]] = {
    "moves": _moves,
    "claims": _claims,
    "epochs": _epochs,
    "retries": _retries,
    "turns": _turns,
    "questions": _questions,
    "answers": _answers,
    "uses": _uses,
    "steps": _steps,
    "verdicts": _verdicts,
    "times": _times,
    "causes": _causes,
}
