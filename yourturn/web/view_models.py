"""View models: what a template shows, as plain values. Input: values of client/serialize.py and the time. Output: tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..client import Client
from ..display import person
from ..display.run_facts import agent
from . import evidence, labels, times

#: The tint of a kind's icon: decide (grey), sign off (blue), gate (amber), trouble (red).
WEIGHTS = {
    "work": "", "approval": "sign", "review": "sign", "content": "sign", "checkpoint": "sign", "permission": "gate",
    "question": "", "choice": "", "recovery": "trouble", "escalation": "trouble",
}  # fmt: skip
#: The label, icon and tint of a task's state.
STATES = {
    "created": ("New", "ready", ""), "ready": ("Ready", "ready", ""), "blocked": ("Blocked", "blocked", ""),
    "working": ("Working", "working", "sign"), "human": ("Needs human", "work", "gate"), "review": ("Review", "review", "sign"),
    "done": ("Done", "check", "good"), "failed": ("Failed", "x", "trouble"), "cancelled": ("Cancelled", "x", ""),
    "deferred": ("Deferred", "clock", ""),
}  # fmt: skip
#: What a timeout did to the task, by the task's state.
TIMEOUT_OUTCOMES = {"failed": "has failed", "deferred": "is put aside"}
#: Kinds that are never answered in a row: they have to be read whole.
NOT_QUICK = frozenset({"permission", "recovery", "escalation", "work"})
#: Characters of an option's label that fit a button in a row, and of a question that a row shows whole.
MAX_LABEL, MAX_QUESTION = 24, 110


class ActorView(NamedTuple):
    """A person (shown round), an agent (square), or the system."""

    name: str
    letter: str
    agent: bool
    role: str = ""


class KindView(NamedTuple):
    name: str
    label: str
    icon: str
    weight: str


class Tag(NamedTuple):
    label: str
    icon: str
    weight: str


def actor_view(actor: str | None, role: str = "") -> ActorView:
    actor = actor or "system"
    name = "Yourturn" if actor == "system" else person(actor)
    return ActorView(name, next((c for c in name.upper() if c.isalnum()), "?"), not actor.startswith("human:"), role)


def working_agent(t: Mapping[str, Any]) -> ActorView | None:
    """The agent that works on a task, or its worker if the agent's name is unknown."""
    if not t["claim"]:
        return None
    name = agent(dict(t)) if t["workflow"] else (t["seat"] or {}).get("agent")
    return actor_view(f"agent:{name or t['claim']['worker']}")


def kind_name(q: Mapping[str, Any]) -> str:
    """The question's kind; for an input, whether it offers a choice."""
    if q["kind"] != "input":
        return str(q["kind"])
    return "choice" if q["response_type"] == "choice" else "question"


def kind(q: Mapping[str, Any]) -> KindView:
    name = kind_name(q)
    return KindView(name, name.capitalize(), name, WEIGHTS[name])


def state(name: str) -> Tag:
    return Tag(*STATES[name])


def timeout_outcome(q: Mapping[str, Any], task: Mapping[str, Any]) -> str:
    """What the timeout did to the task, where the question's own result does not include it: ' API-25 has failed.'"""
    if q["status"] != "timeout" or (q["response"] or {}).get("value") is not None:
        return ""
    outcome = TIMEOUT_OUTCOMES.get(task["state"])
    return f" {task['key']} {outcome}." if outcome else ""


def preferences(client: Client) -> dict[str, Any]:
    """A person's preferences, as the layout needs them."""
    if not client.who.is_person:
        return {}
    stored = client.preferences()
    theme = stored.get("theme")
    return {"theme": theme if theme in ("light", "dark") else "", "keyless": stored.get("keys") is False}


# --- a row of the inbox -----------------------------------------------------------------------------------------------


class QuickAnswer(NamedTuple):
    """An answer that can be sent from a row."""

    verb: str
    effect: str
    verdict: str
    option: str
    send: str  #: the button that sends it


class InboxRow(NamedTuple):
    id: str
    href: str
    title: str
    kind: KindView
    who: ActorView
    task: str
    facts: tuple[str, ...]
    time: times.Countdown
    then: str
    proof: str
    proof_is_error: bool
    quick: tuple[QuickAnswer, ...]
    result: str
    batch: bool
    key: str


