"""The permission gate of Claude Code: tool calls that wait for a person.

Claude Code runs a hook before each gated tool call. The hook returns a decision: allow, deny, or defer, which ends the process
and keeps the call for later. The hook waits a moment for an answer, then defers, and the session is parked until the answer is
there. When the session is resumed, the same call comes to the hook again, with the same ids, and gets the same question and its
answer.

    AskUserQuestion     a group of questions, answered together
    ExitPlanMode        a checkpoint, with the plan
    ask_question        our own tool: it may run after the answer, and returns it
    gated tools         a permission for exactly this input in this folder, used once, by this call

Only an approval allows a call. A timeout, a withdrawn question and every error deny it, with the reason.

A parked session is resumed without a prompt, so what else people said meanwhile comes with the decision about its call, as
`additionalContext`. The worker passes it in YOURTURN_NEWS, and counts it as read once the session goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...client import Client
from ...core.errors import AlreadyClosed, IllegalMove, Invalid, KeyReused, NotAllowed, YourturnError
from . import hook_question
from .hook_socket import Handle
from .hook_socket import serve as serve
from .patterns import ASK, PLAN, QUESTIONS, concerns, deny, gated, output

if TYPE_CHECKING:
    from ..agents.base import ToolResult

Question = dict[str, Any]


class ToolCall(NamedTuple):
    """A tool call from the payload of a hook."""

    session: str
    id: str
    tool: str
    input: dict[str, Any]
    folder: str

    @property
    def by(self) -> str:
        return f"{self.session}/{self.id}"

    @property
    def action(self) -> dict[str, Any]:
        """What a permission covers: exactly this."""
        return {"tool": self.tool, "input": self.input, "folder": self.folder}


class AskContext(NamedTuple):
    """The task that a call asks about, the proof of its claim, and how long it waits."""

    task: str
    claim: str | None
    wait: float
    step: str | None = None  #: the step of a run that asks

    @property
    def proof(self) -> dict[str, Any]:
        return {"claim": self.claim, "step": self.step}


class HookDecision(NamedTuple):
    """The hook's output, and the questions whose outcome it reports."""

    output: dict[str, Any]
    tells: Sequence[Question] = ()


class PermissionVerdict(NamedTuple):
    """The state of a permission: `allow`, `deny`, or `wait` while it is open."""

    what: str
    words: str
    input: dict[str, Any] | None = None  #: the input as a person edited it


# --- the hook ---------------------------------------------------------------------------------------------------------


def connect_as_agent(env: Mapping[str, str]) -> Client:
    """The desk as an agent: a hook never acts for a person, also if a person started it."""
    from ...config import connect

    identity = env.get("YOURTURN_TOKEN") or env.get("YOURTURN_AGENT")
    return as_agent(connect(as_=None if identity else "agent:claude", env=env))


def as_agent(client: Client) -> Client:
    return client.as_(client.who.as_agent()) if client.who.is_person else client


def handler(client: Client, env: Mapping[str, str]) -> Handle:
    """The handler of the socket for one agent, which has this environment."""
    agent = as_agent(client)
    return lambda payload: hook(agent, payload, env)


def hook(client: Client, payload: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any] | None:
    """The hook's output for a PreToolUse payload; None leaves the call to Claude Code's own rules."""
    patterns = gated(env.get("YOURTURN_GATED"))
    if payload.get("hook_event_name", "PreToolUse") != "PreToolUse":
        return None
    if not concerns(payload.get("tool_name"), payload.get("tool_input"), patterns):
        return None
    try:
        if patterns is None:
            raise Invalid("YOURTURN_GATED cannot be read", hint='It is a JSON list, like ["Bash(git push*)", "Write"].')
        call = parse_call(payload)
        decision = _DECIDES.get(call.tool, _permission)(client, call, env)
    except YourturnError as error:
        decision = HookDecision(deny(error_text(error)))
    return _with_news(decision, payload.get("tool_use_id"), env)


def news(task: Mapping[str, Any], items: Iterable[tuple[str, str]]) -> str:
    """YOURTURN_NEWS: the news for a parked session, as [question or '', the call that asked it or '', text]."""
    calls = {q["id"]: str((q["metadata"] or {}).get("call") or "") for q in task["questions"]}
    return json.dumps([[name, calls.get(name, ""), text] for name, text in items], ensure_ascii=False)


