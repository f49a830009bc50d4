"""Labels of questions and answers: buttons with their effects, reasons, results.

A button has a verb and, below it, its effect. The buttons come from the table of answers (core/answers.py), and their effects
from `decide` (core/previews.py); this module contains no rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..core.field_text import answered
from ..core.rules import KINDS, outcome
from ..display import answer_effect, continuing_actor, person
from ..display.terminal import length, micros

#: What a yes did, and a no, by the question's kind.
APPROVED = {
    "work": "marked this as done", "approval": "approved this", "review": "approved this", "content": "approved this",
    "checkpoint": "let it continue", "permission": "allowed this", "input": "answered", "escalation": "answered",
    "recovery": "answered",
}  # fmt: skip
REJECTED = {
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
    "protocol_error": "Its last message was not understood",
    "code_changed": "The script has changed",
    "run_failed": "The run has failed",
    "dependency_failed": "What it waits for has failed",
    "finished": "Finished, to be accepted",
}
#: Why a question waits that gives no reason, by its kind.
WAITING = {
    "work": "This one is for a person", "approval": "Finished, to be signed off", "input": "It needs to know this",
    "review": "To be reviewed", "content": "To be judged by a person", "escalation": "It cannot go on alone",
    "checkpoint": "A person looks before it goes on", "permission": "It asks before it acts", "recovery": "Something went wrong",
}  # fmt: skip


class AnswerButton(NamedTuple):
    verb: str
    effect: str
    verdict: str  #: approved, rejected, or empty if the button is a link
    value: str = ""
    style: str = ""  #: go, end
    why: str = ""  #: the label of the field for its reason
    needs_why: bool = False
    href: str = ""


class AnswerButtons(NamedTuple):
    yes: tuple[AnswerButton, ...]
    no: AnswerButton | None
    missing: str = ""  #: the label of the yes as long as nothing is chosen


def actor_name(actor: str) -> str:
    """The name of an actor; for the system that of any agent, because any agent continues."""
    return person(actor) if actor != "system" else "an agent"


def script_name(task: Mapping[str, Any] | None) -> str:
    """The file name of the workflow, if the task is a run."""
    return str((task or {}).get("workflow") or "").rpartition("/")[2]


def answer_label(q: Mapping[str, Any], value: Any) -> str:
    """An answer, in the words of its option."""
    label = answered(value, q["options"])
    return label.capitalize() if isinstance(value, bool) else label


def answer_buttons(q: Mapping[str, Any], effects: Sequence[Mapping[str, Any]], run: str = "") -> AnswerButtons:
    """The buttons of an open question. `effects`: of each answer; `run`: the script, if the task is a run."""
    form, asker = q["response_type"], run or continuing_actor(dict(q))
    same_state = len({e["state"] for e in effects if e["answer"] == "answer"}) == 1
    yes: list[AnswerButton] = []
    no: AnswerButton | None = None
    for e in effects:
        effect, verb = answer_effect(dict(q), dict(e), run), _verb(q, e, run)
        if e["answer"] == "answer":
            yes = yes or [AnswerButton(verb, effect if same_state else "", "approved", "", "go")]
        elif e["answer"] == "yes":
            yes.append(AnswerButton(verb, effect, "approved", "yes" if form == "boolean" else "", "go"))
        elif form == "boolean":
            yes.append(AnswerButton(verb, effect, "approved", "no"))
        elif e["cancels"]:
            no = AnswerButton(verb, f"ends {q['task']}, asks first", "", "", "end", href=f"/questions/{q['id']}/cancel")
        else:
            why = f"What should {asker} know?" if run else e["why"].format(who=asker)
            no = AnswerButton(verb, effect, "rejected", why=why, needs_why=e["why_needed"] and not run)
    missing = {"choice": "Choose some" if q["multi"] else "Choose first", "text": "Write an answer", "number": "Write an answer"}
    if form == "choice" and q["kind"] == "recovery":
        missing["choice"] = "Choose a way out"
    return AnswerButtons(tuple(yes), no, missing.get(form, ""))


def _verb(q: Mapping[str, Any], e: Mapping[str, Any], run: str) -> str:
    """The label of the table of answers; a script continues or stops."""
    if not run or q["kind"] == "permission" or q["response_type"] == "boolean":
        return str(e["label"])
    if e["answer"] == "no":
        return "Stop here"
    return "Continue" if q["response_type"] == "approval" else str(e["label"])


def batch_button(q: Mapping[str, Any], effects: Sequence[Mapping[str, Any]], run: str) -> AnswerButton | None:
    """The yes that can be sent for several questions at once: it needs neither words nor a choice."""
    if q["response_type"] != "approval" or not effects:
        return None
    return answer_buttons(q, effects, run).yes[0]


def timeout_text(q: Mapping[str, Any], run: str = "", short: bool = False) -> str:
    """What happens without an answer."""
    if not q["blocking"]:
        return f"went on with “{answer_label(q, q['default'])}”"
    if q["timeout_at"] is None or q["on_timeout"] == "keep":
        return ""
    fails = "then the run stops" if run else "then the task fails" if short else f"then {q['task']} fails"
    policy = q["on_timeout"]
    if policy == "default" and q["default"] is not None:
        text = f"then “{answer_label(q, q['default'])}”" if short else f"then goes on with “{answer_label(q, q['default'])}”"
    else:
        text = {
            "default": fails, "fail": fails, "stuck": "then it ends as stuck", "defer": "then it is put aside",
            "remind": "then its time runs again", "escalate": "then another reviewer is asked",
            "accept": "then it is accepted",
        }[policy]  # fmt: skip
    return text if short or q["kind"] != "permission" else f"{text}; nothing runs"


def waiting_reason(q: Mapping[str, Any]) -> str:
    rule = (q.get("metadata") or {}).get("rule")
    if isinstance(rule, str) and rule:
        return f"Rule “{rule[:80]}”"
    reason = REASONS.get(q["reason"] or "")
    if not q["blocking"]:
        return f"{reason or 'It would like to know'}; it does not wait for the answer"
    return reason or WAITING[q["kind"]]


def result_text(q: Mapping[str, Any], me: str, then: bool = True) -> str:
    """How a closed question ended: 'You answered “JWT”. coder goes on with it.' The last sentence only with `then`."""
    response = q["response"] or {}
    by = "You" if q["responded_by"] == me else person(q["responded_by"] or "system")
    if q["status"] == "timeout":
        took = length((micros(q["timeout_at"] or q["responded_at"]) - micros(q["asked_at"])) / 1_000_000, brief=True)
        if response.get("value") is not None:
            return f"No answer in {took}. Went on with the default “{answer_label(q, response['value'])}”."
        return f"No answer in {took}." + (" It was accepted." if q["on_timeout"] == "accept" else "")
    if q["status"] == "cancelled":
        why = f": {q['close_reason']}" if q["close_reason"] else ""
        by_actor = "" if by == "system" else f" by {'you' if by == 'You' else by}"
        return f"Cancelled{by_actor}{why}."
    words = f": “{response['text']}”" if response.get("text") and response.get("text") != response.get("value") else ""
    if response.get("verdict") == "rejected":
        run = bool(q.get("workflow") or q["step"])
        ends = outcome(q["kind"], "rejected", q["blocking"], run) == "cancelled"
        verb = REJECTED.get(q["kind"], "said no")
        return f"{by} {verb if ends or verb != 'cancelled the task' else 'said no'}{words}."
    value = response.get("value")
    if value is True and q["response_type"] == "approval" and KINDS[q["kind"]].response_type != "approval":
        return f"{by} said yes{words}."
    if value is None or (value is True and q["response_type"] == "approval"):
        return f"{by} {APPROVED[q['kind']]}{words}."
    if "digest" in response:
        return f"{by} allowed this, changed{words}."
    end = "" if not words and answer_label(q, value).endswith((".", "!", "?")) else "."
    return f"{by} answered “{answer_label(q, value)}”{words}{end}" + f" {continuing_actor(dict(q))} goes on with it." * then


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
