"""Runs on the command line: how far they are, what they are told, and how they go on."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ..core.answers import allowed, signalled
from ..core.errors import IllegalMove, Invalid, Precondition, Usage
from . import parser
from .continue_session import after, onward, onward_args, people_only, still
from .parser import connect
from .parser import show as out
from .terminal import Terminal


def status_args(p: Any) -> None:
    p.add_argument("what", nargs="?", metavar="KEY", help="a run or a task; without it, whose turn it is")


def status(a: Namespace) -> int:
    if a.what is None:
        from .questions import overview

        return overview(a)
    with connect(a) as desk:
        found = desk.show(a.what)
        task = desk.show(found["task"]) if "status" in found else found
        worker = parser.unattended(a, desk, task)
    from ..display.runs import run_page

    typed = a.what if task is found else task["key"]
    return out(a, task, lambda: run_page(task, typed, _adapter(task), worker))


def _adapter(task: dict[str, Any]) -> str:
    """By which program the agent runs that asks, as far as it is known here."""
    from ..display.run_facts import open_questions

    asked = open_questions(task)
    if not asked:
        return ""
    from ..config import file
    from ..worker.continue_session import location_of

    agents = file().get("agents")
    agent = agents.get(location_of(task, asked[0]).agent) if isinstance(agents, dict) else None
    return str(agent.get("adapter") or "") if isinstance(agent, dict) else ""


# --- signal ---------------------------------------------------------------------------------------------------------


def signal_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY", help="a run or a task that waits, or its question (Q17)")
    words = "CONTINUE or STOP (which ends a run whose agent asks, as turn stop does); for an agent's step any word, like DONE"
    p.add_argument("--status", required=True, metavar="WORD", help=words)
    p.add_argument("--message", default="", metavar="TEXT", help="words beside it; - reads standard input")
    parser.keyed(p)


def signal(a: Namespace) -> int:
    from ..display.run_facts import about_run, open_questions
    from ..worker.continue_session import location_of
    from .questions import after as where

    word, message = a.status.strip().upper(), parser.given(a.message) or ""
    with connect(a) as desk:
        people_only(desk)
        found = desk.show(a.what)
        task = desk.show(found["task"]) if "status" in found else found
        asked = [found] if "status" in found else open_questions(task)
        q = asked[0] if len(asked) == 1 else None
        if word == "STOP" and task["workflow"] and asked and not (q and (about_run(q) or _checkpoint(task, q))):
            desk.stop(task["key"], message, key=a.idempotency_key)
        elif q is not None and task["workflow"] and q["response_type"] == "choice":
            _choose(desk, task, q, word.lower() if word in ("CONTINUE", "STOP") else a.status, message, a.idempotency_key)
        elif q is not None and word not in ("CONTINUE", "STOP") and location_of(task, q).accepts_signal:
            _settle(desk, q, a.status.strip(), message, a.idempotency_key)
        elif (yes := signalled(word)) is not None:
            (desk.approve if yes else desk.reject)(a.what, message, key=a.idempotency_key)
        else:
            raise Invalid(
                f"There is no signal {a.status[:40]!a} to answer with",
                reason=f"allowed: CONTINUE, DONE, STOP, {allowed()}",
                hint="The question is still open. Say CONTINUE or STOP.",
            )
        task = desk.show(task["key"])
    more = [f"The script decides what that means. To end the run: turn stop {task['key']}"]
    told = word == "STOP" and task["workflow"] and not task["ended_at"] and q is not None and not about_run(q)
    return out(a, task, lambda: [f"✓ {word[:40]}. {where(task)}", *(more if told else [])])


def _choose(desk: Any, task: dict[str, Any], q: dict[str, Any], word: str, message: str, key: str | None) -> None:
    """One of the options; STOP may be meant for the run."""
    try:
        desk.answer(q["id"], word, message, key=key)
    except Invalid as no:
        if word != "stop":
            raise
        raise Invalid(no.message, reason=no.reason, hint=f"{no.hint} To end the run: turn stop {task['key']}") from None


def _checkpoint(task: dict[str, Any], q: dict[str, Any]) -> bool:
    """The script asks by itself, and hears the no."""
    from ..display.run_facts import asking

    step = asking(task, q)
    return step is not None and step["name"] in ("pause", "ask")


def _settle(desk: Any, q: dict[str, Any], word: str, message: str, key: str | None) -> None:
    """The step's outcome, said by a person. An action that was only asked for is not allowed by that."""
    import json

    from ..worker import continue_session
    from ..worker.signals import outcomes

    said = outcomes.from_file(json.dumps({"status": word, **({"message": message} if message else {})}).encode())
    if said.what == "broken":
        raise Invalid(f"{word[:40]!a} cannot be said like that", reason=said.text, hint="Say it with --message TEXT.")
    verdict = "rejected" if q["kind"] == "permission" else "approved"
    desk.answer(q["id"], text=message, verdict=verdict, signal=continue_session.as_result(said), key=key)


# --- resume ---------------------------------------------------------------------------------------------------------


def resume_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY", help="a run")
    which = p.add_mutually_exclusive_group()
    which.add_argument("--accept-new-code", action="store_true", help="go on with the script as it is, keeping what is the same")
    which.add_argument("--from", dest="from_", metavar="STEP", help="go back to this step; what was done before it is kept")
    parser.keyed(p)
    onward_args(p)


