"""What agents and people say on a stage: their lines, and who has said which.

An agent's line is what it would write into its signal file, and is read by the same code. A list of lines is said one after
the other, and has to be said to its end; a single line is said every time. Each line belongs to one turn of one call: a turn
that is taken again, because the worker crashed before it was recorded, says the same line again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..core.rules import KINDS
from ..flow.agent_step import AgentCall, Turn
from ..worker.signals import outcomes

Signal = dict[str, Any]


class OffScript(AssertionError):
    """Something was said that nobody wrote, or written that nobody said."""


class Told(NamedTuple):
    """One turn of an agent: what it was told, and where."""

    agent: str
    prompt: str | None
    step: str
    session: str
    resumed: bool  #: the same session goes on
    answer: str | None = None  #: what a person said to its question
    verdict: str | None = None


# --- what agents say ------------------------------------------------------------------------------------------------


def done(summary: str = "", **more: Any) -> Signal:
    """It is finished."""
    return {**more, "status": "DONE", "summary": summary}


def said(status: str, message: str = "", **more: Any) -> Signal:
    """Any word of its own, for the script to read: said("APPROVED")."""
    return {**more, "status": status, "message": message}


def failed(reason: str, **more: Any) -> Signal:
    """It could not do it, and says so."""
    return {**more, "status": "FAILED", "reason": reason}


def needs_human(text: str, kind: str = "input", **more: Any) -> Signal:
    """It needs a person, ends its turn, and goes on with the answer."""
    if kind not in KINDS or not KINDS[kind].signals:
        raise ValueError(f"no signal asks for {kind!r}; choose from: {', '.join(k for k, row in KINDS.items() if row.signals)}")
    return {**more, "status": "NEEDS_HUMAN" if kind == "input" else KINDS[kind].signals[0], "question": text}


class asks:
    """It asks through a tool while it works, as `turn ask` does, and ends its turn."""

    def __init__(self, text: str, options: Any = (), **fields: Any) -> None:
        self.text, self.fields = text, {**fields, **({"options": list(options)} if options else {})}

    def __repr__(self) -> str:
        return f"asks({self.text!r})"


class crashes:
    """It falls over; the run is given back, which costs a try, and the next line is what it says then."""

    def __init__(self, reason: str = "the agent crashed") -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"crashes({self.reason!r})"


def heard(line: Any) -> Turn:
    """An agent's line as the worker would hear it."""
    if line is None or isinstance(line, str):
        line = done(line or "")
    if not isinstance(line, dict):
        raise TypeError(f"an agent cannot say {line!r}; it says done(…), said(…), failed(…), needs_human(…) or a dictionary")
    found = outcomes.from_file(json.dumps(line).encode())
    if found.what == "nothing":
        return Turn("said", found.status, found.text, "", None, found.context)
    return Turn(found.what, found.status, found.text, found.kind, found.reason, found.context)


# --- what a person says ---------------------------------------------------------------------------------------------


class Word(NamedTuple):
    how: str  #: approve, reject or silence
    text: str = ""

    def __repr__(self) -> str:
        return f"{self.how}({self.text!r})" if self.text else f"{self.how}()"


def approve(text: str = "") -> Word:
    return Word("approve", text)


def reject(text: str = "") -> Word:
    return Word("reject", text)


def silence() -> Word:
    """Nobody answers, until the question's time is up."""
    return Word("silence")


# --- who says what --------------------------------------------------------------------------------------------------


class Lines:
    """Somebody's lines: a list that is said once, or one that is said every time."""

    def __init__(self, given: Any) -> None:
        self.once = isinstance(given, (list, tuple))
        self.left = list(given) if self.once else [given]
        self.number = 0  #: how many were said

    def next(self) -> Any:
        self.number += 1
        return self.left.pop(0) if self.once else self.left[0]


Given = list[Any] | tuple[Any, ...] | Signal | Callable[[Told], Any] | str | None


class Cast:
    """All agents and their lines. A dictionary without a `status` gives lines by the prompt that the agent is called with."""

    def __init__(self, agents: Mapping[str, Given]) -> None:
        self.lines = {(agent, prompt): Lines(given) for agent, all_ in agents.items() for prompt, given in _by_prompt(all_)}
        self.turns: dict[Any, Any] = {}

    def line(self, call: AgentCall, turn: Any) -> Any:
        """What the agent says in this turn."""
        if turn not in self.turns:
            self.turns[turn] = self._next(call)
        return self.turns[turn]

    def _next(self, call: AgentCall) -> Any:
        lines = self.lines.get((call.agent, call.prompt)) or self.lines.get((call.agent, None))
        where = f"run({call.agent!r}{'' if call.prompt is None else f', {call.prompt!r}'}), step {call.path}"
        if lines is None and all(name != call.agent for name, _ in self.lines):
            names = ", ".join(sorted({name for name, _ in self.lines})) or "nobody"
            raise OffScript(f"The workflow calls {where}, and the stage has no agent {call.agent!r}. It has: {names}.")
        if lines is None:
            raise OffScript(f"The workflow calls {where}, and {call.agent!r} has no lines for that prompt.")
        if not lines.left:
            before = f"after {lines.number} line{'s' * (lines.number != 1)}"
            raise OffScript(f"The workflow calls {where}, and {call.agent!r} has nothing more to say, {before}.")
        return lines.next()

    def again(self, turn: Any) -> None:
        """What was said did not count: its next line is for the same turn."""
        self.turns.pop(turn, None)

    def unsaid(self) -> list[str]:
        """Lines that nobody has asked for."""
        found = []
        for (agent, prompt), lines in self.lines.items():
            if lines.once and lines.left:
                whom = agent if prompt is None else f"{agent} ({prompt!r})"
                found.append(f"{whom} was called {_times(lines.number)}, and has not said {_shown(lines.left)}")
        return found


def _by_prompt(given: Any) -> list[tuple[str | None, Any]]:
    return list(given.items()) if isinstance(given, dict) and "status" not in given else [(None, given)]


def _times(number: int) -> str:
    return f"{number} time{'s' * (number != 1)}"


def _shown(lines: list[Any]) -> str:
    return ", ".join(map(_line, lines))


def _line(line: Any) -> str:
    if not isinstance(line, dict):
        return repr(line)
    words = next((line[name] for name in ("question", "summary", "reason", "message") if line.get(name)), "")
    return f"{line.get('status')}: {words}" if words else str(line.get("status"))
