"""Where one agent sits: who it is, which task it works on, which claims it holds, and what each tool says to the desk.

A seat knows the desk and not the protocol. Whatever it does takes no longer than the desk does; where a person has to be waited
for, the reply names the question, and whoever called waits and asks the seat again how it stands.

A claim that was taken here is kept alive until it is given up by name, or until the seat is left: then it is parked, which
costs no try. A question outside any task gets a task of its own, claimed here, that is finished when the answer is handed out.
If the session ends before, the task stays with its question, and a worker takes it up with the answer.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from ..client import Client
from ..core.errors import ClaimLost, Invalid, NotFound, Precondition, YourturnError
from . import words
from .arguments import check
from .catalogue import TOOLS
from .fields import question_fields

#: How long a tool waits for a quick person: by default, and at most. Some clients give up after five minutes.
WAIT, LONGEST = 45.0, 240.0


class Call(NamedTuple):
    """What the protocol knows of a call: the same call, said again after a resume, has the same name."""

    name: str | None = None
    session: str | None = None

    def key(self, what: str) -> str | None:
        """For the desk to recognise it by."""
        if self.name is None:
            return None
        from ..core.canon import digest

        return f"call/{digest([self.session, self.name])[:40]}/{what}"


class Reply(NamedTuple):
    message: str
    data: dict[str, Any]
    question: str | None = None  #: wait for this one
    seconds: float = 0.0  #: so long
    gate: dict[str, Any] | None = None  #: the input that a permission prompt asks about


class Held(NamedTuple):
    token: str
    task: str
    lease: float  #: in seconds
    due: float  #: when to say that it is still held
    own: bool = False  #: the task was made for one question


def ask_wait(env: Mapping[str, str]) -> float:
    """YOURTURN_ASK_WAIT, in seconds."""
    try:
        seconds = float(env.get("YOURTURN_ASK_WAIT") or WAIT)
    except ValueError:
        return WAIT
    return min(LONGEST, max(0.0, seconds)) if seconds == seconds else WAIT


def agent_name(client: str | None, env: Mapping[str, str]) -> str:
    """YOURTURN_AGENT, else what the client calls itself, else `mcp`."""
    given = env.get("YOURTURN_AGENT")
    return given or re.sub(r"[^\w.@+-]+", "-", client or "").strip("-.@+")[:60] or "mcp"


class Seat:
    def __init__(self, connect: Callable[[str], Client], env: Mapping[str, str]) -> None:
        self._connect = connect
        self._env = env
        self._client: Client | None = None
        self._lock = threading.RLock()
        self._held: dict[str, Held] = {}  #: by task, the newest last
        self._lost: list[str] = []
        self._assumed: set[str] = set()  #: non-blocking questions whose answers are still to be told

    # --- who and where ----------------------------------------------------------------------------------------------

    def sit(self, client: str | None) -> Client:
        """The desk, as this agent. The name is settled by the first call."""
        with self._lock:
            if self._client is None:
                self._client = self._connect(agent_name(client, self._env))
            return self._client

    @property
    def desk(self) -> Client:
        return self.sit(None)

    @property
    def worker(self) -> str:
        return self._env.get("YOURTURN_WORKER") or f"{self.desk.who.name.partition(':')[2]}.mcp{os.getpid()}"

    def _task(self, given: str | None) -> str | None:
        """The task that is meant: the one named, the one claimed here last, or the worker's."""
        if given is not None:
            return given
        with self._lock:
            mine = [held.task for held in self._held.values() if not held.own]
        return mine[-1] if mine else self._env.get("YOURTURN_TASK") or None

    def _must(self, given: str | None) -> str:
        task = self._task(given)
        if task is None:
            raise Invalid("Which task?", reason="you hold none", hint="Give task, like PROJ-42, or take one with next_task.")
        return task

    def _proof(self, task: str) -> str | None:
        """The claim on a task, from here or from the worker."""
        with self._lock:
            exact = self._held.get(task)
            tokens = [held.token for held in self._held.values()]
        if exact is not None:
            return exact.token
        given = self._env.get("YOURTURN_CLAIM")
        return next((token for token in [*tokens, *filter(None, [given])] if self.desk.claim_is_for(token, task)), None)

    # --- claims -----------------------------------------------------------------------------------------------------

    def _keep(self, got: dict[str, Any], own: bool = False) -> None:
        claim = got["claim"]
        ends, now = (datetime.fromisoformat(at) for at in (claim["expires_at"], got["task"]["updated_at"]))
        lease = (ends - now).total_seconds()
        with self._lock:
            self._held[claim["task"]] = Held(claim["token"], claim["task"], lease, time.monotonic() + lease / 3, own)

    def _settle(self, task: dict[str, Any]) -> None:
        """A task has moved: if nobody holds it any more, neither do we."""
        if task["claim"] is None:
            with self._lock:
                self._held.pop(task["key"], None)

    def beat(self) -> float:
        """Keep what is held alive. Says in how many seconds to look again."""
        now = time.monotonic()
        with self._lock:
            held = [one for one in self._held.values() if now >= one.due]
        for one in held:
            try:
                self.desk.heartbeat(one.token)
            except YourturnError as error:
                if error.exit_code == ClaimLost.exit_code:  # lost, or moved on without us
                    self._lose(one, str(error))
                    continue
            with self._lock:
                if self._held.get(one.task) == one:
                    self._held[one.task] = one._replace(due=now + one.lease / 3)
        with self._lock:
            return min((max(0.0, one.due - time.monotonic()) for one in self._held.values()), default=60.0)

    def _lose(self, one: Held, why: str) -> None:
        with self._lock:
            if self._held.get(one.task) == one:
                del self._held[one.task]
                if not one.own:
                    self._lost.append(f"Your claim on {one.task} is over ({why}): stop working on it.")

    def leave(self) -> None:
        """Park what is held."""
        with self._lock:
            held, self._held = list(self._held.values()), {}
        for one in held:
            with suppress(YourturnError):
                try:
                    if not one.own:
                        raise Precondition("It is not finished")
                    self.desk.complete(one.token, "The session ended.")  # refused where a person still has to answer
                except YourturnError:
                    self.desk.park(one.token)

    # --- the tools --------------------------------------------------------------------------------------------------

    def perform(self, name: str, arguments: dict[str, Any], call: Call) -> Reply:
        """Do what a tool says. Raises YourturnError."""
        tool = TOOLS.get(name)
        if tool is None:
            raise NotFound(f"There is no tool {name[:60]!a}", hint=f"There are: {', '.join(TOOLS)}.")
        reply: Reply = getattr(self, f"_{name}")(check(name, tool.schema, arguments), call)
        return reply

    def _ask_question(self, given: dict[str, Any], call: Call) -> Reply:
        fields = question_fields(given)
        q = self._ask(given.get("task"), call, **fields)
        if not q["blocking"] and q["status"] == "pending":
            with self._lock:
                self._assumed.add(q["id"])
        return self._standing(q, ask_wait(self._env) if q["blocking"] else 0.0)

    def _request_permission(self, given: dict[str, Any], call: Call) -> Reply:
        action = {"tool": given["tool"], "input": given["input"], "folder": os.getcwd()}  # noqa: PTH109
        minutes = given.get("timeout_minutes")
        text = given.get("reason") or f"Allow {given['tool']}?"
        q = self._ask(
            given.get("task"),
            call,
            text=text,
            kind="permission",
            action=action,
            timeout=None if minutes is None else minutes * 60,
        )
        return self._standing(q, ask_wait(self._env))

    def _approve(self, given: dict[str, Any], call: Call) -> Reply:
        named = Call(given.get("tool_use_id") or call.name, call.session)
        action = {"tool": given["tool_name"], "input": given["input"], "folder": os.getcwd()}  # noqa: PTH109
        q = self._ask(None, named, text=f"Allow {given['tool_name']}?", kind="permission", action=action)
        return self._standing(q, ask_wait(self._env))._replace(gate=given["input"])

    def _get_answer(self, given: dict[str, Any], call: Call) -> Reply:
        return self._standing(self._question(given["question_id"]), float(given.get("wait_seconds", 0.0)))

    def _report_progress(self, given: dict[str, Any], call: Call) -> Reply:
        task = self._must(given.get("task"))
        far = f" ({given['percent']:g} %)" if "percent" in given else ""
        found = self.desk.note(task, f"Progress{far}: {given['message']}", key=call.key("progress"))
        with suppress(YourturnError):
            if token := self._proof(found["key"]):
                self.desk.heartbeat(token)
        return self._moved(found, "Noted. Go on.")

    def _next_task(self, given: dict[str, Any], call: Call) -> Reply:
        if self._env.get("YOURTURN_CLAIM"):
            raise Precondition(
                f"This session was started for {self._env.get('YOURTURN_TASK', 'one task')}",
                reason="the worker that started it hands out the next one",
                hint="Finish it with complete_task, or hand it over with flag_task, then end your turn.",
            )
        with self._lock:
            others = [held.task for held in self._held.values() if not held.own]
        got = self.desk.claim_next(self.worker, **given)
        if got is None:
            return Reply("There is nothing to work on now.", {"task": None, "message": "There is nothing to work on now."})
        self._keep(got)
        also = f"\n\nYou also hold {', '.join(others)}." if others else ""
        message = f"{got['task']['key']} is yours. When it is finished, call complete_task.\n\n{words.brief(got['task'])}{also}"
        return Reply(message, {"task": words.task(got["task"]), "message": message})

    def _complete_task(self, given: dict[str, Any], call: Call) -> Reply:
        task = self._must(given.get("task"))
        found = self.desk.complete(task, given["summary"], proof=self._proof(task), key=call.key("complete"))
        return self._moved(found)

    def _flag_task(self, given: dict[str, Any], call: Call) -> Reply:
        task = self._must(given.pop("task", None))
        return self._moved(self.desk.flag(task, **given, claim=self._proof(task), key=call.key("flag")), "End your turn.")

    def _decompose_task(self, given: dict[str, Any], call: Call) -> Reply:
        task = self._must(given.get("task"))
        return self._moved(self.desk.decompose(task, given["children"], proof=self._proof(task)), "End your turn.")

    def _release_task(self, given: dict[str, Any], call: Call) -> Reply:
        task = self._must(given.get("task"))
        return self._moved(self.desk.release(task, given["reason"], proof=self._proof(task)))

    def _add_note(self, given: dict[str, Any], call: Call) -> Reply:
        return self._moved(self.desk.note(self._must(given.get("task")), given["text"], key=call.key("note")), "Written down.")

    def _get_task(self, given: dict[str, Any], call: Call) -> Reply:
        task = self._must(given.get("task"))
        found = self.desk.show(task)
        if "key" not in found:  # a question has that name
            raise NotFound(f"There is no task {task}", hint="To look at a question, use get_answer.")
        message = f"{words.whereabouts(found, found['key'] in self._held)}\n\n{words.brief(found)}"
        return Reply(message, {"task": words.task(found), "message": message})

    # --- what they share --------------------------------------------------------------------------------------------

    def _ask(self, task: str | None, call: Call, **fields: Any) -> dict[str, Any]:
        """Ask about a task; outside any, about one that is made for it."""
        task = self._task(task)
        if task is None:
            task = self._own_task(fields["text"], call)
        key = call.key("ask")
        return self.desk.ask(task, claim=self._proof(task), key=key, **fields)

    def _own_task(self, text: str, call: Call) -> str:
        who = self.desk.who.name.partition(":")[2]
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        title = f"{who} asks: {line}"
        made = self.desk.create(title if len(title) <= 120 else title[:119] + "…", description=text, key=call.key("task"))
        with suppress(YourturnError):  # somebody was faster, or a person has to vet it first: then without a claim
            self._keep(self.desk.claim(made["key"], self.worker), own=True)
        return str(made["key"])

    def _question(self, name: str) -> dict[str, Any]:
        found = self.desk.show(name)
        if "status" not in found:
            raise NotFound(f"There is no question {name[:40]}", hint="A question is named like Q7.")
        return found

    def standing(self, reply: Reply) -> Reply:
        """The same reply, as its question stands now."""
        assert reply.question is not None
        return self._standing(self._question(reply.question), 0.0)._replace(gate=reply.gate)

    def _standing(self, q: dict[str, Any], seconds: float) -> Reply:
        data = words.standing(q)
        wait = seconds > 0 and q["status"] == "pending"
        if not wait:
            self._handed_out(q)
        return Reply(data["message"], data, q["id"] if wait else None, seconds)

    def _handed_out(self, q: dict[str, Any]) -> None:
        """How a question ended has been told: the task that was made for it is finished."""
        if q["status"] == "pending":
            return
        with self._lock:
            self._assumed.discard(q["id"])
            held = self._held.get(q["task"])
        if held is not None and held.own:
            with suppress(YourturnError):
                self.desk.complete(held.token, words.told(q))
            with self._lock:
                self._held.pop(q["task"], None)

    def _moved(self, task: dict[str, Any], then: str = "") -> Reply:
        self._settle(task)
        message = f"{words.whereabouts(task, task['key'] in self._held)} {then}".strip()
        return Reply(message, {"task": task["key"], "state": task["state"], "awaiting": task["awaiting"], "message": message})

    def news(self) -> list[str]:
        """What the agent has not heard yet: late answers to what it assumed, and claims that were lost."""
        with self._lock:
            found, self._lost = self._lost, []
            assumed = sorted(self._assumed)
        for name in assumed:
            with suppress(YourturnError):
                q = self._question(name)
                if q["status"] != "pending":
                    found.append(f"Meanwhile: {words.told(q)}")
                    self._handed_out(q)
        return found
