"""What each tool says to the desk.

Nothing here knows the protocol, and nothing waits. Where a person has to be waited for, the reply can be asked `again`: whoever
called does so when something has changed, and stops when the reply is final or its time is over.

A permission is told as given only after it has been marked as used, by the call that asked for it: so it serves once.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ..client import Client
from ..core.errors import MaybeDone, NotFound, Precondition, YourturnError
from ..worker.claude import permission_gate
from ..worker.claude.hook_question import ask_wait, identity_of, is_id, question_fields, signal, step_of
from . import result_text
from .arguments import check
from .session import Session, require_task
from .tool_schemas import TOOLS

#: Our own tools ask, note and report: nobody has to be asked before they run.
_OURS = "mcp__yourturn__"
_END = "End your turn now; you will be resumed with the answer."
_MAYBE = "It may have been done. Call this tool again with the same arguments: it counts once."


class Call(NamedTuple):
    """What the protocol knows of a call: the same call, said again after a resume, has the same names."""

    session: str
    id: str


@dataclass(frozen=True)
class Reply:
    message: str
    data: dict[str, Any]
    again: Callable[[], Reply] | None = None  #: how it stands now, while it waits for a person
    wait: float = 0.0  #: for so many seconds
    asked: str = ""  #: for whom it waits, in words
    plain: bool = False  #: the data is the text


class Tools:
    def __init__(self, session: Session) -> None:
        self.session = session
        self._lock = threading.RLock()
        self._assumed: set[str] = set()  #: non-blocking questions whose answers are still to be told
        self._unsure: dict[str, Call] = {}  #: what was said and may have been done: said again it is the same call
        self._asked: dict[str, str] = {}  #: what was asked here, to the question whose answer is still to be told

    def perform(self, name: str, arguments: dict[str, Any], call: Call) -> Reply:
        """Do what a tool says. Raises YourturnError."""
        tool = TOOLS.get(name)
        if tool is None:
            raise NotFound(f"There is no tool {name[:60]!a}", hint=f"There are: {', '.join(TOOLS)}.")
        said = json.dumps([call.session, name, arguments], sort_keys=True)
        with self._lock:
            call = self._unsure.pop(said, call)
        try:
            reply: Reply = getattr(self, f"_{name}")(check(name, tool.schema, arguments), call)
        except MaybeDone as lost:
            with self._lock:
                self._unsure[said] = call
            raise MaybeDone(lost.message, reason=lost.reason, hint=_MAYBE) from None
        return reply

    @property
    def desk(self) -> Client:
        return self.session.desk

    def call(self, session: object, name: object) -> Call:
        """The names of a call, or new ones."""
        known = session if is_id(session) else self.session.env.get("YOURTURN_SESSION")
        return Call(str(known) if is_id(known) else "mcp", str(name) if is_id(name) else f"new-{os.urandom(12).hex()}")

    # --- questions --------------------------------------------------------------------------------------------------

    def _ask_question(self, given: dict[str, Any], call: Call) -> Reply:
        said = json.dumps([call.session, self.session.current_task(given.get("task")), given], sort_keys=True)
        with self._lock:
            before = self._asked.get(said)
        if before:  # asked again instead of looked up: nobody has to answer twice
            q = self._question(before)
        else:
            q = self._ask(given.get("task"), call, question_fields(given), identity_of(*call))
        with self._lock:
            self._asked[said] = q["id"]
        if not q["blocking"] and q["status"] == "pending":
            with self._lock:
                self._assumed.add(q["id"])
        return self._standing(q, ask_wait(self.session.env) if q["blocking"] else 0.0)

    def _request_permission(self, given: dict[str, Any], call: Call) -> Reply:
        minutes = given.get("timeout_minutes")
        asked = permission_gate.ToolCall(*call, given["tool"], given["input"], self.session.folder)
        fields = {
            "text": given.get("reason") or permission_gate.describe(asked),
            "kind": "permission",
            "action": asked.action,
            "timeout": None if minutes is None else minutes * 60,
        }
        names = identity_of(*call)
        names["metadata"]["tool"] = "request_permission"
        return self._standing(self._ask(given.get("task"), call, fields, names), ask_wait(self.session.env))

    def _get_answer(self, given: dict[str, Any], call: Call) -> Reply:
        return self._standing(self._question(given["question_id"]), float(given.get("wait_seconds", 0.0)))

    def _ask(self, task: str | None, call: Call, fields: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
        """Ask about a task; outside any, about one that is made for it."""
        task = self.session.current_task(task)
        if task is None:
            self.desk.check_question(**fields)  # what cannot be asked leaves no task behind
            task = self.session.create_own_task(fields["text"], f"{names['key']}/task")
        proof = self.session.claim_token(task)
        return self.desk.ask(task, claim=proof, step=step_of(self.session.env, proof), **fields, **names)

    def _question(self, name: str) -> dict[str, Any]:
        found = self.desk.show(name)
        if "status" not in found:
            raise NotFound(f"There is no question {name[:40]}", hint="A question is named like Q7.")
        return found

    def _standing(self, q: dict[str, Any], wait: float = 0.0) -> Reply:
        if q["status"] == "pending":
            data = result_text.standing(q)
            return Reply(data["message"], data, partial(self._once_more, q["id"]), wait, q["id"])
        data = result_text.standing(self._used(q))
        with self._lock:
            self._assumed.discard(q["id"])
            self._asked = {said: name for said, name in self._asked.items() if name != q["id"]}
        self.session.complete_own_task(q["task"], data["message"])
        return Reply(data["message"], data)

    def _once_more(self, name: str) -> Reply:
        return self._standing(self._question(name))

    def _used(self, q: dict[str, Any]) -> dict[str, Any]:
        """A permission that was asked for with request_permission is used when it is told."""
        said = q["metadata"] or {}
        response = q["response"] or {}
        if (
            said.get("tool") != "request_permission"
            or response.get("verdict") != "approved"
            or q["asked_by"] != self.desk.who.name
        ):
            return q
        by = f"{said['session']}/{said['call']}"
        if q["used_by"] == by:
            return q
        edited = response["value"] if isinstance(response.get("value"), dict) else None
        return self.desk.use(q, by, edited or q["action"], claim=self.session.claim_token(q["task"]))

    # --- the permission prompt --------------------------------------------------------------------------------------

    def _approve(self, given: dict[str, Any], call: Call) -> Reply:
        """Whatever the host wants to know: the gate asks as the hook would, about every tool."""
        name, given_input = given["tool_name"], given["input"]
        if name.startswith(_OURS) and name.removeprefix(_OURS) in TOOLS:
            return _decision({"behavior": "allow", "updatedInput": given_input})
        about = permission_gate.ToolCall(
            *self.call(call.session, given.get("tool_use_id") or call.id), name, given_input, self.session.folder
        )
        task = self.session.current_task(None)
        if task is None:
            task = self.session.create_own_task(permission_gate.describe(about), f"hook/{about.by}/task")
        token = self.session.claim_token(task)
        granted = self._granted(task, about, token)
        if granted is not None:
            return granted
        env = {
            "YOURTURN_TASK": task, "YOURTURN_CLAIM": token or "", "YOURTURN_STEP": step_of(self.session.env, token) or "",
            "YOURTURN_ASK_WAIT": "0", "YOURTURN_GATED": '["*"]',
        }  # fmt: skip
        payload = {
            "session_id": about.session,
            "tool_use_id": about.id,
            "tool_name": name,
            "tool_input": given_input,
            "cwd": about.folder,
        }
        return self._prompted(task, payload, env, ask_wait(self.session.env))

    def _prompted(self, task: str, payload: dict[str, Any], env: dict[str, str], wait: float = 0.0) -> Reply:
        said = permission_gate.hook(self.desk, payload, env)
        assert said is not None, "every tool is gated here"
        found = said["hookSpecificOutput"]
        what, why = found["permissionDecision"], found["permissionDecisionReason"]
        if what == "defer":
            again = partial(self._prompted, task, payload, env)
            return _decision({"behavior": "deny", "message": f"{why} {_END}"}, again, wait, payload["tool_name"])
        self.session.complete_own_task(task, why)
        if what == "allow":
            return _decision({"behavior": "allow", "updatedInput": found.get("updatedInput", payload["tool_input"])})
        return _decision({"behavior": "deny", "message": why})

    def _granted(self, task: str, about: permission_gate.ToolCall, token: str | None) -> Reply | None:
        """A permission for exactly this that nobody has used: asked before the session was resumed, for a call that is gone."""
        for q in self.desk.show(task)["questions"]:
            said = q["metadata"] or {}
            yes = q["status"] == "answered" and q["kind"] == "permission" and q["response"]["verdict"] == "approved"
            if not yes or q["used_by"] or q["action"] != about.action or said.get("tool") or said.get("call") == about.id:
                continue
            found = permission_gate.verdict(self.desk, about, q, token)
            if found.what == "allow":
                return _decision({"behavior": "allow", "updatedInput": found.input or about.input})
        return None

    # --- tasks ------------------------------------------------------------------------------------------------------

    def _next_task(self, given: dict[str, Any], call: Call) -> Reply:
        if self.session.env.get("YOURTURN_CLAIM"):
            raise Precondition(
                f"This session was started for {self.session.env.get('YOURTURN_TASK', 'one task')}",
                reason="the worker that started it hands out the next one",
                hint="Finish it with complete_task, or hand it over with flag_task, then end your turn.",
            )
        self.session.heartbeat(all_claims=True)  # a claim may be lost since the last heartbeat
        others = self.session.claimed_tasks()
        got = self.desk.claim_next(self.session.worker, key=_key(call, "next"), **given)
        if got is None:
            return Reply("There is nothing to work on now.", {"task": None, "message": "There is nothing to work on now."})
        self.session.add_claim(got)
        also = f"\n\nYou also hold {', '.join(others)}." if others else ""
        task = self.desk.show(got["task"]["key"])  # with its notes and answers
        message = f"{task['key']} is yours. When it is finished, call complete_task.\n\n{result_text.brief(task)}{also}"
        return Reply(message, {"task": result_text.task(task), "message": message})

    def _get_task(self, given: dict[str, Any], call: Call) -> Reply:
        task = require_task(self.session, given.get("task"))
        found = self.desk.show(task)
        if "key" not in found:  # a question has that name
            raise NotFound(f"There is no task {task}", hint="To look at a question, use get_answer.")
        self.session.update(found)
        message = f"{result_text.whereabouts(found, found['key'] in self.session.claimed_tasks())}\n\n{result_text.brief(found)}"
        return Reply(message, {"task": result_text.task(found), "message": message})

    def _report_progress(self, given: dict[str, Any], call: Call) -> Reply:
        task = require_task(self.session, given.get("task"))
        far = f" ({given['percent']:g} %)" if "percent" in given else ""
        found = self.desk.note(task, f"Progress{far}: {given['message']}", key=_key(call, "progress"))
        with suppress(YourturnError):
            if token := self.session.claim_token(found["key"]):
                self.desk.heartbeat(token)
        return self._moved(found, "Noted. Go on.")

    def _add_note(self, given: dict[str, Any], call: Call) -> Reply:
        task = require_task(self.session, given.get("task"))
        return self._moved(self.desk.note(task, given["text"], key=_key(call, "note")), "Written down.")

    def _complete_task(self, given: dict[str, Any], call: Call) -> Reply:
        task = require_task(self.session, given.pop("task", None))
        proof = self.session.claim_token(task)
        if step_of(self.session.env, proof):
            said = signal(self.session.env, "DONE", **given)
            message = "Your step is done. End your turn now: the script of the run goes on."
            return Reply(message, {"task": task, **said, "message": message})
        return self._moved(self.desk.complete(task, **given, proof=proof, key=_key(call, "complete")))

    def _flag_task(self, given: dict[str, Any], call: Call) -> Reply:
        task = require_task(self.session, given.pop("task", None))
        proof = self.session.claim_token(task)
        step = step_of(self.session.env, proof)
        more: dict[str, Any] = {"step": step, "hold": True} if step else {}
        return self._moved(self.desk.flag(task, **given, **more, claim=proof, key=_key(call, "flag")), "End your turn.")

    def _decompose_task(self, given: dict[str, Any], call: Call) -> Reply:
        task = require_task(self.session, given.get("task"))
        proof, key = self.session.claim_token(task), _key(call, "decompose")
        return self._moved(self.desk.decompose(task, given["children"], proof=proof, key=key), "End your turn.")

    def _release_task(self, given: dict[str, Any], call: Call) -> Reply:
        task = require_task(self.session, given.get("task"))
        proof, key = self.session.claim_token(task), _key(call, "release")
        return self._moved(self.desk.release(task, given["reason"], proof=proof, key=key))

    def _moved(self, task: dict[str, Any], then: str = "") -> Reply:
        self.session.update(task)
        message = f"{result_text.whereabouts(task, task['key'] in self.session.claimed_tasks())} {then}".strip()
        return Reply(message, {"task": task["key"], "state": task["state"], "awaiting": task["awaiting"], "message": message})

    # --- what was missed --------------------------------------------------------------------------------------------

    def news(self) -> list[tuple[str, str]]:
        """What the agent has not heard yet: late answers to what it assumed, by name, and claims that were lost."""
        with self._lock:
            assumed = sorted(self._assumed)
        found = [("", words) for words in self.session.take_lost_claims()]
        for name in assumed:
            with suppress(YourturnError):
                q = self._question(name)
                if q["status"] != "pending":
                    found.append((name, f"Meanwhile: {self._standing(q).message}"))
        return found


def _key(call: Call, verb: str) -> str:
    return f"{identity_of(*call)['key']}/{verb}"


def _decision(data: dict[str, Any], again: Callable[[], Reply] | None = None, wait: float = 0.0, asked: str = "") -> Reply:
    return Reply(json.dumps(data), data, again, wait, asked, plain=True)
