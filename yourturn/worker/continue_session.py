"""A person visits an agent that waits: where its session is, how it is opened on a terminal, and what was said at the end.

A waiting agent is rows at the desk, a session that its own program keeps, and a folder. `seat_of` finds these; `command` is
the line that opens the session for a person (`claude --resume ID`), `environment` what its process has to know. The agent
leaves its new signal where it always does. The worker has read and removed the one with which it asked, so whatever lies
there is new (`Signal`), whoever opened the session and wherever.

What comes of it is said in one answer (`settle`): the step of a run gets the signal as its result, or asks something else;
a task, which only a worker can finish, gets words about it.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import YourturnError
from ..core.model import Who
from ..core.rules import KINDS
from ..display.run_facts import agent_of, asking
from ..display.runs import PROGRAMS
from .signals import outcomes
from .signals.signal_file import SignalFile

if TYPE_CHECKING:
    from ..client import Client

#: How each program opens a session for a person.
OPENS = {"claude": "--resume", "codex": "resume"}


class Seat(NamedTuple):
    task: dict[str, Any]
    question: dict[str, Any]
    step: dict[str, Any] | None  #: of a run: the call that waits
    agent: str  #: "": nobody's session, a checkpoint say
    session: str | None
    folder: Path | None
    host: str | None

    @property
    def key(self) -> str:
        return str(self.task["key"])

    @property
    def judged(self) -> bool:
        """A person's yes or no is asked for, and no signal can stand for it."""
        return KINDS[self.question["kind"]].response_type == "approval"

    @property
    def settles(self) -> bool:
        """A signal can be the result."""
        return self.step is not None and self.step["name"] == "run" and self.question["step"] is not None


def seat_of(task: dict[str, Any], q: dict[str, Any]) -> Seat:
    run = bool(task["workflow"])
    step = asking(task, q) if run else None
    if run and step is None and q["step"] is None:
        step = next((s for s in reversed(task["steps"]) if agent_of(s) and not s["ended_at"] and not s["spare"]), None)
    own = (step or {}).get("seat") or {}
    seat = own if run else task["seat"] or {}
    agent = agent_of(step) if run else str(seat.get("agent") or "")
    session = ((step or {}).get("session_id") if run else task["session_id"]) if agent else None
    folder = Path(seat["folder"]) if agent and seat.get("folder") else None
    return Seat(task, q, step, agent, session, folder, seat.get("host") or task["host"])


# --- opening it -----------------------------------------------------------------------------------------------------


def command(seat: Seat, config: Mapping[str, Any]) -> tuple[str, tuple[str, ...], dict[str, str]] | str:
    """The program's name, its line and its own variables; or why there is nothing to open."""
    name = seat.agent
    try:
        from .agents import agent_for

        agent = agent_for(name, config)
    except YourturnError as error:
        return f"{name}'s session cannot be opened here: {error}."
    if agent.adapter not in OPENS:
        return f"{name} has no session to open: it runs by the adapter '{agent.adapter}'."
    if not seat.session:
        return f"{name} has no session yet."
    if seat.host not in (None, socket.gethostname()):
        return f"{name}'s session is on {seat.host}, and this is {socket.gethostname()}. There: turn continue {seat.key}"
    if seat.folder is None or not seat.folder.is_dir():
        return f"{name}'s folder {seat.folder or ''} is gone, and its session with it."
    claim, waits = seat.task["claim"], seat.step is not None and seat.step["status"] == "waiting"
    if claim and not waits:
        return f"{name}'s session is open: {claim['worker']} holds it until its question is answered."
    words = [*(agent.argv or (agent.adapter,)), OPENS[agent.adapter], seat.session]
    if shutil.which(words[0]) is None:
        return f"{words[0]} is not installed here."
    return PROGRAMS[agent.adapter], tuple(words), dict(agent.env)


