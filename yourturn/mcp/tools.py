"""Execution of the tools on the desk, without the protocol.

No tool waits. If a tool needs the answer of a person, its reply has a function `refresh`, which the server calls after each
change of the desk until the reply is final or the wait has timed out.

A permission is recorded as used, by the call that asked for it, before its reply allows the action: so it serves once.
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
from .session import AgentSession, require_task
from .tool_schemas import TOOLS

#: Prefix of the tools of this server, which need no permission.
_OWN_TOOLS = "mcp__yourturn__"
_END = "End your turn now; you will be resumed with the answer."
_REPEAT = "It may have been done. Call this tool again with the same arguments: it counts once."


class CallId(NamedTuple):
    """Identity of a call in the protocol. A call that is repeated after a resume has the same one."""

    session: str
    id: str


@dataclass(frozen=True)
class Reply:
    message: str
    data: dict[str, Any]
    refresh: Callable[[], Reply] | None = None  #: returns the current reply, while a person has not answered
    wait: float = 0.0  #: seconds to wait for a person
    asked: str = ""  #: the question or tool, for progress reports
    plain: bool = False  #: the text is the data as JSON


class Tools:
    def __init__(self, session: AgentSession) -> None:
        self.session = session
        self._lock = threading.RLock()
        self._unreported: set[str] = set()  #: non-blocking questions whose answers have not been reported
        self._unconfirmed: dict[str, CallId] = {}  #: ids of calls that may have been executed, by fingerprint
        self._questions: dict[str, str] = {}  #: questions whose answers have not been reported, by the fingerprint of their call

    def perform(self, name: str, arguments: dict[str, Any], call_id: CallId) -> Reply:
        """Execute a tool. Raises YourturnError."""
        tool = TOOLS.get(name)
        if tool is None:
            raise NotFound(f"There is no tool {name[:60]!a}", hint=f"There are: {', '.join(TOOLS)}.")
        fingerprint = json.dumps([call_id.session, name, arguments], sort_keys=True)
        with self._lock:
            call_id = self._unconfirmed.pop(fingerprint, call_id)
        try:
            reply: Reply = getattr(self, f"_{name}")(check(name, tool.schema, arguments), call_id)
        except MaybeDone as lost:
            with self._lock:
                self._unconfirmed[fingerprint] = call_id
            raise MaybeDone(lost.message, reason=lost.reason, hint=_REPEAT) from None
        return reply

    @property
    def desk(self) -> Client:
        return self.session.desk

    def call_id(self, session: object, name: object) -> CallId:
        """The identity of a call; a new one if the client names none."""
        session_id = session if is_id(session) else self.session.env.get("YOURTURN_SESSION")
        new_name = f"new-{os.urandom(12).hex()}"
        return CallId(str(session_id) if is_id(session_id) else "mcp", str(name) if is_id(name) else new_name)

    # --- questions --------------------------------------------------------------------------------------------------

    def _ask_question(self, arguments: dict[str, Any], call_id: CallId) -> Reply:
        fingerprint = json.dumps([call_id.session, self.session.current_task(arguments.get("task")), arguments], sort_keys=True)
        with self._lock:
            before = self._questions.get(fingerprint)
        if before:  # the same question again: do not ask the person twice
            q = self._question(before)
        else:
            q = self._ask(arguments.get("task"), call_id, question_fields(arguments), identity_of(*call_id))
        with self._lock:
            self._questions[fingerprint] = q["id"]
        if not q["blocking"] and q["status"] == "pending":
            with self._lock:
                self._unreported.add(q["id"])
        return self._reply(q, ask_wait(self.session.env) if q["blocking"] else 0.0)

    def _request_permission(self, arguments: dict[str, Any], call_id: CallId) -> Reply:
        minutes = arguments.get("timeout_minutes")
        tool_call = permission_gate.ToolCall(*call_id, arguments["tool"], arguments["input"], self.session.folder)
        fields = {
            "text": arguments.get("reason") or permission_gate.describe(tool_call),
            "kind": "permission",
            "action": tool_call.action,
            "timeout": None if minutes is None else minutes * 60,
        }
        names = identity_of(*call_id)
        names["metadata"]["tool"] = "request_permission"
        return self._reply(self._ask(arguments.get("task"), call_id, fields, names), ask_wait(self.session.env))

    def _get_answer(self, arguments: dict[str, Any], call_id: CallId) -> Reply:
        return self._reply(self._question(arguments["question_id"]), float(arguments.get("wait_seconds", 0.0)))

    def _ask(self, task: str | None, call_id: CallId, fields: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
        """Ask about the task. Without a task, create one for the question."""
        task = self.session.current_task(task)
        if task is None:
            self.desk.check_question(**fields)  # a question that is refused must not leave a task behind
            task = self.session.create_own_task(fields["text"], f"{names['key']}/task")
        proof = self.session.claim_token(task)
        return self.desk.ask(task, claim=proof, step=step_of(self.session.env, proof), **fields, **names)

    def _question(self, name: str) -> dict[str, Any]:
        question = self.desk.show(name)
        if "status" not in question:
            raise NotFound(f"There is no question {name[:40]}", hint="A question is named like Q7.")
        return question

    def _reply(self, q: dict[str, Any], wait: float = 0.0) -> Reply:
        if q["status"] == "pending":
            data = result_text.question_status(q)
            return Reply(data["message"], data, partial(self._refreshed, q["id"]), wait, q["id"])
        data = result_text.question_status(self._with_use(q))
        with self._lock:
            self._unreported.discard(q["id"])
            self._questions = {call: name for call, name in self._questions.items() if name != q["id"]}
        self.session.complete_own_task(q["task"], data["message"])
        return Reply(data["message"], data)

    def _refreshed(self, name: str) -> Reply:
        return self._reply(self._question(name))

    def _with_use(self, q: dict[str, Any]) -> dict[str, Any]:
        """The question; a permission that request_permission asked for is recorded as used first."""
        metadata = q["metadata"] or {}
        response = q["response"] or {}
        if (
            metadata.get("tool") != "request_permission"
            or response.get("verdict") != "approved"
            or q["asked_by"] != self.desk.who.name
        ):
            return q
        by = f"{metadata['session']}/{metadata['call']}"
        if q["used_by"] == by:
            return q
        edited = response["value"] if isinstance(response.get("value"), dict) else None
        return self.desk.use(q, by, edited or q["action"], claim=self.session.claim_token(q["task"]))

    # --- the permission prompt --------------------------------------------------------------------------------------

    def _approve(self, arguments: dict[str, Any], call_id: CallId) -> Reply:
        """Ask about any tool call of the host, like the permission hook."""
        name, tool_input = arguments["tool_name"], arguments["input"]
        if name.startswith(_OWN_TOOLS) and name.removeprefix(_OWN_TOOLS) in TOOLS:
            return _decision({"behavior": "allow", "updatedInput": tool_input})
        tool_call = permission_gate.ToolCall(
            *self.call_id(call_id.session, arguments.get("tool_use_id") or call_id.id), name, tool_input, self.session.folder
        )
        task = self.session.current_task(None)
        if task is None:
            task = self.session.create_own_task(permission_gate.describe(tool_call), f"hook/{tool_call.by}/task")
        token = self.session.claim_token(task)
        decision = self._earlier_permission(task, tool_call, token)
        if decision is not None:
            return decision
        env = {
            "YOURTURN_TASK": task, "YOURTURN_CLAIM": token or "", "YOURTURN_STEP": step_of(self.session.env, token) or "",
            "YOURTURN_ASK_WAIT": "0", "YOURTURN_GATED": '["*"]',
        }  # fmt: skip
        payload = {
            "session_id": tool_call.session,
            "tool_use_id": tool_call.id,
            "tool_name": name,
            "tool_input": tool_input,
            "cwd": tool_call.folder,
        }
        return self._permission_prompt(task, payload, env, ask_wait(self.session.env))

    def _permission_prompt(self, task: str, payload: dict[str, Any], env: dict[str, str], wait: float = 0.0) -> Reply:
        hook_output = permission_gate.hook(self.desk, payload, env)
        assert hook_output is not None, "YOURTURN_GATED covers every tool"
        output = hook_output["hookSpecificOutput"]
        decision, why = output["permissionDecision"], output["permissionDecisionReason"]
        if decision == "defer":
            refresh = partial(self._permission_prompt, task, payload, env)
            return _decision({"behavior": "deny", "message": f"{why} {_END}"}, refresh, wait, payload["tool_name"])
        self.session.complete_own_task(task, why)
        if decision == "allow":
            return _decision({"behavior": "allow", "updatedInput": output.get("updatedInput", payload["tool_input"])})
        return _decision({"behavior": "deny", "message": why})

    def _earlier_permission(self, task: str, tool_call: permission_gate.ToolCall, token: str | None) -> Reply | None:
        """The decision of an unused permission for exactly this action, asked by a call before the session was resumed."""
        for q in self.desk.show(task)["questions"]:
            metadata = q["metadata"] or {}
            approved = q["status"] == "answered" and q["kind"] == "permission" and q["response"]["verdict"] == "approved"
            if not approved or q["used_by"] or q["action"] != tool_call.action:
                continue
            if metadata.get("tool") or metadata.get("call") == tool_call.id:
                continue
            verdict = permission_gate.verdict(self.desk, tool_call, q, token)
            if verdict.what == "allow":
                return _decision({"behavior": "allow", "updatedInput": verdict.input or tool_call.input})
        return None

    # --- tasks ------------------------------------------------------------------------------------------------------

    def _next_task(self, arguments: dict[str, Any], call_id: CallId) -> Reply:
        if self.session.env.get("YOURTURN_CLAIM"):
            raise Precondition(
                f"This session was started for {self.session.env.get('YOURTURN_TASK', 'one task')}",
                reason="the worker that started it hands out the next one",
                hint="Finish it with complete_task, or hand it over with flag_task, then end your turn.",
            )
        self.session.heartbeat(all_claims=True)  # a claim may be lost since the last heartbeat
        others = self.session.claimed_tasks()
        claimed = self.desk.claim_next(self.session.worker, key=_key(call_id, "next"), **arguments)
        if claimed is None:
            return Reply("There is nothing to work on now.", {"task": None, "message": "There is nothing to work on now."})
        self.session.add_claim(claimed)
        also = f"\n\nYou also hold {', '.join(others)}." if others else ""
        task = self.desk.show(claimed["task"]["key"])  # with its notes and answers
        message = f"{task['key']} is yours. When it is finished, call complete_task.\n\n{result_text.brief(task)}{also}"
        return Reply(message, {"task": result_text.task(task), "message": message})

    def _get_task(self, arguments: dict[str, Any], call_id: CallId) -> Reply:
        name = require_task(self.session, arguments.get("task"))
        task = self.desk.show(name)
        if "key" not in task:  # the name of a question
            raise NotFound(f"There is no task {name}", hint="To look at a question, use get_answer.")
        self.session.update(task)
        message = f"{result_text.state_text(task, task['key'] in self.session.claimed_tasks())}\n\n{result_text.brief(task)}"
        return Reply(message, {"task": result_text.task(task), "message": message})

    def _report_progress(self, arguments: dict[str, Any], call_id: CallId) -> Reply:
        name = require_task(self.session, arguments.get("task"))
        percent = f" ({arguments['percent']:g} %)" if "percent" in arguments else ""
        task = self.desk.note(name, f"Progress{percent}: {arguments['message']}", key=_key(call_id, "progress"))
        with suppress(YourturnError):
            if token := self.session.claim_token(task["key"]):
                self.desk.heartbeat(token)
        return self._moved(task, "Progress is recorded. Go on.")

    def _add_note(self, arguments: dict[str, Any], call_id: CallId) -> Reply:
        task = require_task(self.session, arguments.get("task"))
        return self._moved(self.desk.note(task, arguments["text"], key=_key(call_id, "note")), "The note is added.")

    def _complete_task(self, arguments: dict[str, Any], call_id: CallId) -> Reply:
        task = require_task(self.session, arguments.pop("task", None))
        proof = self.session.claim_token(task)
        if step_of(self.session.env, proof):
            result = signal(self.session.env, "DONE", **arguments)
            message = "Your step is done. End your turn now: the script of the run goes on."
            return Reply(message, {"task": task, **result, "message": message})
        return self._moved(self.desk.complete(task, **arguments, proof=proof, key=_key(call_id, "complete")))

    def _flag_task(self, arguments: dict[str, Any], call_id: CallId) -> Reply:
        task = require_task(self.session, arguments.pop("task", None))
        proof = self.session.claim_token(task)
        step = step_of(self.session.env, proof)
        more: dict[str, Any] = {"step": step, "hold": True} if step else {}
        return self._moved(self.desk.flag(task, **arguments, **more, claim=proof, key=_key(call_id, "flag")), "End your turn.")

    def _decompose_task(self, arguments: dict[str, Any], call_id: CallId) -> Reply:
        task = require_task(self.session, arguments.get("task"))
        proof, key = self.session.claim_token(task), _key(call_id, "decompose")
        return self._moved(self.desk.decompose(task, arguments["children"], proof=proof, key=key), "End your turn.")

    def _release_task(self, arguments: dict[str, Any], call_id: CallId) -> Reply:
        task = require_task(self.session, arguments.get("task"))
        proof, key = self.session.claim_token(task), _key(call_id, "release")
        return self._moved(self.desk.release(task, arguments["reason"], proof=proof, key=key))

    def _moved(self, task: dict[str, Any], then: str = "") -> Reply:
        self.session.update(task)
        message = f"{result_text.state_text(task, task['key'] in self.session.claimed_tasks())} {then}".strip()
        return Reply(message, {"task": task["key"], "state": task["state"], "awaiting": task["awaiting"], "message": message})

    # --- news -------------------------------------------------------------------------------------------------------

    def news(self) -> list[tuple[str, str]]:
        """Messages that the agent has not received: late answers to non-blocking questions, by name, and lost claims."""
        with self._lock:
            names = sorted(self._unreported)
        news = [("", message) for message in self.session.take_lost_claims()]
        for name in names:
            with suppress(YourturnError):
                q = self._question(name)
                if q["status"] != "pending":
                    news.append((name, f"Meanwhile: {self._reply(q).message}"))
        return news


def _key(call_id: CallId, verb: str) -> str:
    return f"{identity_of(*call_id)['key']}/{verb}"


def _decision(data: dict[str, Any], refresh: Callable[[], Reply] | None = None, wait: float = 0.0, asked: str = "") -> Reply:
    return Reply(json.dumps(data), data, refresh, wait, asked, plain=True)