def _with_news(decision: HookDecision, call: object, env: Mapping[str, str]) -> dict[str, Any]:
    """Add the news to the decision about the parked call, and to no other."""
    result = decision.output["hookSpecificOutput"]
    try:
        news = [(str(name), asked, str(words)) for name, asked, words in json.loads(env.get("YOURTURN_NEWS") or "[]")]
    except (ValueError, TypeError, RecursionError):
        news = []
    reported = {q["id"] for q in decision.tells}
    words = [words for name, _, words in news if name not in reported]
    if result["permissionDecision"] != "defer" and words and any(asked and asked == call for _, asked, _ in news):
        result["additionalContext"] = "\n\n".join(["While you waited, people said:", *words])
    return decision.output


def error_text(error: YourturnError) -> str:
    """Why the question could not be asked, for the agent."""
    if isinstance(error, KeyReused):
        return "This call was already put to a person with other words or another input. Make a new call for what you want now."
    return f"This was not allowed, because no person could be asked: {error}. {error.hint}".strip()


def parse_call(payload: Mapping[str, Any]) -> ToolCall:
    session, call, name = payload.get("session_id"), payload.get("tool_use_id"), payload.get("tool_name")
    tool_input, folder = payload.get("tool_input"), payload.get("cwd")
    if not hook_question.is_id(session) or not hook_question.is_id(call):
        raise Invalid("The call has no session_id and tool_use_id", reason="without them its answer would not be found again")
    if not isinstance(name, str) or not name or not isinstance(tool_input, dict):
        raise Invalid("The call has no tool_name and tool_input")
    return ToolCall(str(session), str(call), name, tool_input, str(folder or ""))


def _context_of(client: Client, call: ToolCall, env: Mapping[str, str]) -> AskContext:
    """The worker's task; without a worker, a draft task for the session, which no worker takes."""
    wait = hook_question.ask_wait(env)
    task = env.get("YOURTURN_TASK")
    if not task:
        where = call.folder.rstrip("/").rpartition("/")[2] or "a folder"
        title = "".join(c if c.isprintable() else " " for c in f"Claude Code in {where[:100]}, session {call.session[:8]}")
        draft = client.create(title, draft=True, key=f"hook/{call.session}/task")
        return AskContext(draft["key"], None, wait)
    token = env.get("YOURTURN_CLAIM") or None
    claim = token if token and client.claim_is_for(token, task) else None
    return AskContext(task, claim, wait, hook_question.step_of(env, claim))


# --- questions --------------------------------------------------------------------------------------------------------


def _ask_user_question(client: Client, call: ToolCall, env: Mapping[str, str]) -> HookDecision:
    given = call.input.get("questions")
    if (
        not isinstance(given, list)
        or not given
        or not all(isinstance(q, dict) and isinstance(q.get("question"), str) for q in given)
    ):
        raise Invalid("AskUserQuestion came without questions")
    context = _context_of(client, call, env)
    questions = []
    for n, q in enumerate(given):
        identity = hook_question.identity_of(call.session, call.id, n)
        identity["metadata"] |= {"n": n + 1, "of": len(given)}
        identity["context"] = {"header": str(q["header"])} if q.get("header") else None
        questions.append(
            client.ask(
                context.task, q["question"], "input", _options(q.get("options")), response_type="choice", allow_other=True,
                multi=bool(q.get("multiSelect")), group=f"hook/{call.id}",
                **context.proof, **identity,
            )
        )  # fmt: skip
    questions = wait_for(client, questions, context.wait)
    refused = [q for q in questions if q["status"] != "pending" and not _is_approved(q)]
    if refused:  # a no to one question withdraws the others, so the no is reported
        first = min(refused, key=lambda q: hook_question.CLOSED.index(q["status"]))
        return HookDecision(deny(_refusal(first)), [first])
    if any(q["status"] == "pending" for q in questions):
        return _deferred(questions)
    answers = {q["text"]: _answer(q) for q in questions}
    return HookDecision(output("allow", f"{_responder(questions[0])} answered.", {**call.input, "answers": answers}), questions)


