"""The answers that a person can give: one table, kind of question × form of answer.

`ANSWERS[kind, form]` lists the ways to answer such a question: what the button says, which verdict and value are recorded,
which command is equivalent, and what a no asks for. Web buttons, terminal prompts and hints, the HTTP API and the docs are
generated from it. The result of an answer is not in this table: `outcome` in the rules has it for a kind, and previews.py
computes it for one question with `decide`.

`verdict_of` is the only parser of yes and no. Any other word is not a verdict; callers refuse it with `allowed()`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .model import APPROVED, REJECTED
from .rules import KINDS, OUTCOMES

YES = ("yes", "y", "true", "approve", "approved", "accept", "allow", "ok", "1")
NO = ("no", "n", "false", "reject", "rejected", "deny", "denied", "decline", "0")
FORMS = ("text", "choice", "boolean", "approval", "number")
#: Forms whose answer is a yes or a no.
VERDICT_FORMS = ("approval", "boolean")


def verdict_of(value: Any) -> bool | None:
    """True for yes, False for no, None for anything else. Case and trailing punctuation do not matter."""
    if isinstance(value, (dict, list)):
        return None
    word = str(value).strip().rstrip(".!?,;:").rstrip().lower()
    return True if word in YES else False if word in NO else None


#: Signals of a person to a run or a task, besides verdicts.
SIGNALS = {"continue": True, "done": True, "stop": False}


def signalled(word: Any) -> bool | None:
    """The verdict of a signal: CONTINUE, DONE, STOP, or a verdict word."""
    verdict = SIGNALS.get(str(word).strip().lower())
    return verdict_of(word) if verdict is None else verdict


def allowed(no: bool = True) -> str:
    """The allowed words, for error texts. `no`: the question can be answered with a no."""
    yes = f"yes ({', '.join(YES[1:])})"
    return f"{yes} or no ({', '.join(NO[1:])})" if no else yes


class Words(NamedTuple):
    """Labels for the answers of one kind."""

    yes: str
    no: str
    prompt: str  #: terminal prompt
    why: str  #: what a no asks for; {who} continues
    why_needed: bool


CANCELS = "Cancel task…"
LABELS: dict[str, Words] = {
    "work":       Words("Mark as done",       "",                "Is it done?", "",                                False),
    "approval":   Words("Approve and finish", "Send back",       "Approve?",    "What should change?",             True),
    "review":     Words("Approve the PR",     "Request changes", "Approve?",    "What should change?",             True),
    "content":    Words("Approve the text",   "Request changes", "Approve?",    "What should change?",             True),
    "input":      Words("Send answer",        CANCELS,           "Yes or no?",  "",                                False),
    "escalation": Words("Send answer",        CANCELS,           "Yes or no?",  "",                                False),
    "checkpoint": Words("Continue",           "Send back",       "Continue?",   "Why does it go back?",            True),
    "permission": Words("Allow once",         "Deny",            "Allow it?",   "Why not? (optional)",             False),
    "recovery":   Words("Send answer",        "None of these",   "Yes or no?",  "What should {who} do instead?",   True),
}  # fmt: skip


class Way(NamedTuple):
    """One way to answer a question."""

    name: str  #: yes, no, or answer: a free value
    label: str
    verdict: str
    value: bool | None  #: recorded value; None: the person's value
    command: str  #: {q}: the question
    why: str = ""
    why_needed: bool = False


def _lower(label: str) -> str:
    return label[:1].lower() + label[1:]


def _ways(kind: str, form: str) -> tuple[Way, ...]:
    row, words = KINDS[kind], LABELS[kind]
    judges = row.response_type == "approval"
    no_command = 'turn reject {q} "why"'
    if form == "approval":
        labels = (words.yes, words.no) if judges else ("Yes", "No")
        both = (
            Way("yes", labels[0], APPROVED, True, "turn approve {q}"),
            Way("no", labels[1], REJECTED, None, no_command, words.why if judges else "", words.why_needed and judges),
        )
    elif form == "boolean":
        against = REJECTED if judges else APPROVED
        labels = (f"Yes, {_lower(words.yes)}", f"No, {_lower(words.no)}") if judges else ("Yes", "No")
        both = (
            Way("yes", labels[0], APPROVED, True, "turn respond {q} yes"),
            Way("no", labels[1], against, False, "turn respond {q} no"),
        )
    else:
        both = (
            Way("answer", words.yes, APPROVED, None, 'turn respond {q} "…"'),
            Way("no", words.no, REJECTED, None, no_command, words.why, words.why_needed),
        )
    return tuple(way for way in both if OUTCOMES[kind, way.verdict] != "refused")


#: (kind, form) -> the ways to answer, the yes first. A combination that is missing cannot be asked.
ANSWERS: dict[tuple[str, str], tuple[Way, ...]] = {
    (name, form): _ways(name, form)
    for name, kind in KINDS.items()
    for form in FORMS
    if kind.response_type != "approval" or form in VERDICT_FORMS
}


def way(kind: str, form: str, yes: bool) -> Way | None:
    """The yes or no answer of a question, or None if the kind has none."""
    return next((w for w in ANSWERS[kind, form] if (w.name != "no") == yes), None)
