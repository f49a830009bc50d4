"""Guards. Each returns the reason why a move is refused (it completes 'Reason: …'), or "" to allow it.

NEXT has the hint for a refusal whose reason does not say what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .decision_builder import Draft
from .errors import IllegalMove, Invalid, NotAllowed, Precondition
from .model import DONE, ENDED, FINISHED, HUMAN, PENDING, REVIEW, TIMEOUT, WITHDRAWN, Question, Ref
from .questions import allowed, allows
from .rules import KINDS, ROLES, WITHDRAWABLE, valid_from
from .task_fields import UPDATES
from .time_format import lasting


def keys(refs: list[Ref] | tuple[Ref, ...]) -> str:
    """'PROJ-40, PROJ-41', shortened when it is long."""
    shown = ", ".join(ref.key for ref in refs[:8])
    return shown if len(refs) <= 8 else f"{shown} and {len(refs) - 8} more"


def refused(what: str, guard: Callable[[Draft], str], d: Draft) -> Precondition:
    """The error for a guard that refused."""
    return Precondition(what, reason=guard(d), hint=NEXT[guard](d) if guard in NEXT else "")


def title(d: Draft) -> str:
    return "" if d.get("title").strip() else "the title is empty"


def too_large(complexity: str, has_children: bool) -> bool:
    """True if the task must be decomposed before it can be claimed."""
    return complexity == "xlarge" and not has_children


def right_size(d: Draft) -> str:
    return "it is 'xlarge': decompose it first" if too_large(d.get("complexity"), d.case.has_children) else ""


def wrong_size(d: Draft) -> str:
    return "" if right_size(d) else "it is not too large"


def is_work(d: Draft) -> str:
    """The task can be given to agents. WORKABLE in db/ is the same condition in SQL; a test compares them."""
    return container(d.get("type")) or right_size(d)


def container(type: str) -> str:
    return "it is an epic: its children are the work" if type == "epic" else ""


def open_need(d: Draft) -> str:
    return "" if d.needs else "it waits for nothing"


def no_open_need(d: Draft) -> str:
    return f"unresolved dependencies: {keys(d.needs)}" if d.needs else ""


def no_open_child(d: Draft) -> str:
    return f"open children: {keys(d.case.children)}" if d.case.children else ""


def open_parent(d: Draft) -> str:
    parent = d.case.parent
    if parent is None or parent.state not in (*ENDED, REVIEW):
        return ""
    return f"its parent {parent.key} is '{parent.state}'"


def open_parent_if_open(d: Draft) -> str:
    """An imported task that has ended may have a parent that has ended."""
    return "" if d.args["state"] in ENDED else open_parent(d)


def tries_left(d: Draft) -> str:
    used, most = d.get("retry_count"), d.get("max_retries")
    return "" if used < most else f"no retries left ({used} of {most}); a person's answer or a reopen resets them"


def may_run(d: Draft) -> str:
    """Only workers may claim a run: its holder acts as the script."""
    who = d.action.who
    if d.get("workflow") and who.scopes is not None and "run" not in who.scopes:
        hint = "A worker's token can: turn token create NAME --scope run"
        raise NotAllowed(f"{who.name} cannot claim {d.key}", reason="it is a run, and the token is not for runs", hint=hint)
    return ""


def held_claim(d: Draft) -> str:
    return "" if d.get("holder") else "no session holds a claim on it"


def lease_over(d: Draft) -> str:
    ends = d.get("lease_expires_at")
    return "" if ends is not None and ends <= d.now else "the lease is not over"


def time_is_up(d: Draft) -> str:
    q = d.question
    over = q is not None and q.timeout_at is not None and q.timeout_at <= d.now and q.on_timeout != "keep"
    return "" if over else "the time is not up"


def future(d: Draft) -> str:
    until = d.args.get("until")
    return "the date is in the past" if until is not None and until <= d.now else ""


def acyclic(d: Draft) -> str:
    """Refuse a dependency cycle. The desk passes the cycle, if there is one, as `circle`."""
    circle = d.args.get("circle")
    if circle and any(ref.id == d.id for ref in circle):
        return "a task cannot wait for itself"
    return f"that would be a circle: {keys(circle)} already waits for {d.key}" if circle else ""


def acyclic_parent(d: Draft) -> str:
    circle = d.args.get("circle")
    return f"that would be a circle: {keys(circle)} already waits for its parent" if circle else ""


def children(d: Draft) -> str:
    return "" if d.args.get("children") else "no children were named: give --child at least once"


def open_question(d: Draft) -> str:
    """The move needs an open question that does not block the task."""
    if d.question is None:
        raise IllegalMove(
            f"Cannot {d.action.verb} {d.key}: it is '{d.state}'",
            hint=f"Valid from '{d.state}': {', '.join(valid_from(d.state))}",
        )
    return ""


def may_answer(d: Draft) -> str:
    """A project can reserve its gates for approvers."""
    q = d.question
    if q is None:
        return ""
    kind = KINDS[q.kind]
    if kind.gate or (q.blocking and kind.approved == "done" and (d.get("requires") or d.get("return_state") == REVIEW)):
        _approver(d, q.name)
    return ""


def _is_approver(d: Draft) -> bool:
    return d.settings["approvals"] != "approvers" or "approver" in ROLES[d.action.who.role]


def _approver(d: Draft, what: str) -> None:
    who = d.action.who
    if not _is_approver(d):
        verb = d.action.verb.replace("_", " ")
        raise NotAllowed(f"Cannot {verb} {what}", reason=f"only approvers can, and {who.name} is a {who.role}")


def may_lift(d: Draft) -> str:
    """Lifting a gate without an answer needs the right to answer it."""
    if any(KINDS[q.kind].gate for q in d.waiting()):
        _approver(d, d.key)
    return ""


def may_end(d: Draft) -> str:
    """Ending a task as done needs the right to sign it off."""
    if d.get("requires") or REVIEW in (d.state, d.get("return_state")):
        _approver(d, d.key)
    return may_lift(d)


def may_take_back(d: Draft) -> str:
    """Reopening a done task needs the right to sign it off."""
    if d.state == DONE:
        _approver(d, d.key)
    return ""


def may_create(d: Draft) -> str:
    """An agent cannot raise the project's number of tries, nor create a run."""
    who, most = d.action.who, d.settings["max_retries"]
    if not who.is_person and (d.args.get("max_retries") or 0) > most:
        raise NotAllowed(f"{who.name} cannot create that", reason=f"only people give a task more than {most} tries")
    if not who.is_person and d.args.get("workflow"):
        raise NotAllowed(f"{who.name} cannot create that", reason="only people start workflows")
    if not who.is_person and d.args.get("external_id"):
        raise NotAllowed(f"{who.name} cannot create that", reason="only people say which id a task has elsewhere")
    may_bring_code(d)
    if d.args.get("workflow"):
        _requires_nothing(d.args)
    unasked = [name for name in ("question", "reviewer") if name in d.args and "awaiting" not in d.args]
    if unasked:
        raise Invalid(f"{unasked[0]} goes with awaiting", hint="Say of which kind the question is: --awaiting input")
    return ""


