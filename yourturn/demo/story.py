"""The demo's story: the idea of the product in fifteen seconds, in a terminal.

A temporary desk, four tasks, and agents that are real processes. One of them needs a decision: it asks, parks its task and ends.
Another claims the next task meanwhile. The person answers, and a new process claims the first task, reads the answer and
completes it.

At a terminal the viewer is the person. Otherwise, and in CI, the demo answers by itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from ..client import Client
from ..config import connect, init, person
from ..core.errors import AlreadyClosed, Invalid
from .terminal import DemoTerminal

TASKS: list[tuple[str, str, tuple[str, ...]]] = [
    ("Add login", "Let people sign in with e-mail and password.", ()),
    ("Draw the start page", "", ()),
    ("Test the login", "", ("DEMO-1",)),
    ("Write the release notes", "", ("DEMO-2", "DEMO-3")),
]
QUESTION = "Where should a signed-in session live?"
OPTIONS = [
    {"id": "cookie", "label": "In a server-side session, with a cookie", "description": "easy to take back"},
    {"id": "jwt", "label": "In a JWT that the browser keeps", "description": "nothing to store, hard to take back"},
]
SUGGESTION = "cookie"

# --- the agent, a process of its own ---------------------------------------------------------------------------------


def agent(terminal: DemoTerminal) -> int:
    """One turn of one agent: claim the next task, work on it, ask or complete, and end."""
    me = f"coder-{os.getpid()}"
    with connect() as desk:
        claimed = desk.claim_next(me, lease="90s")
        if claimed is None:
            terminal.print_line("agent", f"{me}: nothing to do")
            return 3
        task, claim = desk.show(claimed["task"]), claimed["claim"]
        terminal.print_line("agent", f"{me} (a new process) claims {task['key']}: {task['title']}")
        terminal.pause()
        answered = [q for q in task["questions"] if q["status"] == "answered"]
        if task["title"] == TASKS[0][0] and not answered:
            return _ask(terminal, desk, task, claim)
        for question in answered:
            value = plain(question["response"]["value"])
            terminal.print_line("agent", f"reads the answer of {question['responded_by']} to {question['id']}: {value}")
            terminal.pause()
        words = f"{task['title']}: finished" + "".join(f", with {plain(q['response']['value'])}" for q in answered)
        task = desk.complete(claim, words)
        terminal.print_line("agent", f"finishes {task['key']}; the task is {task['state']}, and the process ends")
    return 0


def _ask(terminal: DemoTerminal, desk: Client, task: dict[str, Any], claim: dict[str, Any]) -> int:
    desk.note(task, "The form and the password check are there. The session is missing.")
    terminal.print_line("agent", "works, and reaches a decision that a person should make")
    asked = desk.ask(
        task, QUESTION, options=OPTIONS, allow_other=True, claim=claim, confidence=0.5, on_timeout="keep",
        context={"current_step": "the form works, the session is missing", "suggestion": SUGGESTION},
    )  # fmt: skip
    terminal.print_line("agent", f"asks {asked['id']}: “{QUESTION}”")
    terminal.pause()
    desk.park(claim)
    terminal.print_line("agent", "parks the task, and its process ends: nothing blocks while the person thinks")
    return 0


# --- the story -----------------------------------------------------------------------------


def story(terminal: DemoTerminal) -> int:
    with tempfile.TemporaryDirectory(prefix="yourturn-demo-") as folder:
        db = str(Path(folder) / "yourturn.db")
        env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
        init(db, "DEMO", "Demo", env)[0].close()
        with connect(db, as_=f"human:{person(env)}", project="DEMO", env=env) as desk:
            return _play(terminal, desk, db, env)


def _play(terminal: DemoTerminal, desk: Client, db: str, env: dict[str, str]) -> int:
    terminal.print(terminal.paint("Yourturn: whose turn is it?", "bold"))
    terminal.print("A desk in a temporary folder, a small project, and agents that are real processes.")

    terminal.heading("1. The work")
    for title, about, needs in TASKS:
        desk.create(title, description=about, depends_on=needs)
    _board(terminal, desk)

    terminal.heading("2. An agent takes a task, and needs a person")
    if not _run_agent(terminal, db, env):
        return 1
    _board(terminal, desk)

    terminal.heading("3. Meanwhile, another agent takes what is ready")
    if not _run_agent(terminal, db, env):
        return 1

    terminal.heading("4. Your turn")
    _answer(terminal, desk)

    terminal.heading("5. The work goes on, in processes that did not exist when the question was asked")
    while desk.next() is not None:
        if not _run_agent(terminal, db, env):
            return 1
    _board(terminal, desk)

    terminal.heading("6. The history of DEMO-1")
    for event in desk.history("DEMO-1"):
        moved = f"{event['data'].get('from') or 'nothing'} → {event['data']['to']}"
        terminal.print(f"  {event['at'][11:19]}  {event['actor']:<14} {event['action']:<9} {moved}")

    _farewell(terminal)
    return 0 if all(task["state"] == "done" for task in desk.list()) else 1


def _board(terminal: DemoTerminal, desk: Client) -> None:
    turns = {"ready": "agent", "working": "agent", "human": "person", "done": "desk"}
    for task in desk.list():
        state = terminal.paint(f"{task['state']:<8}", turns.get(task["state"], "quiet"))
        waits = f"waits for {', '.join(task['blocked_by'])}" if task["blocked_by"] else ""
        waits = waits or ("waits for a person" if task["awaiting"] else "")
        terminal.print(f"  {task['key']}  {state} {task['title']:<24} {terminal.paint(waits, 'quiet')}".rstrip())
    terminal.pause()


def _run_agent(terminal: DemoTerminal, db: str, env: dict[str, str]) -> bool:
    """Run an agent until it ends. Its environment makes it an agent, so it cannot answer questions."""
    ours = {"YOURTURN_DB": db, "YOURTURN_AGENT": "coder", "YOURTURN_PROJECT": "DEMO"}
    command = [sys.executable, "-m", "yourturn.demo", "--agent", "--pace", str(terminal.pace)]
    done = subprocess.run(command, env={**env, **ours}, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        terminal.print_line("desk", f"the agent ended with {done.returncode}, which is unexpected")
    return done.returncode == 0


def _answer(terminal: DemoTerminal, desk: Client) -> None:
    asked = desk.inbox()[0]
    terminal.print_line("person", f"inbox: {asked['id']} from {asked['asked_by']}, about {asked['task']} ({asked['title']})")
    terminal.print(f"\n    {terminal.paint(asked['text'], 'bold')}")
    for option in asked["options"]:
        terminal.print(f"      {option['id']:<7} {option['label']} ({option['description']})")
    terminal.print(f"\n    At your own desk you would type:  turn respond {asked['task']} {SUGGESTION}\n")
    terminal.pause()
    if not sys.stdin.isatty() or os.environ.get("CI"):
        terminal.print("    There is no terminal, so the demo answers for you.")
        _give(terminal, desk, asked, SUGGESTION)
        return
    while True:
        try:
            typed = input(f"    Your answer [{SUGGESTION}]: ").strip()
        except EOFError:
            terminal.print()
            typed = ""
        if _give(terminal, desk, asked, typed or SUGGESTION):
            return


def _give(terminal: DemoTerminal, desk: Client, asked: dict[str, Any], value: str) -> bool:
    try:
        answer = desk.answer(asked, value)
    except AlreadyClosed as error:
        terminal.print_line("desk", error.message)
        return True
    except Invalid as error:
        terminal.print_line("desk", f"{error}. {error.hint}")
        return False
    task = desk.show(asked["task"])
    terminal.print_line("person", f"{answer['responded_by']} answers {asked['id']}: {plain(answer['response']['value'])}")
    terminal.print_line("desk", f"{task['key']} is {task['state']} again: an agent's turn")
    return True


def _farewell(terminal: DemoTerminal) -> None:
    beside = Path(sys.executable).parent / "turn"
    turn = "turn"
    if not shutil.which("turn") and beside.exists():
        turn = str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)
    terminal.heading("What to type next")
    lines = f"""
        {turn} init --key PROJ
        {turn} create "Add login"
        {turn} ask PROJ-1 "JWT or sessions?" --option jwt --option sessions
        {turn} inbox
        {turn} respond PROJ-1 jwt
        {turn} log PROJ-1
        """
    terminal.print(textwrap.indent(textwrap.dedent(lines).strip(), "  "))


def plain(value: Any) -> str:
    """An answer on one line, without control characters."""
    return "".join(c if c.isprintable() else "·" for c in str(value))[:200]
