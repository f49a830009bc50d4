"""`turn continue`: a person helps an agent that waits, in the agent's own session; or answers here, where there is none."""

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
    onward_args(p)


def onward_args(p: Any) -> None:
    from .work import agent_args

    p.add_argument("--detach", action="store_true", help="leave what comes then to workers (turn work)")
    agent_args(p)


def continue_(a: Namespace) -> int:
    from ..worker.continue_session import location_of

    with connect(a) as desk:
        people_only(desk)
        task, q = waiting(desk, a.what)
        term = Terminal(a)
        if not term.there:
            raise Usage(
                f"Cannot continue {task['key']}: this is no terminal",
                hint=f'Answer with: turn respond {q["id"]} "…", turn approve {q["id"]} or turn signal {task["key"]} --status …',
            )
        location = location_of(task, q)
        if a.editor:
            open_editor(term, location.folder if location.folder and location.folder.is_dir() else Path.cwd())
        closed = _visit(a, term, desk, location)
        return after(a, term, desk, task, q, closed)


def people_only(desk: Any) -> None:
    """Before anything is opened or read: an agent is told that only people answer."""
    from ..core.decide import may_ever

    may_ever("answer", desk.who)


def waiting(desk: Any, what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The task and the question that it waits with."""
    from ..display.run_facts import open_questions
    from ..display.runs import status

    found = desk.show(what)
    if "status" in found:
        if found["status"] != "pending":
            from ..display import result

            raise Precondition(f"Cannot continue {found['id']}", reason=result(found), hint=f"turn status {found['task']}")
        return desk.show(found["task"]), found
    asked = open_questions(found)
    if not asked:
        word = status(found) if found["workflow"] else found["state"]
        raise Precondition(f"Cannot continue {found['key']}: it is '{word}'", reason=_why(found), hint=_instead(found))
    if len(asked) > 1:
        names = ", ".join(f"{q['id']} ({q['kind']})" for q in asked[:8])
        raise Invalid(
            f"{found['key']} has {len(asked)} open questions", reason=names, hint=f"Name one: turn continue {asked[0]['id']}"
        )
    return found, asked[0]


def _why(task: dict[str, Any]) -> str:
    return f"{task['claim']['worker']} works on it" if task["claim"] else "it waits for no person"


def _instead(task: dict[str, Any]) -> str:
    from ..display import next_steps

    return next_steps(task)[0]


# --- the visit ------------------------------------------------------------------------------------------------------


def _visit(a: Namespace, term: Terminal, desk: Any, location: Any) -> dict[str, Any] | None:
    """Returns the question as it was closed, or None: it is still open."""
    from .. import display
    from ..config import file, locate
    from ..display import terminal
    from ..worker import continue_session

    q = location.question
    if not location.agent:
        term.say(*display.question(q, ""))
        return term.answer(desk, q)
    opens = continue_session.command(location, file())
    if isinstance(opens, str):
        term.say(terminal.safe(opens), "", *display.question(q, ""))
        return _heard(term, desk, location)
    name, words, more = opens
    term.say(f"Opening {name} session for: {terminal.safe(location.agent)}", f"Reason: {terminal.one_line(q['text'])}")
    term.say(f"Folder: {terminal.safe(str(location.folder))}", f"Exit {name} to come back to turn.", "")
    address = locate(a.db, os.environ)
    address = address if "://" in address else str(Path(address).resolve())
    with suppress(OSError):
        continue_session.signal_file(location).parent.mkdir(parents=True, exist_ok=True)
    rc = term.run(words, continue_session.environment(location, address, os.environ, more), location.folder)
    if rc:
        term.say("", f"The session ended with exit code {rc}. It may be gone, or open elsewhere.")
    return _heard(term, desk, location, opened=True)


def _heard(term: Terminal, desk: Any, location: Any, *, opened: bool = False) -> dict[str, Any] | None:
    """What the agent says now, and what the person says to that."""
    from ..display import terminal
    from ..worker import continue_session

    signal = continue_session.NewSignal(location)
    said, q = signal.read(), desk.show(location.question["id"])
    if q["status"] != "pending":
        return dict(q)
    broken = said.what == "broken"
    if broken:
        term.say("", f"{location.agent}'s signal cannot be understood: {terminal.one_line(said.text)}")
        said = said._replace(what="nothing", status="")
        signal.remove()
    if not continue_session.is_new(said):
        if opened and not broken:
            term.say("", f"{terminal.safe(location.agent)} left no new signal. Answer here, or later.")
        return term.answer(desk, q)
    term.say("", f"{terminal.safe(location.agent)} says: {terminal.one_line(continue_session.outcome_text(said))}")
    verdict, words = "approved", ""
    if location.needs_verdict and said.what != "ask":
        judged = term.verdict(q)
        if judged is None:
            return None
        verdict, words = judged
    if verdict == "rejected":
        closed = desk.answer(q["id"], None, words, verdict)
    else:
        closed = continue_session.settle(desk, location, said, words, verdict)
    signal.remove()
    return dict(closed)


# --- and then -------------------------------------------------------------------------------------------------------


def after(a: Namespace, term: Terminal, desk: Any, task: dict[str, Any], q: dict[str, Any], closed: dict[str, Any] | None) -> int:
    """Say where that leads, and go on with it."""
    from .. import display
    from ..display.run_facts import open_questions

    now = desk.show(task["key"])
    if closed is None:
        return still(a, term, now, q)
    if closed["status"] != "pending" and closed["responded_by"] != desk.who.name:
        term.say("", f"{q['id']} was closed meanwhile: {display.result(closed)}")
    elif closed["status"] == "cancelled":
        term.say("", f"{q['id']} is off the desk: {closed['close_reason']}.")
    else:
        term.say("", f"✓ {q['id']}: {display.result(closed)}")
    again = open_questions(now)
    if again:
        return still(a, term, now, again[0])
    return onward(a, term, desk, now)


def still(a: Namespace, term: Terminal, task: dict[str, Any], q: dict[str, Any]) -> int:
    from ..display.terminal import one_line

    key, asked = task["key"], one_line(q["text"])
    term.say(f"{key} is still waiting ({q['kind']}, {q['id']}): {asked}", f"Next: turn continue {key}")
    if a.json:
        parser.show(a, task, [])
    return StillWaiting.exit_code


def onward(a: Namespace, term: Terminal, desk: Any, task: dict[str, Any]) -> int:
    """A run goes on here; a task is the workers'."""
    from .questions import after as where

    if not task["workflow"] or a.detach or task["ended_at"] or task["claim"]:
        term.say(f"  {where(task)}", *(f"  {line}" for line in parser.unattended(a, desk, task)))
        return parser.show(a, task, []) if a.json else 0
    from .run import go

    return go(a, desk, task["key"])