def _requires_nothing(fields: dict[str, Any]) -> None:
    """A run ends with its script, so it cannot require a sign-off."""
    if fields.get("requires"):
        hint = 'Let it ask before it ends: pause("Is it good?", kind="approval").'
        raise Invalid("A run requires nothing when it is finished", reason="its script decides what it asks", hint=hint)


def may_bring_code(d: Draft) -> None:
    """Direct database users may start any script; over HTTP only an admin may."""
    who = d.action.who
    if who.direct or who.role == "admin":
        return
    if d.args.get("program"):
        raise NotAllowed(f"{who.name} cannot give a run its script", reason="only an admin brings code to run")
    parts = str(d.args.get("workflow") or "a.py").partition(":")[0].replace("\\", "/").split("/")
    if not parts[-1].endswith((".py", ".lua")) or any(not part or part.startswith(".") for part in parts):
        why = "only an admin names a module, or a file that is not the project's own"
        raise NotAllowed(f"{who.name} cannot start {d.args['workflow'][:80]!a}", reason=why)


def a_run(d: Draft) -> str:
    return "" if d.get("workflow") else "it has no script"


def script_says(d: Draft) -> str:
    """Only the script ends a run: an agent in a step can end its own turn, not the run."""
    if d.action.who.is_person or d.action.who.role == "system" or not d.get("workflow"):
        return ""
    return "" if d.script and d.args.get("journal") == d.get("journal") else _NOT_THE_SCRIPT.format(d.get("workflow"))


def script_speaks(d: Draft) -> str:
    return "" if d.script else _NOT_THE_SCRIPT.format(d.get("workflow"))


_NOT_THE_SCRIPT = "it is a run of {}, and its script decides; end your turn with a signal instead"


def may_rewind(d: Draft) -> str:
    return may_lift(d) if d.state == HUMAN else ""


def short_enough(d: Draft) -> str:
    lease, most = d.args.get("lease"), d.settings["max_lease"]
    return f"a lease lasts at most {lasting(most)} without a heartbeat" if lease and lease > most else ""



def room_for_tries(d: Draft) -> str:
    most = d.args.get("fields", {}).get("max_retries")
    used = d.get("retry_count")
    return f"{used} of its tries {'is' if used == 1 else 'are'} used already" if most is not None and most <= used else ""


