"""What the buttons say, and what each answer will do.

A yes and a no have a bold verb and a small consequence. Nothing here decides anything: the buttons are rows of the table of
answers (core/answers.py), and where each leads is what `decide` says (core/previews.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..core.field_text import answered
from ..core.rules import KINDS, outcome
from ..display import goes_on, person, then
from ..display.terminal import length, micros

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
    "run_failed": "The run has failed",
    "dependency_failed": "What it waits for has failed",
    "finished": "Finished, to be accepted",
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
    said = answered(value, q["options"])
    return said.capitalize() if isinstance(value, bool) else said


def answers(q: Mapping[str, Any], effects: Sequence[Mapping[str, Any]], run: str = "") -> Answers:
    """The buttons of an open question, from the table of answers; `effects` says where each leads. `run`: the script, where
    the task is a run."""
    form, who = q["response_type"], run or goes_on(dict(q))
    same = len({e["state"] for e in effects if e["answer"] == "answer"}) == 1
    yes: list[Say] = []
    no: Say | None = None
    for e in effects:
        does, label = then(dict(q), dict(e), run), _verb(q, e, run)
        if e["answer"] == "answer":
            yes = yes or [Say(label, does if same else "", "approved", "", "go")]
        elif e["answer"] == "yes":
            yes.append(Say(label, does, "approved", "yes" if form == "boolean" else "", "go"))
        elif form == "boolean":
            yes.append(Say(label, does, "approved", "no"))
        elif e["cancels"]:
            no = Say(label, f"ends {q['task']}, asks first", "", "", "end", href=f"/questions/{q['id']}/cancel")
        else:
            why = f"What should {who} know?" if run else e["why"].format(who=who)
            no = Say(label, does, "rejected", why=why, needs_why=e["why_needed"] and not run)
    missing = {"choice": "Choose some" if q["multi"] else "Choose first", "text": "Write an answer", "number": "Write an answer"}
    if form == "choice" and q["kind"] == "recovery":
        missing["choice"] = "Choose a way out"
    return Answers(tuple(yes), no, missing.get(form, ""))


def _verb(q: Mapping[str, Any], e: Mapping[str, Any], run: str) -> str:
    """The label of the table; a script is told to continue or to stop."""
    if not run or q["kind"] == "permission" or q["response_type"] == "boolean":
        return str(e["label"])
    if e["answer"] == "no":
        return "Stop here"
    return "Continue" if q["response_type"] == "approval" else str(e["label"])


def batch_verb(q: Mapping[str, Any], effects: Sequence[Mapping[str, Any]], run: str) -> Say | None:
    """The yes that may be said to several at once: one that needs neither words nor a choice."""
    if q["response_type"] != "approval" or not effects:
        return None
    return answers(q, effects, run).yes[0]


def silence(q: Mapping[str, Any], run: str = "", short: bool = False) -> str:
    """What happens if nobody answers."""
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
            "remind": "then its time runs again", "escalate": "then somebody else is asked",
            "accept": "then it is accepted",
        }[what]  # fmt: skip
    return found if short or q["kind"] != "permission" else f"{found}; nothing runs"


def why_waits(q: Mapping[str, Any]) -> str:
    rule = (q.get("metadata") or {}).get("rule")
    if isinstance(rule, str) and rule:
        return f"Rule “{rule[:80]}”"
    reason = REASONS.get(q["reason"] or "")
    if not q["blocking"]:
        return f"{reason or 'It would like to know'}; it does not wait for the answer"
    return reason or WAITS[q["kind"]]


def result(q: Mapping[str, Any], me: str, then: bool = True) -> str:
    """How a closed question ended: 'You answered “JWT”. coder goes on with it.' The last sentence only where it was not said."""
    response, who = q["response"] or {}, name(q["asked_by"])
    by = "You" if q["responded_by"] == me else person(q["responded_by"] or "system")
    if q["status"] == "timeout":
        took = length((micros(q["timeout_at"] or q["responded_at"]) - micros(q["asked_at"])) / 1_000_000, brief=True)
        if response.get("value") is not None:
            return f"No answer in {took}. Went on with the default “{label(q, response['value'])}”."
        return f"No answer in {took}." + (" It was accepted." if q["on_timeout"] == "accept" else "")
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
    if value is True and q["response_type"] == "approval" and KINDS[q["kind"]].response_type != "approval":
        return f"{by} said yes{words}."
    if value is None or (value is True and q["response_type"] == "approval"):
        return f"{by} {DONE[q['kind']]}{words}."
    if "digest" in response:
        return f"{by} allowed this, changed{words}."
    end = "" if not words and label(q, value).endswith((".", "!", "?")) else "."
    return f"{by} answered “{label(q, value)}”{words}{end}" + f" {who} goes on with it." * then


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
