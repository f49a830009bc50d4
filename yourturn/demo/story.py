"""The whole idea in a quarter of a minute, told in a terminal.

A temporary desk, four tasks, and agents that are real processes. One of them needs a decision: it asks, parks and
*ends*. Another takes the next task meanwhile. The person answers, and a new process, which has never heard of the first
one, claims the task, finds the answer beside it and finishes.

At a terminal the viewer is the person. Otherwise, and in CI, the demo answers by itself, so that scripts can run it.
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
from .terminal import Stage

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


def agent(stage: Stage) -> int:
    """One turn of one agent: take the next task, work on it, ask or finish, and end."""
    me = f"coder-{os.getpid()}"
    with connect() as desk:
        got = desk.claim_next(me, lease="90s")
        if got is None:
            stage.line("agent", f"{me}: nothing to do")
            return 3
        task, claim = desk.show(got["task"]), got["claim"]
        stage.line("agent", f"{me} (a new process) claims {task['key']}: {task['title']}")
        stage.pause()
        answered = [q for q in task["questions"] if q["status"] == "answered"]
        if task["title"] == TASKS[0][0] and not answered:
            return _ask(stage, desk, task, claim)
        for question in answered:
            value = plain(question["response"]["value"])
            stage.line("agent", f"reads the answer of {question['responded_by']} to {question['id']}: {value}")
            stage.pause()
        words = f"{task['title']}: finished" + "".join(f", with {plain(q['response']['value'])}" for q in answered)
        task = desk.complete(claim, words)
        stage.line("agent", f"finishes {task['key']}; the task is {task['state']}, and the process ends")
    return 0


def _ask(stage: Stage, desk: Client, task: dict[str, Any], claim: dict[str, Any]) -> int:
    desk.note(task, "The form and the password check are there. The session is missing.")
    stage.line("agent", "works, and comes to a decision that it should not make alone")
    asked = desk.ask(
        task, QUESTION, options=OPTIONS, allow_other=True, claim=claim, confidence=0.5, on_timeout="keep",
        context={"current_step": "the form works, the session is missing", "suggestion": SUGGESTION},
    )  # fmt: skip
    stage.line("agent", f"asks {asked['id']}: “{QUESTION}”")
    stage.pause()
    desk.park(claim)
    stage.line("agent", "parks the task, and the process ends: nobody hangs, nobody guesses")
    return 0


# --- the person, and the story around it -----------------------------------------------------------------------------


def story(stage: Stage) -> int:
    with tempfile.TemporaryDirectory(prefix="yourturn-demo-") as folder:
        db = str(Path(folder) / "yourturn.db")
        env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
        init(db, "DEMO", "Demo", env)[0].close()
        with connect(db, as_=f"human:{person(env)}", project="DEMO", env=env) as desk:
            return _play(stage, desk, db, env)


def _play(stage: Stage, desk: Client, db: str, env: dict[str, str]) -> int:
    stage.say(stage.paint("Yourturn: whose turn is it?", "bold"))
    stage.say("A desk in a temporary folder, a small project, and agents that are real processes.")

    stage.chapter("1. The work")
    for title, about, needs in TASKS:
        desk.create(title, description=about, depends_on=needs)
    _board(stage, desk)

    stage.chapter("2. An agent takes a task, and needs a person")
    if not _run_agent(stage, db, env):
        return 1
    _board(stage, desk)

    stage.chapter("3. Meanwhile, another agent takes what is ready")
    if not _run_agent(stage, db, env):
        return 1

    stage.chapter("4. Your turn")
    _answer(stage, desk)

    stage.chapter("5. The work goes on, in processes that did not exist when the question was asked")
    while desk.next() is not None:
        if not _run_agent(stage, db, env):
            return 1
    _board(stage, desk)

    stage.chapter("6. Who did what, as the desk wrote it down")
    for event in desk.history("DEMO-1"):
        moved = f"{event['data'].get('from') or 'nothing'} → {event['data']['to']}"
        stage.say(f"  {event['at'][11:19]}  {event['actor']:<14} {event['action']:<9} {moved}")

    _farewell(stage)
    return 0 if all(task["state"] == "done" for task in desk.list()) else 1


def _board(stage: Stage, desk: Client) -> None:
    turns = {"ready": "agent", "working": "agent", "human": "person", "done": "desk"}
    for task in desk.list():
        state = stage.paint(f"{task['state']:<8}", turns.get(task["state"], "quiet"))
        waits = f"waits for {', '.join(task['blocked_by'])}" if task["blocked_by"] else ""
        waits = waits or ("waits for a person" if task["awaiting"] else "")
        stage.say(f"  {task['key']}  {state} {task['title']:<24} {stage.paint(waits, 'quiet')}".rstrip())
    stage.pause()


def _run_agent(stage: Stage, db: str, env: dict[str, str]) -> bool:
    """Start an agent and see it end. Its environment makes it one: whatever it says, it cannot answer."""
    ours = {"YOURTURN_DB": db, "YOURTURN_AGENT": "coder", "YOURTURN_PROJECT": "DEMO"}
    command = [sys.executable, "-m", "yourturn.demo", "--agent", "--pace", str(stage.pace)]
    done = subprocess.run(command, env={**env, **ours}, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        stage.line("desk", f"the agent ended with {done.returncode}, which is not part of this story")
    return done.returncode == 0


def _answer(stage: Stage, desk: Client) -> None:
    asked = desk.inbox()[0]
    stage.line("person", f"inbox: {asked['id']} from {asked['asked_by']}, about {asked['task']} ({asked['title']})")
    stage.say(f"\n    {stage.paint(asked['text'], 'bold')}")
    for option in asked["options"]:
        stage.say(f"      {option['id']:<7} {option['label']} ({option['description']})")
    stage.say(f"\n    At your own desk you would type:  turn respond {asked['task']} {SUGGESTION}\n")
    stage.pause()
    if not sys.stdin.isatty() or os.environ.get("CI"):
        stage.say("    Nobody is at the keyboard, so the demo answers for you.")
        _give(stage, desk, asked, SUGGESTION)
        return
    while True:
        try:
            typed = input(f"    Your answer [{SUGGESTION}]: ").strip()
        except EOFError:
            stage.say()
            typed = ""
        if _give(stage, desk, asked, typed or SUGGESTION):
            return


def _give(stage: Stage, desk: Client, asked: dict[str, Any], value: str) -> bool:
    try:
        answer = desk.answer(asked, value)
    except AlreadyClosed as error:
        stage.line("desk", error.message)
        return True
    except Invalid as error:
        stage.line("desk", f"{error}. {error.hint}")
        return False
    task = desk.show(asked["task"])
    stage.line("person", f"{answer['responded_by']} answers {asked['id']}: {plain(answer['response']['value'])}")
    stage.line("desk", f"{task['key']} is {task['state']} again: an agent's turn")
    return True


def _farewell(stage: Stage) -> None:
    beside = Path(sys.executable).parent / "turn"
    turn = "turn"
    if not shutil.which("turn") and beside.exists():
        turn = str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)
    stage.chapter("What to type next")
    lines = f"""
        {turn} init --key PROJ
        {turn} create "Add login"
        {turn} ask PROJ-1 "JWT or sessions?" --option jwt --option sessions
        {turn} inbox
        {turn} respond PROJ-1 jwt
        {turn} log PROJ-1
        """
    stage.say(textwrap.indent(textwrap.dedent(lines).strip(), "  "))


def plain(value: Any) -> str:
    """An answer on one line, harmless for a terminal."""
    return "".join(c if c.isprintable() else "·" for c in str(value))[:200]
