"""`turn status`, `signal` and `resume`: shows, answers and continues runs."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ..core.answers import allowed, signalled
from ..core.errors import IllegalMove, Invalid, Precondition, Usage
from . import parser
from .continue_session import continue_run, continue_run_args, people_only, report, report_waiting
from .parser import connect
from .parser import show as out
from .terminal import Terminal


def status_args(p: Any) -> None:
    p.add_argument("what", nargs="?", metavar="KEY", help="a run or a task (default: whose turn it is)")


def status(a: Namespace) -> int:
    if a.what is None:
        from .overview import overview

        return overview(a)
    with connect(a) as desk:
        row = desk.show(a.what)
        task = desk.show(row["task"]) if "status" in row else row
        worker = parser.unattended(a, desk, task)
    from ..display.runs import run_page

    typed = a.what if task is row else task["key"]
    return out(a, task, lambda: run_page(task, typed, _adapter(task), worker))


def _adapter(task: dict[str, Any]) -> str:
    """The adapter of the agent that asks, as this folder configures it; '' if it is not configured here."""
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
    words = "CONTINUE or STOP (STOP ends a run whose agent asks, like turn stop); for an agent's step any word, like DONE"
    p.add_argument("--status", required=True, metavar="WORD", help=words)
    p.add_argument("--message", default="", metavar="TEXT", help="a text for the agent or the script; - reads standard input")
    p.add_argument("-y", "--yes", action="store_true", help="do not ask before a task is cancelled")
    parser.keyed(p)


def signal(a: Namespace) -> int:
    from ..display.run_facts import about_run, open_questions
    from ..worker.continue_session import location_of
    from .answers import state_line, warn

    word, message = a.status.strip().upper(), parser.read_text(a.message) or ""
    with connect(a) as desk:
        people_only(desk)
        row = desk.show(a.what)
        task = desk.show(row["task"]) if "status" in row else row
        asked = [row] if "status" in row else open_questions(task)
        q = asked[0] if len(asked) == 1 else None
        if word == "STOP" and task["workflow"] and asked and not (q and (about_run(q) or _is_checkpoint(task, q))):
            desk.stop(task["key"], message, key=a.idempotency_key)
        elif q is not None and task["workflow"] and q["response_type"] == "choice":
            _choose(desk, task, q, word.lower() if word in ("CONTINUE", "STOP") else a.status, message, a.idempotency_key)
        elif q is not None and word not in ("CONTINUE", "STOP") and location_of(task, q).accepts_signal:
            _set_result(desk, q, a.status.strip(), message, a.idempotency_key)
        elif (yes := signalled(word)) is not None:
            if not yes:
                warn(desk, a, a.what, text=message, verdict="rejected")
            (desk.approve if yes else desk.reject)(a.what, message, key=a.idempotency_key)
        else:
            raise Invalid(
                f"Invalid signal {a.status[:40]!a}",
                reason=f"allowed: CONTINUE, DONE, STOP, {allowed()}",
                hint="The question is still open. Send CONTINUE or STOP.",
            )
        task = desk.show(task["key"])
    lines = [f"✓ {word[:40]}. {state_line(task)}"]
    if word == "STOP" and task["workflow"] and not task["ended_at"] and q is not None and not about_run(q):
        lines.append(f"The script receives the no and decides what to do. To end the run: turn stop {task['key']}")
    return out(a, task, lines)


def _choose(desk: Any, task: dict[str, Any], q: dict[str, Any], word: str, message: str, key: str | None) -> None:
    """Answers with one of the options. If STOP is not one, the error names `turn stop`."""
    try:
        desk.answer(q["id"], word, message, key=key)
    except Invalid as error:
        if word != "stop":
            raise
        hint = f"{error.hint} To end the run: turn stop {task['key']}"
        raise Invalid(error.message, reason=error.reason, hint=hint) from None


def _is_checkpoint(task: dict[str, Any], q: dict[str, Any]) -> bool:
    """True if the script itself asks, so that it receives a no as the result of its call."""
    from ..display.run_facts import asking

    step = asking(task, q)
    return step is not None and step["name"] in ("pause", "ask")


def _set_result(desk: Any, q: dict[str, Any], word: str, message: str, key: str | None) -> None:
    """Answers with the result of the agent's step. It never approves a permission."""
    import json

    from ..worker import continue_session
    from ..worker.signals import outcomes

    outcome = outcomes.from_file(json.dumps({"status": word, **({"message": message} if message else {})}).encode())
    if outcome.what == "broken":
        raise Invalid(f"Invalid signal {word[:40]!a}", reason=outcome.text, hint="Send the text with --message TEXT.")
    verdict = "rejected" if q["kind"] == "permission" else "approved"
    desk.answer(q["id"], text=message, verdict=verdict, signal=continue_session.as_result(outcome), key=key)


# --- resume ---------------------------------------------------------------------------------------------------------


def resume_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY", help="a run")
    which = p.add_mutually_exclusive_group()
    accept = "continue with the changed script; unchanged steps keep their results"
    which.add_argument("--accept-new-code", action="store_true", help=accept)
    which.add_argument("--from", dest="from_", metavar="STEP", help="go back to this step; earlier steps keep their results")
    parser.keyed(p)
    continue_run_args(p)