def inbox_row(
    q: Mapping[str, Any], now: int, me: str, run: str = "", key: str = "", effects: Sequence[Mapping[str, Any]] = ()
) -> InboxRow:
    pending = q["status"] == "pending"
    proof, is_error = _proof(q)
    waits = f"waits {times.elapsed_since(q['asked_at'], now)}"
    return InboxRow(
        q["id"], f"/questions/{q['id']}", q["text"], kind(q), actor_view(f"agent:{run}" if run else q["asked_by"]), q["task"],
        _facts(q), times.countdown(q, now), labels.timeout_text(q, run, short=True) or waits, proof, is_error,
        quick_answers(q, effects, run) if pending else (), "" if pending else labels.result_text(q, me),
        pending and labels.batch_button(q, effects, run) is not None, key,
    )  # fmt: skip


def _facts(q: Mapping[str, Any]) -> tuple[str, ...]:
    facts = []
    if q.get("holds_up"):
        facts.append(f"{labels.plural(q['holds_up'], 'task')} wait{'s' * (q['holds_up'] == 1)}")
    if q["kind"] == "recovery" and q["options"]:
        facts.append(f"{labels.plural(len(q['options']), 'way')} out")
    if q["step"]:
        facts.append(f"step {q['step']}")
    if q["reviewer"]:
        facts.append(f"for {q['reviewer']}")
    return tuple(facts)


def _proof(q: Mapping[str, Any]) -> tuple[str, bool]:
    """The line of evidence that a row shows, and whether it is an error."""
    if q["kind"] == "permission" and q["action"] is not None:
        return " ".join(evidence.command_of(q["action"])[:300].split()), False
    error = evidence.error_of(q["context"])
    return (" ".join(error.split())[:200], True) if error else ("", False)


def quick_answers(q: Mapping[str, Any], effects: Sequence[Mapping[str, Any]], run: str) -> tuple[QuickAnswer, ...]:
    """Two answers that can be sent from a row, or none. Never one that ends a task."""
    name = run or labels.actor_name(q["asked_by"])
    if not q["blocking"]:
        return _keep_or_change(q, name)
    if q["kind"] in NOT_QUICK or "\n" in q["text"].strip() or len(q["text"]) > MAX_QUESTION:
        return ()
    buttons = labels.answer_buttons(q, effects, run)
    if not buttons.yes:
        return ()
    yes, no = buttons.yes[0], buttons.no
    if q["response_type"] == "approval" and no is not None and no.verdict:
        send = f"{yes.verb} {q['task']}" if yes.verb == "Approve and finish" else yes.verb
        return (
            QuickAnswer(_short_verb(no), _sentence(no.effect, name), "rejected", "", no.verb),
            QuickAnswer(_short_verb(yes), _sentence(yes.effect, name), "approved", "", send),
        )
    if q["response_type"] == "boolean":
        return tuple(QuickAnswer(b.verb, _sentence(b.effect, name), "approved", b.value, f"Send “{b.verb}”") for b in buttons.yes)
    if q["response_type"] == "choice" and not q["multi"] and len(q["options"]) == 2:
        options = [str(o["label"]) for o in q["options"]]
        if all(map(_fits_button, options)):
            return tuple(
                QuickAnswer(option, f"{name} goes on with {option}.", "approved", str(index), f"Send “{option}”")
                for index, option in enumerate(options)
            )
    return ()


def _sentence(effect: str, name: str) -> str:
    """The effect as a sentence. A name keeps its spelling at the beginning."""
    named = effect.startswith(f"{name} ") and name != labels.actor_name("system")
    return f"{effect}." if named else f"{effect[0].upper()}{effect[1:]}."


def _short_verb(button: labels.AnswerButton) -> str:
    return "Approve" if button.verb in ("Approve and finish", "Approve the PR", "Approve the text") else button.verb


def _fits_button(label: str) -> bool:
    return len(label) <= MAX_LABEL and label.isprintable()


def _keep_or_change(q: Mapping[str, Any], name: str) -> tuple[QuickAnswer, ...]:
    """For a question that does not block: the agent's default, and the other one of two short answers."""
    if q["response_type"] == "choice" and not q["multi"]:
        options = [(str(o["label"]), o["value"], str(index)) for index, o in enumerate(q["options"])]
    elif q["response_type"] == "boolean" and not q["multi"]:
        options = [("Yes", True, "yes"), ("No", False, "no")]
    else:
        return ()
    if len(options) != 2 or not all(_fits_button(label) for label, _, _ in options):
        return ()
    answers = []
    for label, value, option in sorted(options, key=lambda option: option[1] != q["default"]):
        if value == q["default"]:
            keep = f"Keep “{label}”"
            answers.append(QuickAnswer(keep, f"{name} stays with it.", "approved", option, keep))
        else:
            effect = f"{name} is told, and changes what it wrote."
            answers.append(QuickAnswer(label, effect, "approved", option, f"Send “{label}”"))
    return tuple(answers)
