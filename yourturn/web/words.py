"""What the buttons say, and what each answer will do. One table of words; what an answer does is read from the rules.

A yes and a no have a bold verb and a small consequence. Nothing here decides anything: `outcome` of the rules says where a
verdict leads, and these words follow it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.rules import KINDS, outcome
from ..screen import micros
from ..view import person

#: kind -> the verbs of a yes and a no
VERBS: dict[str, tuple[str, str]] = {
    "work": ("Mark as done", ""),
    "approval": ("Approve and finish", "Send back"),
    "review": ("Approve the PR", "Request changes"),
    "content": ("Approve the text", "Request changes"),
    "input": ("Send answer", "Cancel task…"),
    "escalation": ("Send answer", "Cancel task…"),
    "checkpoint": ("Continue", "Send back"),
    "permission": ("Allow once", "Deny"),
    "recovery": ("Send answer", "None of these"),
}
#: What a no of a kind does where the work goes back.
BACK = {
    "approval": "{who} works on it again",
    "review": "{who} gets your words",
    "content": "{who} gets your words",
    "checkpoint": "{who} gets your reason",
    "permission": "{who} is told no",
    "recovery": "tell {who} what to do instead",
}
#: What is asked for with a no.
WHY = {
    "approval": "What should change?",
    "review": "What should change?",
    "content": "What should change?",
    "checkpoint": "Why does it go back?",
    "permission": "Why not? (optional)",
    "recovery": "What should {who} do instead?",
}
#: What has been done, for the row and the toast.
DONE = {
    "work": "marked this as done", "approval": "approved this", "review": "approved this", "content": "approved this",
    "checkpoint": "let it continue", "permission": "allowed this", "input": "answered", "escalation": "answered",
    "recovery": "answered",
}  # fmt: skip
UNDONE = {
    "approval": "sent this back", "review": "asked for changes", "content": "asked for changes", "checkpoint": "sent this back",
    "permission": "denied this", "input": "cancelled the task", "escalation": "cancelled the task",
    "recovery": "said none of these",
}  # fmt: skip
REASONS = {
    "irreconcilable_conflict": "A conflict that it cannot solve",
    "unclear_requirements": "The task is not clear",
    "decision_needed": "Decision needed",
    "access_required": "It needs access",
    "blocked_external": "Something outside is in the way",
    "risk_assessment": "There is a risk to judge",
    "out_of_scope": "It goes beyond the task",
    "retry_exhausted": "All tries are used",
    "protocol_error": "Its last words made no sense",
    "code_changed": "The script has changed",
    "dependency_failed": "What it waits for has failed",
}
#: Why a question of a kind waits, where it does not say.
WAITS = {
    "work": "This one is for a person", "approval": "Finished, to be signed off", "input": "It needs to know this",
    "review": "To be reviewed", "content": "To be judged by a person", "escalation": "It cannot go on alone",
    "checkpoint": "A person looks before it goes on", "permission": "It asks before it acts", "recovery": "Something went wrong",
}  # fmt: skip


class Say(NamedTuple):
    """An answer button."""

    verb: str
    effect: str
    verdict: str  #: approved, rejected, or "" where the button is a link
    value: str = ""
    style: str = ""  #: go, end, bad
    why: str = ""  #: what is asked for with it
    needs_why: bool = False
    href: str = ""


class Answers(NamedTuple):
    yes: tuple[Say, ...]
    no: Say | None
    missing: str = ""  #: what the yes says as long as nothing is chosen


def name(actor: str) -> str:
    """Who goes on: a name; the system stands for whoever comes next."""
    return person(actor) if actor != "system" else "an agent"


def script(task: Mapping[str, Any] | None) -> str:
    """The workflow's file, where the task is a run of one."""
    return str((task or {}).get("workflow") or "").rpartition("/")[2]


def label(q: Mapping[str, Any], value: Any) -> str:
    """An answer in the words of its option."""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, list):
        return ", ".join(label(q, one) for one in value)
    return next((str(o["label"]) for o in q["options"] if o["value"] == value), str(value))


def effect(q: Mapping[str, Any], verdict: str, run: str) -> str:
    """What an answer does, as a small line."""
    key, who = q["task"], name(q["asked_by"])
    if not q["blocking"]:
        return f"{who} hears of it"
    found = outcome(q["kind"], verdict, True, bool(run))
    if found == "done":
        return f"{key} is done"
    if found == "cancelled":
        return f"ends {key}, asks first"
    if run and q["kind"] != "permission":
        return f"{run} goes on" if verdict == "approved" else f"{run} is told no and decides"
    if verdict == "rejected":
        return BACK[q["kind"]].format(who=who)
    return (
        f"{who} runs exactly this"
        if q["kind"] == "permission"
        else f"{who} goes on" + " with it" * (q["kind"] not in ("checkpoint",))
    )


def is_finished(q: Mapping[str, Any]) -> bool:
    """Finished work stands in the inbox under its task's key."""
    return bool(q["id"] == q["task"])