def may_withdraw(d: Draft) -> str:
    """People may withdraw questions of others; an agent only its own, and a blocking one only while it holds the task."""
    who, q = d.action.who, d.question
    if q is None:
        return ""
    if who.role == "system":
        return ""
    if q.reason == FINISHED:
        return f"{q.name} is about finished work: approve or reject it"
    if q.asked_by == "system":
        return f"the system asked {q.name}: answer it, or hand the task back"
    if who.is_person:
        return may_lift(d) if d.state == HUMAN else ""
    if not takes_off(d, q):
        raise NotAllowed(f"Cannot withdraw {q.name}", reason="only people can withdraw a question that blocks a task")
    return ""


def takes_off(d: Draft, q: Question) -> bool:
    """True if the actor may withdraw this question: no question of the system, and a gate only with the right to answer it.

    An agent withdraws its own questions; blocking ones only as the holder, and none that judges work.
    """
    who = d.action.who
    if q.asked_by == "system" or q.reason == FINISHED:
        return False
    if who.is_person:
        return not KINDS[q.kind].gate or _is_approver(d)
    return q.asked_by == who.name and (not q.blocking or (d.holds_claim and q.kind in WITHDRAWABLE))


def may_use(d: Draft) -> str:
    """A permission may be used by its asker and by the current holder of the task."""
    who, q = d.action.who, d.question
    if q is not None and q.asked_by != who.name and not d.holds_claim:
        raise NotAllowed(f"Cannot use {q.name}", reason=f"{q.asked_by} asked for it, and {who.name} does not hold {d.key}")
    return ""


def is_given(d: Draft) -> str:
    """A permission allows the shown action, or the edited one, for one call, until the desk is restored."""
    q = d.question
    if q is None:
        return "no permission was named"
    if not allows(q, None):
        return f"{q.name} {_not_given(q)}"
    if not allows(q, d.case.project.fenced_at):
        return f"{q.name} was given before this desk was restored: ask again"
    if d.args["digest"] != allowed(q):
        return f"{q.name} allows something else"
    if q.used_by not in (None, d.args["by"]):
        return f"{q.name} was used already, by {q.used_by}"
    return ""


def _not_given(q: Question) -> str:
    if q.kind != "permission":
        return f"is no permission: it is of kind {q.kind}"
    how = {PENDING: "has no answer yet", TIMEOUT: "was not answered in time", WITHDRAWN: f"was cancelled by {q.responded_by}"}
    return how.get(q.status) or f"was rejected by {q.responded_by}"


def may_update(d: Draft) -> str:
    who = d.action.who
    fields = d.args.get("fields", ())
    for field in fields:
        if UPDATES[field] not in ROLES[who.role]:
            raise NotAllowed(f"Cannot change {field} of {d.key}", reason="only people change limits, gates and priorities")
        if UPDATES[field] == "holder" and not who.is_person and not d.holds_claim:
            raise NotAllowed(f"Cannot change {field} of {d.key}", reason="an agent does that only to what it has claimed")
    if "requires" in fields:
        _approver(d, d.key)
        if d.get("workflow"):
            _requires_nothing(fields)
    return ""


def _parent_first(d: Draft) -> str:
    parent = d.case.parent
    assert parent is not None
    return f'First: turn reject {parent.key} "why"' if parent.state == REVIEW else f"First: turn reopen {parent.key}"


def _cycle_hint(circle: list[Ref], task: int) -> str:
    return "" if any(ref.id == task for ref in circle) else f"See what each waits for: turn dep list {circle[0].key}"


def _smaller(d: Draft) -> str:
    return f'turn decompose {d.key} --child "…" --child "…", or call it smaller: turn update {d.key} -c large'


NEXT: dict[Callable[[Draft], str], Callable[[Draft], str]] = {
    title: lambda d: f'Give it one: turn update {d.key} --title "…"',
    right_size: lambda d: _smaller(d),
    is_work: lambda d: f'Add a child: turn create "…" --parent {d.key}' if d.get("type") == "epic" else _smaller(d),
    no_open_child: lambda d: f"Finish or cancel them first: turn tree {d.key}",
    open_parent: _parent_first,
    open_parent_if_open: _parent_first,
    tries_left: lambda d: f"Give it more: turn update {d.key} --max-retries {d.get('retry_count') + 1}",
    held_claim: lambda d: f"It is a person's turn: turn show {d.key}",
    future: lambda d: "Name one that is still to come: --until 2d",
    acyclic: lambda d: _cycle_hint(d.args["circle"], d.id),
    a_run: lambda d: "Only runs have a journal: turn run FILE",
    short_enough: lambda d: f"Take it for less, and say that you are still at it: turn heartbeat {d.key}",
    room_for_tries: lambda d: f"Give it more than that: --max-retries {d.get('retry_count') + 1}",
}
