"""Scripted replies of agents and people in the workflow harness.

An agent's reply is what it would write into its signal file, and is parsed by the same code. A list of replies is used in order
and has to be used up; a single reply is used every time. Each reply belongs to one turn of one call: a turn that is repeated,
because the worker crashed before it was recorded, gets the same reply again.
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
    """The workflow needed a reply that was not scripted, or did not use one that was."""


class AgentTurn(NamedTuple):
    """One turn of an agent: its input and its place in the run."""

    agent: str
    prompt: str | None
    step: str
    session: str
    resumed: bool  #: the session was resumed
    answer: str | None = None  #: a person's answer to its question
    verdict: str | None = None


# --- replies of agents ----------------------------------------------------------------------------------------------


def done(summary: str = "", **more: Any) -> Signal:
    """The agent is finished."""
    return {**more, "status": "DONE", "summary": summary}


def said(status: str, message: str = "", **more: Any) -> Signal:
    """A status of the agent's own, for the script to read: said("APPROVED")."""
    return {**more, "status": status, "message": message}


def failed(reason: str, **more: Any) -> Signal:
    """The agent failed."""
    return {**more, "status": "FAILED", "reason": reason}


def needs_human(text: str, kind: str = "input", **more: Any) -> Signal:
    """The agent needs a person, ends its turn, and continues with the answer."""
    if kind not in KINDS or not KINDS[kind].signals:
        raise ValueError(f"no signal asks for {kind!r}; choose from: {', '.join(k for k, row in KINDS.items() if row.signals)}")
    return {**more, "status": "NEEDS_HUMAN" if kind == "input" else KINDS[kind].signals[0], "question": text}


class asks:
    """The agent asks through a tool while it works, as `turn ask` does, and ends its turn."""

    def __init__(self, text: str, options: Any = (), **fields: Any) -> None:
        self.text, self.fields = text, {**fields, **({"options": list(options)} if options else {})}

    def __repr__(self) -> str:
        return f"asks({self.text!r})"


class crashes:
    """The agent crashes: the run is released, which costs a try, and the next reply is for the retry."""

    def __init__(self, reason: str = "the agent crashed") -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"crashes({self.reason!r})"


def turn_of(reply: Any) -> Turn:
    """An agent's reply as the worker parses it."""
    if reply is None or isinstance(reply, str):
        reply = done(reply or "")
    if not isinstance(reply, dict):
        raise TypeError(f"{reply!r} is no reply of an agent: use done(…), said(…), failed(…), needs_human(…) or a dictionary")
    parsed = outcomes.from_file(json.dumps(reply).encode())
    if parsed.what == "nothing":
        return Turn("said", parsed.status, parsed.text, "", None, parsed.context)
    return Turn(parsed.what, parsed.status, parsed.text, parsed.kind, parsed.reason, parsed.context)


# --- replies of a person --------------------------------------------------------------------------------------------


class PersonReply(NamedTuple):
    how: str  #: approve, reject or silence
    text: str = ""

    def __repr__(self) -> str:
        return f"{self.how}({self.text!r})" if self.text else f"{self.how}()"


def approve(text: str = "") -> PersonReply:
    return PersonReply("approve", text)


def reject(text: str = "") -> PersonReply:
    return PersonReply("reject", text)


def silence() -> PersonReply:
    """No answer until the question times out."""
    return PersonReply("silence")


# --- which reply is next --------------------------------------------------------------------------------------------


class Replies:
    """The replies of one agent or person: a list that is used once, or one reply for every time."""

    def __init__(self, scripted: Any) -> None:
        self.once = isinstance(scripted, (list, tuple))
        self.left = list(scripted) if self.once else [scripted]
        self.number = 0  #: how many were used

    def next(self) -> Any:
        self.number += 1
        return self.left.pop(0) if self.once else self.left[0]


Scripted = list[Any] | tuple[Any, ...] | Signal | Callable[[AgentTurn], Any] | str | None


class AgentReplies:
    """The replies of all agents. A dictionary without a `status` maps prompts to replies."""

    def __init__(self, agents: Mapping[str, Scripted]) -> None:
        self.replies = {
            (agent, prompt): Replies(replies)
            for agent, scripted in agents.items()
            for prompt, replies in _by_prompt(scripted)
        }
        self.turns: dict[Any, Any] = {}

    def reply(self, call: AgentCall, turn_id: Any) -> Any:
        """The agent's reply in this turn."""
        if turn_id not in self.turns:
            self.turns[turn_id] = self._next(call)
        return self.turns[turn_id]

    def _next(self, call: AgentCall) -> Any:
        replies = self.replies.get((call.agent, call.prompt)) or self.replies.get((call.agent, None))
        where = f"run({call.agent!r}{'' if call.prompt is None else f', {call.prompt!r}'}), step {call.path}"
        if replies is None and all(name != call.agent for name, _ in self.replies):
            names = ", ".join(sorted({name for name, _ in self.replies})) or "none"
            raise OffScript(f"The workflow calls {where}, and the stage has no agent {call.agent!r}. It has: {names}.")
        if replies is None:
            raise OffScript(f"The workflow calls {where}, and {call.agent!r} has no replies for that prompt.")
        if not replies.left:
            raise OffScript(f"The workflow calls {where}, and {call.agent!r} has no reply left; {replies.number} used.")
        return replies.next()

    def retry(self, turn_id: Any) -> None:
        """The reply did not count: the next one is for the same turn."""
        self.turns.pop(turn_id, None)

    def unused(self) -> list[str]:
        """Replies that were not used, as text."""
        texts = []
        for (agent, prompt), replies in self.replies.items():
            if replies.once and replies.left:
                name = agent if prompt is None else f"{agent} ({prompt!r})"
                texts.append(f"{name} was called {_times(replies.number)}, and these replies are left: {_shown(replies.left)}")
        return texts


def _by_prompt(scripted: Any) -> list[tuple[str | None, Any]]:
    return list(scripted.items()) if isinstance(scripted, dict) and "status" not in scripted else [(None, scripted)]


def _times(number: int) -> str:
    return f"{number} time{'s' * (number != 1)}"


def _shown(replies: list[Any]) -> str:
    return ", ".join(map(_text, replies))


def _text(reply: Any) -> str:
    if not isinstance(reply, dict):
        return repr(reply)
    words = next((reply[name] for name in ("question", "summary", "reason", "message") if reply.get(name)), "")
    return f"{reply.get('status')}: {words}" if words else str(reply.get("status"))