def answers(q: Mapping[str, Any], run: str = "") -> Answers:
    """The buttons of an open question. `run`: the script, where the task is a run."""
    kind, form = q["kind"], q["response_type"]
    verb, against = VERBS[kind]
    if is_finished(q):
        verb, against = VERBS["approval"]
    who = run or name(q["asked_by"])
    yes_does, no_does = effect(q, "approved", run), effect(q, "rejected", run) if against else ""
    if run and kind != "permission":
        against = "Stop here"
        verb = "Continue" if form == "approval" else verb
    no: Say | None = None
    if against and q["blocking"]:
        ends = outcome(kind, "rejected", True, bool(run)) == "cancelled"
        why = "" if ends else f"What should {who} know?" if run else WHY[kind].format(who=who)
        needs = not run and kind in ("approval", "review", "content", "checkpoint", "recovery")
        href = f"/questions/{q['id']}/cancel" if ends else ""
        no = Say(against, no_does, "" if ends else "rejected", "", "end" if ends else "", why, needs, href)
    if form == "boolean":
        both = (Say("Yes", yes_does, "approved", "yes", "go"), Say("No", _no_does(q, run, yes_does), "approved", "no", ""))
        gate = KINDS[kind].response_type == "approval"
        return Answers(both, None if gate else no)
    if form == "choice":
        missing = "Choose a way out" if kind == "recovery" else "Choose first" if not q["multi"] else "Choose some"
        return Answers((Say("Send answer", yes_does, "approved", "", "go"),), no, missing)
    if form in ("text", "number"):
        return Answers((Say("Send answer", yes_does, "approved", "", "go"),), no, "Write an answer")
    return Answers((Say(verb, yes_does, "approved", "", "go"),), no)


def _no_does(q: Mapping[str, Any], run: str, yes: str) -> str:
    """A no to a yes-or-no question is an answer, except where the kind asks for a verdict."""
    return effect(q, "rejected", run) if KINDS[q["kind"]].response_type == "approval" else yes


def batch_verb(q: Mapping[str, Any], run: str) -> Say | None:
    """The yes that may be said to several at once: one that needs neither words nor a choice."""
    if q["response_type"] != "approval":
        return None
    return answers(q, run).yes[0]


def silence(q: Mapping[str, Any], run: str = "", short: bool = False) -> str:
    """What happens if nobody answers."""
    if q.get("accept_at"):
        return "then it is accepted"
    if not q["blocking"]:
        return f"went on with “{label(q, q['default'])}”"
    if q["timeout_at"] is None or q["on_timeout"] == "keep":
        return ""
    fails = "then the run stops" if run else "then the task fails" if short else f"then {q['task']} fails"
    what = q["on_timeout"]
    if what == "default" and q["default"] is not None:
        found = f"then “{label(q, q['default'])}”" if short else f"then goes on with “{label(q, q['default'])}”"
    else:
        found = {
            "default": fails, "fail": fails, "stuck": "then it ends as stuck", "defer": "then it is put aside",
            "remind": "then you are reminded", "escalate": "then somebody else is asked",
        }[what]  # fmt: skip
    return found if short or q["kind"] != "permission" else f"{found}; nothing runs"


def why_waits(q: Mapping[str, Any]) -> str:
    rule = (q.get("metadata") or {}).get("rule")
    if isinstance(rule, str) and rule:
        return f"Rule “{rule[:80]}”"
    return REASONS.get(q["reason"] or "", WAITS[q["kind"]])


def result(q: Mapping[str, Any], me: str, then: bool = True) -> str:
    """How a closed question ended: 'You answered “JWT”. coder goes on with it.' The last sentence only where it was not said."""
    response, who = q["response"] or {}, name(q["asked_by"])
    by = "You" if q["responded_by"] == me else person(q["responded_by"] or "system")
    if q["status"] == "timeout":
        from .shape import short

        took = short((micros(q["timeout_at"] or q["responded_at"]) - micros(q["asked_at"])) // 1_000_000)
        if response.get("value") is not None:
            return f"No answer in {took}. Went on with the default “{label(q, response['value'])}”."
        return f"No answer in {took}." + (" It was accepted." if is_finished(q) else "")
    if q["status"] == "cancelled":
        why = f": {q['close_reason']}" if q["close_reason"] else ""
        by_whom = "" if by == "system" else f" by {'you' if by == 'You' else by}"
        return f"Taken off the desk{by_whom}{why}."
    words = f": “{response['text']}”" if response.get("text") and response.get("text") != response.get("value") else ""
    if response.get("verdict") == "rejected":
        run = bool(q.get("workflow") or q["step"])
        ends = outcome(q["kind"], "rejected", q["blocking"], run) == "cancelled"
        told = UNDONE.get(q["kind"], "said no")
        return f"{by} {told if ends or told != 'cancelled the task' else 'said no'}{words}."
    value = response.get("value")
    if value is None or (value is True and q["response_type"] == "approval"):
        return f"{by} {DONE[q['kind']]}{words}."
    if "digest" in response:
        return f"{by} allowed this, changed{words}."
    end = "" if not words and label(q, value).endswith((".", "!", "?")) else "."
    return f"{by} answered “{label(q, value)}”{words}{end}" + f" {who} goes on with it." * then


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