def resume(a: Namespace) -> int:
    from ..display.run_facts import about_run, offers, open_questions
    from ..display.runs import status
    from ..display.terminal import left

    with connect(a) as desk:
        people_only(desk)
        row, term = desk.show(a.what), Terminal(a)
        task = desk.show(row["task"]) if "status" in row else row
        key = task["key"]
        if not task["workflow"]:
            hint = f"To start an ended task again: turn reopen {key}; a deferred task: turn wake {key}"
            raise Precondition(f"Cannot resume {key}", reason="it is a task without a script, not a run", hint=hint)
        if task["claim"] and not task["awaiting"]:
            reason = f"{task['claim']['worker']} works on it; if that worker is gone, another can claim it when the lease ends"
            reason += f" ({left(task['claim']['expires_at'])})"
            hint = f"Follow it with: turn watch {key}"
            raise Precondition(f"Cannot resume {key}: it is '{status(task)}'", reason=reason, hint=hint)
        if a.from_ is not None:
            _check_step(task, a.from_)
        asked = open_questions(task)
        recovery = next((q for q in asked if about_run(q)), None)
        if recovery is not None and not offers(recovery, "continue") and not a.accept_new_code:
            word = "retry" if a.from_ is None else f"from-{a.from_.removeprefix('#')}"
            return report(a, term, desk, task, recovery, desk.answer(recovery["id"], word, key=a.idempotency_key))
        if recovery is not None:
            return _recover(a, term, desk, task, recovery)
        if asked and a.from_ is None:
            return _apply_signals(a, term, desk, task, asked)
        return continue_run(a, term, desk, _rewind(a, desk, task))


def _check_step(task: dict[str, Any], step: str) -> None:
    steps = [s["index"] for s in task["steps"] if not s["spare"] and s["index"].isdigit()]
    if step.removeprefix("#") not in steps:
        reason = f"its steps are {', '.join(steps[:20])}{' …' * (len(steps) > 20)}" if steps else "it has no steps yet"
        hint = f"List them with: turn status {task['key']}"
        raise Invalid(f"{task['key']} has no step {step[:40]!a}", reason=reason, hint=hint)


def _recover(a: Namespace, term: Terminal, desk: Any, task: dict[str, Any], q: dict[str, Any]) -> int:
    """Answers the question about changed code."""
    from .. import display
    from ..display.run_facts import offers

    if a.accept_new_code or a.from_ is not None:
        word = "continue" if a.accept_new_code else f"from-{a.from_.removeprefix('#')}"
        return report(a, term, desk, task, q, desk.answer(q["id"], word, key=a.idempotency_key))
    if not term.there:
        keep = f", or turn respond {q['id']} keep" if offers(q, "keep") else ""
        hint = f"turn resume {task['key']} --accept-new-code, or --from STEP{keep}; to end the run: turn stop {task['key']}"
        raise Usage(f"Cannot resume {task['key']} without an option", reason=q["text"].splitlines()[0], hint=hint)
    term.print(*display.question(q, ""))
    return report(a, term, desk, task, q, term.answer(desk, q))


def _apply_signals(a: Namespace, term: Terminal, desk: Any, task: dict[str, Any], asked: list[dict[str, Any]]) -> int:
    """Closes the first question whose agent has left a new signal, and continues the run; else the run keeps waiting."""
    from ..worker import continue_session

    if a.accept_new_code:
        reason = f"it waits for a person, but not because of a changed script ({asked[0]['id']})"
        raise Precondition(
            f"Cannot resume {task['key']} with --accept-new-code", reason=reason, hint=f"turn continue {task['key']}"
        )
    for q in asked:
        closed = apply_signal(term, desk, continue_session.location_of(task, q))
        if closed is not None:
            return report(a, term, desk, task, q, closed)
    return report_waiting(a, term, task, asked[0])


def apply_signal(term: Terminal, desk: Any, location: Any) -> dict[str, Any] | None:
    """Closes the question by the signal that its agent has left since, in a session on this machine. None without one."""
    from ..display import terminal
    from ..worker import continue_session

    signal = continue_session.NewSignal(location)
    outcome = signal.read()
    if not continue_session.is_new(outcome) or not location.accepts_signal:
        return None
    line = f"{terminal.safe(location.agent)} says: {terminal.one_line(continue_session.outcome_text(outcome) or outcome.text)}"
    name = location.question["id"]
    if outcome.what == "broken" or (location.needs_verdict and outcome.what != "ask"):
        reason = "which cannot be read" if outcome.what == "broken" else f"{name} needs a yes or no of a person"
        term.print(f"{line} ({reason}). Next: turn continue {name}")
        return None
    term.print(line)
    closed = continue_session.settle(desk, location, outcome)
    signal.remove()
    return dict(closed)


def _rewind(a: Namespace, desk: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Makes the run ready again, from the step that the options name. Returns it unchanged if it is ready already."""
    key = task["key"]
    try:
        if a.from_ is not None:
            return dict(desk.rewind(key, a.from_.removeprefix("#"), key=a.idempotency_key))
        if a.accept_new_code:
            return dict(desk.rewind(key, 1, spare=True, key=a.idempotency_key))
        if task["ended_at"] or task["wake_at"]:
            return dict(desk.rewind(key, key=a.idempotency_key))
    except IllegalMove as error:
        hint = f"{error.hint}. To run it again from its first line: turn reopen {key}"
        message = error.message.replace("Cannot rewind", "Cannot resume", 1)
        raise IllegalMove(message, reason=error.reason, hint=hint) from None
    return task