def resume(a: Namespace) -> int:
    from ..display.run_facts import about_run, offers, open_questions
    from ..display.runs import status
    from ..display.terminal import left

    with connect(a) as desk:
        people_only(desk)
        found, term = desk.show(a.what), Terminal(a)
        task = desk.show(found["task"]) if "status" in found else found
        key = task["key"]
        if not task["workflow"]:
            hint = f"A run has a script. To start a task again: turn reopen {key}; to bring a deferred one back: turn wake {key}"
            raise Precondition(f"Cannot resume {key}", reason="it has no script", hint=hint)
        if task["claim"] and not task["awaiting"]:
            why = f"{task['claim']['worker']} works on it; if it is gone, others can take it over when its lease ends"
            why += f" ({left(task['claim']['expires_at'])})"
            raise Precondition(f"Cannot resume {key}: it is '{status(task)}'", reason=why, hint=f"Look on with: turn watch {key}")
        if a.from_ is not None:
            _known(task, a.from_)
        asked = open_questions(task)
        recovery = next((q for q in asked if about_run(q)), None)
        if recovery is not None and not offers(recovery, "continue") and not a.accept_new_code:
            word = "retry" if a.from_ is None else f"from-{a.from_.removeprefix('#')}"
            return after(a, term, desk, task, recovery, desk.answer(recovery["id"], word, key=a.idempotency_key))
        if recovery is not None:
            return _recover(a, term, desk, task, recovery)
        if asked and a.from_ is None:
            return _waits(a, term, desk, task, asked)
        task = _rewound(a, desk, task)
        return onward(a, term, desk, task)


def _known(task: dict[str, Any], step: str) -> None:
    found = [s["index"] for s in task["steps"] if not s["spare"] and s["index"].isdigit()]
    if step.removeprefix("#") not in found:
        named = f"its steps are {', '.join(found[:20])}{' …' * (len(found) > 20)}" if found else "it has none yet"
        raise Invalid(f"{task['key']} has no step {step[:40]!a}", reason=named, hint=f"See them with: turn status {task['key']}")


def _recover(a: Namespace, term: Terminal, desk: Any, task: dict[str, Any], q: dict[str, Any]) -> int:
    """What was asked about changed code."""
    from .. import display
    from ..display.run_facts import offers

    if a.accept_new_code or a.from_ is not None:
        word = "continue" if a.accept_new_code else f"from-{a.from_.removeprefix('#')}"
        return after(a, term, desk, task, q, desk.answer(q["id"], word, key=a.idempotency_key))
    if not term.there:
        keep = f"; to keep what is in doubt: turn respond {q['id']} keep" if offers(q, "keep") else ""
        hint = f"Say how: turn resume {task['key']} --accept-new-code, or --from STEP{keep}; to end it: turn stop {task['key']}"
        raise Usage(f"Cannot resume {task['key']} just so", reason=q["text"].splitlines()[0], hint=hint)
    term.say(*display.question(q, ""))
    return after(a, term, desk, task, q, term.answer(desk, q))


def _waits(a: Namespace, term: Terminal, desk: Any, task: dict[str, Any], asked: list[dict[str, Any]]) -> int:
    """Has the agent said something new since? Else it waits on."""
    from ..worker import continue_session

    if a.accept_new_code:
        why = f"it waits for a person, and nobody asked about its script ({asked[0]['id']})"
        raise Precondition(f"Cannot resume {task['key']} like that", reason=why, hint=f"turn continue {task['key']}")
    for q in asked:
        closed = heard(term, desk, continue_session.location_of(task, q))
        if closed is not None:
            return after(a, term, desk, task, q, closed)
    return still(a, term, task, asked[0])


def heard(term: Terminal, desk: Any, location: Any) -> dict[str, Any] | None:
    """The agent finished with a person somewhere else on this machine: the question as it was closed by that, or None."""
    from ..display import terminal
    from ..worker import continue_session

    signal = continue_session.NewSignal(location)
    said = signal.read()
    if not continue_session.is_new(said) or not location.accepts_signal:
        return None
    words = f"{terminal.safe(location.agent)} says: {terminal.one_line(continue_session.outcome_text(said) or said.text)}"
    if said.what == "broken" or (location.needs_verdict and said.what != "ask"):
        name = location.question["id"]
        reason = "which cannot be understood" if said.what == "broken" else f"and {name} is for a person to judge"
        term.say(f"{words} ({reason}). Next: turn continue {name}")
        return None
    term.say(words)
    closed = continue_session.settle(desk, location, said)
    signal.remove()
    return dict(closed)


def _rewound(a: Namespace, desk: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Where nothing is asked: back to a step, or on from where it was."""
    try:
        return _back(a, desk, task)
    except IllegalMove as no:
        hint = f"{no.hint}. To run it again from its first line: turn reopen {task['key']}"
        raise IllegalMove(no.message.replace("Cannot rewind", "Cannot resume", 1), reason=no.reason, hint=hint) from None


def _back(a: Namespace, desk: Any, task: dict[str, Any]) -> dict[str, Any]:
    if a.from_ is not None:
        return dict(desk.rewind(task["key"], a.from_.removeprefix("#"), key=a.idempotency_key))
    if a.accept_new_code:
        return dict(desk.rewind(task["key"], 1, spare=True, key=a.idempotency_key))
    if task["ended_at"] or task["wake_at"]:
        return dict(desk.rewind(task["key"], key=a.idempotency_key))
    return task