def _options(options: Any) -> list[dict[str, Any]]:
    """Options whose value is the label, which Claude Code expects in the answer; people type the id."""
    offered = [item for item in options or () if isinstance(item, dict) and isinstance(item.get("label"), str) and item["label"]]
    lines = [" ".join("".join(c if c.isprintable() else " " for c in item["label"]).split()) for item in offered]
    plain = all(line and len(line) <= 100 for line in lines) and len(set(lines)) == len(lines)
    return [
        {
            "id": line if plain else str(n), "label": line[:300] or str(n), "value": item["label"],
            "description": str(item.get("description") or ""),
        }
        for n, (item, line) in enumerate(zip(offered, lines, strict=True), 1)
    ]  # fmt: skip


def _answer(q: Question) -> str:
    value, words = q["response"]["value"], q["response"]["text"]
    answer = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{answer} ({words})" if words and words != answer else answer


def _exit_plan(client: Client, call: ToolCall, env: Mapping[str, str]) -> HookDecision:
    context = _context_of(client, call, env)
    text = "Should the work go on by this plan?"
    identity = hook_question.identity_of(call.session, call.id)
    q = client.ask(context.task, text, "checkpoint", context=call.input or None, **context.proof, **identity)
    q = wait_for(client, [q], context.wait)[0]
    if q["status"] == "pending":
        return _deferred([q])
    return HookDecision(output("allow", _approval(q)) if _is_approved(q) else deny(_refusal(q)), [q] if _says_all(q) else [])


def _own_question(client: Client, call: ToolCall, env: Mapping[str, str]) -> HookDecision:
    """Our own tool. It asks by itself if no worker would resume the session, or if the question does not block."""
    fields = hook_question.question_fields(call.input)
    if not env.get("YOURTURN_TASK") or call.input.get("task") or not fields["blocking"]:
        return HookDecision(output("allow", "Asking is always allowed."))
    context = _context_of(client, call, env)
    q = client.ask(context.task, **context.proof, **fields, **hook_question.identity_of(call.session, call.id))
    q = wait_for(client, [q], context.wait)[0]
    if q["status"] == "pending":
        return _deferred([q])
    return HookDecision(output("allow", f"{q['id']} has an end; the tool tells which."), [q])


def _deferred(questions: list[Question]) -> HookDecision:
    names = ", ".join(q["id"] for q in questions if q["status"] == "pending")
    return HookDecision(output("defer", f"A person was asked ({names})."))


# --- permissions ------------------------------------------------------------------------------------------------------


def _permission(client: Client, call: ToolCall, env: Mapping[str, str]) -> HookDecision:
    context = _context_of(client, call, env)
    q = wait_for(client, [ask_permission(client, call, context)], context.wait)[0]
    result = verdict(client, call, q, context.claim)
    if result.what == "wait":
        return _deferred([q])
    return HookDecision(output(result.what, result.words, result.input), [q] if result.what == "deny" or _says_all(q) else [])


#: The functions for tools that are questions themselves. All other tools need a permission.
_DECIDES = {QUESTIONS: _ask_user_question, PLAN: _exit_plan, ASK: _own_question}


def ask_permission(client: Client, call: ToolCall, context: AskContext) -> Question:
    """The question for this call, which may exist already."""
    identity = hook_question.identity_of(call.session, call.id)
    return client.ask(context.task, describe(call), "permission", action=call.action, **context.proof, **identity)


def verdict(client: Client, call: ToolCall, q: Question, claim: str | None) -> PermissionVerdict:
    """The state of the permission for a call. `allow` uses it up: it is for this call only."""
    if q["status"] == "pending":
        return PermissionVerdict("wait", f"{q['id']} waits for a person.")
    if not _is_approved(q):
        return PermissionVerdict("deny", _refusal(q))
    value = q["response"]["value"]
    edited = value if isinstance(value, dict) else None
    try:
        client.use(q, call.by, edited or call.action, claim=claim)
    except YourturnError as error:
        return PermissionVerdict("deny", f"This was allowed, but not any more: {error}")
    if edited:
        return PermissionVerdict("allow", f"{_approval(q)} The input was changed by them.", edited["input"])
    return PermissionVerdict("allow", _approval(q))