def environment(seat: Seat, address: str, env: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """The agent's process is the agent, also while a person looks on: nothing that it says is a person's word."""
    from .agents.base import turn_command
    from .worker import _OURS

    found = {name: value for name, value in env.items() if name not in _OURS and name != "CLAUDECODE"}
    if shutil.which("turn", path=found.get("PATH")) is None:
        found["PATH"] = os.pathsep.join(filter(None, (found.get("PATH"), str(Path(turn_command()[0]).parent))))
    return {
        **found,
        **more,
        "YOURTURN_DB": address,
        "YOURTURN_TASK": seat.key,
        "YOURTURN_AGENT": seat.agent,
        "YOURTURN_PROJECT": seat.key.rpartition("-")[0],
        "YOURTURN_SIGNALS": str(signal_file(seat).parent),
        "YOURTURN_SESSION": str(seat.session),
        **({"YOURTURN_STEP": str(seat.step["index"])} if seat.step else {}),
    }


# --- what was said --------------------------------------------------------------------------------------------------


def signal_file(seat: Seat) -> Path:
    """Where several agents share a folder, each has a place of its own."""
    own = (((seat.step or {}).get("seat") if seat.step else seat.task["seat"]) or {}).get("signals")
    folder = Path(seat.folder or ".")
    name = f"{seat.agent}.json"
    if own:
        return folder.joinpath(own, name)
    shared = folder / ".agents" / "signals" / seat.key
    return (shared if shared.is_dir() else shared.parent) / name


class Signal:
    """What the agent has said since it asked. It stays there until somebody has made something of it."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        here = seat.agent and seat.folder is not None and seat.host in (None, socket.gethostname())
        self.file = SignalFile(signal_file(seat), new=True) if here else None

    def mark(self) -> tuple[int, int] | None:
        """Changes when it is written to."""
        return self.file.mark() if self.file else None

    def read(self) -> outcomes.Outcome:
        data = self.file.read(keep=True) if self.file else None
        found = outcomes.NOTHING if data is None else outcomes.from_file(data)
        q = self.seat.question
        same = found.what == "ask" and found.kind == q["kind"] and found.text.strip() == q["text"].strip()
        return outcomes.NOTHING if same else found

    def forget(self) -> None:
        if self.file:
            self.file.forget()


def is_new(said: outcomes.Outcome) -> bool:
    """Something was said; a word that only a script knows is something, too."""
    return said.what != "nothing" or bool(said.status)


def shown(said: outcomes.Outcome) -> str:
    """DONE: Implemented with PKCE"""
    words = " ".join(said.text.split())
    return ": ".join(filter(None, (said.status.upper(), words)))


def settle(desk: Client, seat: Seat, said: outcomes.Outcome, words: str = "", verdict: str = "approved") -> dict[str, Any]:
    """Say what came of the visit. Returns the question that was closed by that."""
    q, words = seat.question, words or f"settled in {seat.agent}'s session"
    if seat.settles:
        desk.answer(q["id"], text=words, verdict=verdict, signal=as_result(said))
        return desk.show(q["id"])
    if said.what == "ask":
        desk.as_(Who(f"agent:{seat.agent}", "agent", direct=True)).flag(
            seat.key, said.text or KINDS[said.kind].prompt.format(title=seat.task["title"]),
            said.reason or None, said.kind, context=said.context or None,  # type: ignore[arg-type]
        )  # fmt: skip
        return desk.withdraw(q["id"], f"{seat.agent} asks something else now")
    return desk.answer(q["id"], text=f"{words}. You said there: {shown(said)}", verdict=verdict)


def as_result(said: outcomes.Outcome) -> dict[str, Any]:
    """What the script's call returns; or, where it asks, what the desk is told."""
    from ..flow.agent_step import Turn, signal_of

    if said.what == "ask":
        more = {"context": said.context} if said.context else {}
        return {"status": KINDS[said.kind].signals[0], "question": said.text, **more}
    what = "said" if said.what == "nothing" else said.what
    return dict(signal_of(Turn(what, said.status, said.text, context=said.context)))
