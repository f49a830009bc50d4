"""Opens the session of a waiting agent for a person, and turns its new signal into an answer (`turn continue`).

A waiting agent is rows on the desk, a session that the agent's program stores, and a folder. `location_of` finds these, `command`
is the command line that opens the session (`claude --resume ID`), `environment` the variables of its process. The agent writes
its new signal to the usual file. The worker has removed the one with which the agent asked, so a file that is there is new
(`NewSignal`).

`settle` answers the question with the signal: the step of a run gets it as its result, or asks something else; a task, which only
a worker can complete, gets its text.
"""

from __future__ import annotations

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
from ..flow.agent_step import Turn, signal_of
from .agents import agent_for
from .agents.base import agent_environment
from .signals import outcomes
from .signals.signal_file import SignalFile

if TYPE_CHECKING:
    from ..client import Client

#: The option or command of each program that opens a session.
RESUME_WORDS = {"claude": "--resume", "codex": "resume"}


class SessionLocation(NamedTuple):
    task: dict[str, Any]
    question: dict[str, Any]
    step: dict[str, Any] | None  #: the waiting call of a run
    agent: str  #: "" if the question has no session, such as a checkpoint of a script
    session: str | None
    folder: Path | None
    host: str | None

    @property
    def key(self) -> str:
        return str(self.task["key"])

    @property
    def needs_verdict(self) -> bool:
        """The question wants a person's yes or no, which a signal cannot replace."""
        return KINDS[self.question["kind"]].response_type == "approval"

    @property
    def accepts_signal(self) -> bool:
        """A signal can be the result of the step."""
        return self.step is not None and self.step["name"] == "run" and self.question["step"] is not None


def location_of(task: dict[str, Any], q: dict[str, Any]) -> SessionLocation:
    run = bool(task["workflow"])
    step = asking(task, q) if run else None
    if run and step is None and q["step"] is None:
        step = next((s for s in reversed(task["steps"]) if agent_of(s) and not s["ended_at"] and not s["spare"]), None)
    row = (step or {}) if run else task
    seat = row.get("seat") or {}
    agent = agent_of(step) if run else str(seat.get("agent") or "")
    session = row.get("session_id") if agent else None
    folder = Path(seat["folder"]) if agent and seat.get("folder") else None
    return SessionLocation(task, q, step, agent, session, folder, seat.get("host") or task["host"])


# --- opening the session --------------------------------------------------------------------------------------------


def command(location: SessionLocation, config: Mapping[str, Any]) -> tuple[str, tuple[str, ...], dict[str, str]] | str:
    """The program's name, its command line and its own variables; or the reason why there is nothing to open."""
    name = location.agent
    try:
        agent = agent_for(name, config)
    except YourturnError as error:
        return f"{name}'s session cannot be opened here: {error}."
    if agent.adapter not in RESUME_WORDS:
        return f"{name} has no session to open: it runs by the adapter '{agent.adapter}'."
    if not location.session:
        return f"{name} has no session yet."
    if location.host not in (None, socket.gethostname()):
        return f"{name}'s session is on {location.host}, and this is {socket.gethostname()}. There: turn continue {location.key}"
    if location.folder is None or not location.folder.is_dir():
        return f"{name}'s folder {location.folder or ''} is gone, and its session with it."
    claim, waits = location.task["claim"], location.step is not None and location.step["status"] == "waiting"
    if claim and not waits:
        return f"{name}'s session is open: {claim['worker']} holds it until its question is answered."
    words = [*(agent.argv or (agent.adapter,)), RESUME_WORDS[agent.adapter], location.session]
    if shutil.which(words[0]) is None:
        return f"{words[0]} is not installed here."
    return PROGRAMS[agent.adapter], tuple(words), dict(agent.env)


def environment(location: SessionLocation, address: str, env: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """The process acts as the agent, also while a person uses it."""
    return {
        **agent_environment({name: value for name, value in env.items() if name != "CLAUDECODE"}),
        **more,
        "YOURTURN_DB": address,
        "YOURTURN_TASK": location.key,
        "YOURTURN_AGENT": location.agent,
        "YOURTURN_PROJECT": location.key.rpartition("-")[0],
        "YOURTURN_SIGNALS": str(signal_file(location).parent),
        "YOURTURN_SESSION": str(location.session),
        **({"YOURTURN_STEP": str(location.step["index"])} if location.step else {}),
    }


# --- the new signal -------------------------------------------------------------------------------------------------


def signal_file(location: SessionLocation) -> Path:
    """The agent's signal file. Agents that share a folder have folders of their own for signals."""
    own = ((location.step or location.task).get("seat") or {}).get("signals")
    folder = Path(location.folder or ".")
    name = f"{location.agent}.json"
    if own:
        return folder.joinpath(own, name)
    shared = folder / ".agents" / "signals" / location.key
    return (shared if shared.is_dir() else shared.parent) / name


class NewSignal:
    """The agent's signal since its question. The file stays until the signal is used."""

    def __init__(self, location: SessionLocation) -> None:
        self.location = location
        here = location.agent and location.folder is not None and location.host in (None, socket.gethostname())
        self.file = SignalFile(signal_file(location), new=True) if here else None

    def mark(self) -> tuple[int, int] | None:
        """Changes when the file is written."""
        return self.file.mark() if self.file else None

    def read(self) -> outcomes.Outcome:
        data = self.file.read(keep=True) if self.file else None
        outcome = outcomes.NOTHING if data is None else outcomes.from_file(data)
        q = self.location.question
        same = outcome.what == "ask" and outcome.kind == q["kind"] and outcome.text.strip() == q["text"].strip()
        return outcomes.NOTHING if same else outcome

    def remove(self) -> None:
        if self.file:
            self.file.remove()


def is_new(outcome: outcomes.Outcome) -> bool:
    """True if there is a signal, also one with a status that only a script knows."""
    return outcome.what != "nothing" or bool(outcome.status)


def outcome_text(outcome: outcomes.Outcome) -> str:
    """DONE: Implemented with PKCE"""
    words = " ".join(outcome.text.split())
    return ": ".join(filter(None, (outcome.status.upper(), words)))


def settle(
    desk: Client, location: SessionLocation, outcome: outcomes.Outcome, words: str = "", verdict: str = "approved"
) -> dict[str, Any]:
    """Answer the question with the outcome. Returns the closed question."""
    q, words = location.question, words or f"settled in {location.agent}'s session"
    if location.accepts_signal:
        desk.answer(q["id"], text=words, verdict=verdict, signal=as_result(outcome))
        return desk.show(q["id"])
    if outcome.what == "ask":
        desk.as_(Who(f"agent:{location.agent}", "agent", direct=True)).flag(
            location.key, outcome.text or KINDS[outcome.kind].prompt.format(title=location.task["title"]),
            outcome.reason or None, outcome.kind, context=outcome.context or None,  # type: ignore[arg-type]
        )  # fmt: skip
        return desk.withdraw(q["id"], f"{location.agent} asks something else now")
    return desk.answer(q["id"], text=f"{words}. You said there: {outcome_text(outcome)}", verdict=verdict)


def as_result(outcome: outcomes.Outcome) -> dict[str, Any]:
    """The result of the script's call, or the question for the desk."""
    if outcome.what == "ask":
        more = {"context": outcome.context} if outcome.context else {}
        return {"status": KINDS[outcome.kind].signals[0], "question": outcome.text, **more}
    what = "said" if outcome.what == "nothing" else outcome.what
    return dict(signal_of(Turn(what, outcome.status, outcome.text, context=outcome.context)))