def describe(call: ToolCall) -> str:
    """What the call will do, as a text. The question has the exact input as its action."""
    fields = call.input
    if isinstance(fields.get("command"), str):
        return f"Run this in {call.folder or 'its folder'}?\n{_cut(fields['command'])}"
    path = next((fields[name] for name in ("file_path", "notebook_path") if isinstance(fields.get(name), str)), None)
    if path is not None:
        verb = {"Write": "Write", "Read": "Read"}.get(call.tool, "Change")
        size = f" ({len(fields['content']):,} characters)" if isinstance(fields.get("content"), str) else ""
        return f"{verb} {_cut(path)}{size}?"
    if isinstance(fields.get("url"), str):
        return f"Let {_cut(call.tool)} go to {_cut(fields['url'])}?"
    return f"Let {_cut(call.tool)} run with this input?"


def _cut(text: str) -> str:
    return text if len(text) <= 2000 else f"{text[:2000]} … ({len(text) - 2000:,} more characters; all of them stand below)"


def withdraw_superseded(
    client: Client, questions: Iterable[Question], reason: str, *, claim: str | None = None
) -> list[Question]:
    """Withdraw the questions of calls that the session has dropped. A question that only a person may withdraw gets a note."""
    withdrawn = []
    for q in questions:
        try:
            withdrawn.append(client.withdraw(q, reason, claim=claim))
        except (AlreadyClosed, IllegalMove):
            continue
        except NotAllowed:
            client.note(q["task"], f"{q['id']} is not needed any more: {reason}")
    return withdrawn


def questions_of_calls(client: Client, task: str, session: str, calls: Iterable[str]) -> list[Question]:
    """The questions of these calls of a session."""
    ids = set(calls)
    pairs = [(q, q["metadata"] or {}) for q in client.show(task)["questions"]]
    return [q for q, metadata in pairs if metadata.get("session") == session and metadata.get("call") in ids]


def tells(q: Question, result: ToolResult) -> bool:
    """True if the result of a call told the session how its question was closed."""
    by_tool = "tool" in (q["metadata"] or {})
    by_hook = q["kind"] == "checkpoint" or q["group"] == f"hook/{result.id}" or (q["action"] is not None and not by_tool)
    if q["status"] == "pending" or not by_hook:
        return False
    return _refusal(q)[:200] in result.text if result.error else _is_approved(q) and (q["group"] is not None or _says_all(q))


def _says_all(q: Question) -> bool:
    """True if the decision alone tells the answer. The model sees the reason of a denial, not the text or edit of an approval."""
    response = q["response"] or {}
    return not _is_approved(q) or not (str(response.get("text") or "").strip() or isinstance(response.get("value"), dict))


# --- what they share --------------------------------------------------------------------------------------------------


def wait_for(client: Client, questions: list[Question], seconds: float) -> list[Question]:
    """The same questions, when all are closed or the time is up."""
    ends = time.monotonic() + seconds
    current = []
    for q in questions:
        if q["status"] == "pending":
            q = client.wait_for(q, max(0.0, ends - time.monotonic()))
        current.append(q)
    return current


def _is_approved(q: Question) -> bool:
    return bool(q["status"] == "answered" and q["response"]["verdict"] == "approved")


def _responder(q: Question) -> str:
    return str(q["responded_by"] or "somebody").partition(":")[2] or "somebody"


def _approval(q: Question) -> str:
    words = str(q["response"]["text"]).strip()
    return f"{_responder(q)} said yes to {q['id']}: {words}" if words else f"{_responder(q)} said yes to {q['id']}."


def _refusal(q: Question) -> str:
    """Why a closed question allows nothing. A timeout is not reported as a no."""
    if q["status"] == "timeout":
        return (
            f"Nobody answered {q['id']} in time. Nobody refused it either, but it is not allowed: end your turn, or do without."
        )
    if q["status"] == "cancelled":
        return f"{q['id']} was cancelled without an answer ({q['close_reason']}), so it is not allowed."
    words = str((q["response"] or {}).get("text") or "").strip()
    return f"{_responder(q)} said no to {q['id']}{': ' + words if words else '.'}"
