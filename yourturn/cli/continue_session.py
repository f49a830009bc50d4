"""`turn continue`: opens the session of a waiting agent, or asks for the answer in this terminal if there is no session."""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..core.errors import Invalid, Precondition, StillWaiting, Usage
from . import parser
from .parser import connect
from .terminal import Terminal, open_editor


def continue__args(p: Any) -> None:
    p.add_argument("what", metavar="KEY", help="a run or a task that waits, or its question (Q17)")
    p.add_argument("-e", "--editor", action="store_true", help="first open its folder in $VISUAL, $EDITOR, code or cursor")
    continue_run_args(p)


def continue_run_args(p: Any) -> None:
    from .work import agent_args

    p.add_argument("--detach", action="store_true", help="leave the rest of the run to workers (turn work)")
    agent_args(p)


def continue_(a: Namespace) -> int:
    from ..worker.continue_session import location_of

    with connect(a) as desk:
        people_only(desk)
        task, q = waiting_question(desk, a.what)
        term = Terminal(a)
        if not term.there:
            raise Usage(
                f"Cannot continue {task['key']}: this is not a terminal",
                hint=f'Answer with: turn respond {q["id"]} "…", turn approve {q["id"]} or turn signal {task["key"]} --status …',
            )
        location = location_of(task, q)
        if a.editor:
            open_editor(term, location.folder if location.folder and location.folder.is_dir() else Path.cwd())
        closed = _open_session(a, term, desk, location)
        return report(a, term, desk, task, q, closed)


def people_only(desk: Any) -> None:
    """Raises NotAllowed for an agent, before anything is opened or read."""
    from ..core.decide import may_ever

    may_ever("answer", desk.who)


def waiting_question(desk: Any, what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task and its one open question, by the name of either."""
    from ..display.run_facts import open_questions
    from ..display.runs import status

    row = desk.show(what)
    if "status" in row:
        if row["status"] != "pending":
            from ..display import result

            raise Precondition(f"Cannot continue {row['id']}", reason=result(row), hint=f"turn status {row['task']}")
        return desk.show(row["task"]), row
    asked = open_questions(row)
    if not asked:
        from ..display import next_steps

        word = status(row) if row["workflow"] else row["state"]
        reason = f"{row['claim']['worker']} works on it" if row["claim"] else "it does not wait for a person"
        raise Precondition(f"Cannot continue {row['key']}: it is '{word}'", reason=reason, hint=next_steps(row)[0])
    if len(asked) > 1:
        names = ", ".join(f"{q['id']} ({q['kind']})" for q in asked[:8])
        raise Invalid(
            f"{row['key']} has {len(asked)} open questions", reason=names, hint=f"Name one: turn continue {asked[0]['id']}"
        )
    return row, asked[0]


# --- the session ----------------------------------------------------------------------------------------------------


def _open_session(a: Namespace, term: Terminal, desk: Any, location: Any) -> dict[str, Any] | None:
    """Returns the closed question, or None if it is still open."""
    from .. import display
    from ..config import file, locate
    from ..display import terminal
    from ..worker import continue_session

    q = location.question
    if not location.agent:
        term.print(*display.question(q, ""))
        return term.answer(desk, q)
    command = continue_session.command(location, file())
    if isinstance(command, str):
        term.print(terminal.safe(command), "", *display.question(q, ""))
        return _settle(term, desk, location)
    name, words, env = command
    term.print(f"Opening {name} session for: {terminal.safe(location.agent)}", f"Reason: {terminal.one_line(q['text'])}")
    term.print(f"Folder: {terminal.safe(str(location.folder))}", f"Exit {name} to come back to turn.", "")
    address = locate(a.db, os.environ)
    address = address if "://" in address else str(Path(address).resolve())
    with suppress(OSError):
        continue_session.signal_file(location).parent.mkdir(parents=True, exist_ok=True)
    exit_code = term.run(words, continue_session.environment(location, address, os.environ, env), location.folder)
    if exit_code:
        term.print("", f"The session ended with exit code {exit_code}. It may be gone, or open elsewhere.")
    return _settle(term, desk, location, opened=True)


def _settle(term: Terminal, desk: Any, location: Any, *, opened: bool = False) -> dict[str, Any] | None:
    """Closes the question by the agent's new signal, which the person may have to judge; without one, asks the person."""
    from ..display import terminal
    from ..worker import continue_session

    signal = continue_session.NewSignal(location)
    outcome, q = signal.read(), desk.show(location.question["id"])
    if q["status"] != "pending":
        return dict(q)
    broken = outcome.what == "broken"
    if broken:
        term.print("", f"The signal of {location.agent} cannot be read: {terminal.one_line(outcome.text)}")
        outcome = outcome._replace(what="nothing", status="")
        signal.remove()
    if not continue_session.is_new(outcome):
        if opened and not broken:
            term.print("", f"{terminal.safe(location.agent)} left no new signal. Answer here, or later.")
        return term.answer(desk, q)
    term.print("", f"{terminal.safe(location.agent)} says: {terminal.one_line(continue_session.outcome_text(outcome))}")
    verdict, words = "approved", ""
    if location.needs_verdict and outcome.what != "ask":
        judged = term.verdict(q)
        if judged is None:
            return None
        verdict, words = judged
    if verdict == "rejected":
        closed = desk.answer(q["id"], None, words, verdict)
    else:
        closed = continue_session.settle(desk, location, outcome, words, verdict)
    signal.remove()
    return dict(closed)


# --- afterwards -----------------------------------------------------------------------------------------------------


def report(
    a: Namespace, term: Terminal, desk: Any, task: dict[str, Any], q: dict[str, Any], closed: dict[str, Any] | None
) -> int:
    """Prints how the question ended, and continues the run. `closed` is None if it is still open."""
    from .. import display
    from ..display.run_facts import open_questions

    now = desk.show(task["key"])
    if closed is None:
        return report_waiting(a, term, now, q)
    if closed["status"] != "pending" and closed["responded_by"] != desk.who.name:
        term.print("", f"{q['id']} was closed in the meantime: {display.result(closed)}")
    elif closed["status"] == "cancelled":
        term.print("", f"{q['id']} was withdrawn: {closed['close_reason']}.")
    else:
        term.print("", f"✓ {q['id']}: {display.result(closed)}")
    asked = open_questions(now)
    if asked:
        return report_waiting(a, term, now, asked[0])
    return continue_run(a, term, desk, now)


def report_waiting(a: Namespace, term: Terminal, task: dict[str, Any], q: dict[str, Any]) -> int:
    from ..display.terminal import one_line

    key, asked = task["key"], one_line(q["text"])
    term.print(f"{key} is still waiting ({q['kind']}, {q['id']}): {asked}", f"Next: turn continue {key}")
    if a.json:
        parser.show(a, task, [])
    return StillWaiting.exit_code


def continue_run(a: Namespace, term: Terminal, desk: Any, task: dict[str, Any]) -> int:
    """Works on a run here; leaves a task to workers."""
    from .answers import state_line

    if not task["workflow"] or a.detach or task["ended_at"] or task["claim"]:
        term.print(f"  {state_line(task)}", *(f"  {line}" for line in parser.unattended(a, desk, task)))
        return parser.show(a, task, []) if a.json else 0
    from .run import go

    return go(a, desk, task["key"])
