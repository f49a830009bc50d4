"""The gate: what Claude Code wants to do waits here for a person.

Claude Code runs a hook before each tool call that is gated, and does what it says: allow, deny, or defer, which ends the
process and keeps the call for later. So nobody waits in front of a machine: the hook looks for a quick person for a moment,
then defers, and the session sleeps until the answer is there. When it is resumed the same call comes to the hook again, with the
same ids. It finds the same question, and now its answer.

    AskUserQuestion     a group of questions; all are waited for together
    ExitPlanMode        a checkpoint, with the plan
    ask_question        our own tool: once there is an answer it may run, and finds it under the same name
    gated tools         a permission for exactly this input in this folder, used once, by this call

Nobody's silence allows anything, and nothing that goes wrong here does: trouble is a deny, with words.

A parked session is woken without a prompt, so all else that people said while it waited comes with the decision about its
call, as `additionalContext`. The worker names it in YOURTURN_NEWS, and counts it as told once the session goes on.
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


class Call(NamedTuple):
    """One tool call, as Claude Code tells of it."""

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
        """What a permission is for: all of it, and nothing else."""
        return {"tool": self.tool, "input": self.input, "folder": self.folder}


class Place(NamedTuple):
    """Where a call asks: about which task, as its holder or not, and how long it waits."""

    task: str
    claim: str | None
    wait: float
    step: str | None = None  #: of a run, that asks

    @property
    def proof(self) -> dict[str, Any]:
        return {"claim": self.claim, "step": self.step}


class Decision(NamedTuple):
    """What the hook prints, and the questions whose end it tells by that."""

    output: dict[str, Any]
    tells: Sequence[Question] = ()


class Verdict(NamedTuple):
    """How a permission stands: `allow`, `deny`, or `wait` while it is open."""

    what: str
    words: str
    input: dict[str, Any] | None = None  #: instead of what was asked for, if a person edited it


# --- the hook ---------------------------------------------------------------------------------------------------------


def sit(env: Mapping[str, str]) -> Client:
    """The desk, as an agent: whoever started this, a hook never speaks for a person."""
    from ...config import connect

    named = env.get("YOURTURN_TOKEN") or env.get("YOURTURN_AGENT")
    return as_agent(connect(as_=None if named else "agent:claude", env=env))


def as_agent(client: Client) -> Client:
    return client.as_(client.who.as_agent()) if client.who.is_person else client


def handler(client: Client, env: Mapping[str, str]) -> Handle:
    """For `serve`: hooks of the one agent that was started with this environment."""
    mine = as_agent(client)
    return lambda payload: hook(mine, payload, env)


def hook(client: Client, payload: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any] | None:
    """What the hook prints for a PreToolUse payload; None leaves the call to Claude Code's own rules."""
    patterns = gated(env.get("YOURTURN_GATED"))
    if payload.get("hook_event_name", "PreToolUse") != "PreToolUse":
        return None
    if not concerns(payload.get("tool_name"), payload.get("tool_input"), patterns):
        return None
    try:
        if patterns is None:
            raise Invalid("YOURTURN_GATED cannot be read", hint='It is a JSON list, like ["Bash(git push*)", "Write"].')
        call = read(payload)
        found = _DECIDES.get(call.tool, _permission)(client, call, env)
    except YourturnError as error:
        found = Decision(deny(trouble(error)))
    return _with_news(found, payload.get("tool_use_id"), env)


def news(task: Mapping[str, Any], words: Iterable[tuple[str, str]]) -> str:
    """YOURTURN_NEWS: what a parked session has to hear, as [question or '', the call that asked it or '', words]."""
    calls = {q["id"]: str((q["metadata"] or {}).get("call") or "") for q in task["questions"]}
    return json.dumps([[name, calls.get(name, ""), said] for name, said in words], ensure_ascii=False)


def _with_news(found: Decision, call: object, env: Mapping[str, str]) -> dict[str, Any]:
    """To the call that the session was parked with, and to no other: its answer is among the news."""
    said = found.output["hookSpecificOutput"]
    try:
        waiting = [(str(name), asked, str(words)) for name, asked, words in json.loads(env.get("YOURTURN_NEWS") or "[]")]
    except (ValueError, TypeError, RecursionError):
        waiting = []
    told = {q["id"] for q in found.tells}
    words = [words for name, _, words in waiting if name not in told]
    if said["permissionDecision"] != "defer" and words and any(asked and asked == call for _, asked, _ in waiting):
        said["additionalContext"] = "\n\n".join(["While you waited, people said:", *words])
    return found.output


def trouble(error: YourturnError) -> str:
    """Why nobody could be asked, for the agent."""
    if isinstance(error, KeyReused):
        return "This call was already put to a person with other words or another input. Make a new call for what you want now."
    return f"This was not allowed, because no person could be asked: {error}. {error.hint}".strip()


def read(payload: Mapping[str, Any]) -> Call:
    session, call, name = payload.get("session_id"), payload.get("tool_use_id"), payload.get("tool_name")
    given, folder = payload.get("tool_input"), payload.get("cwd")
    if not hook_question.is_id(session) or not hook_question.is_id(call):
        raise Invalid("The call has no session_id and tool_use_id", reason="without them its answer would not be found again")
    if not isinstance(name, str) or not name or not isinstance(given, dict):
        raise Invalid("The call has no tool_name and tool_input")
    return Call(str(session), str(call), name, given, str(folder or ""))


def _place(client: Client, call: Call, env: Mapping[str, str]) -> Place:
    """The worker's task; outside a worker one that is written down for the session, as a draft that no worker takes."""
    wait = hook_question.ask_wait(env)
    task = env.get("YOURTURN_TASK")
    if not task:
        where = call.folder.rstrip("/").rpartition("/")[2] or "a folder"
        title = "".join(c if c.isprintable() else " " for c in f"Claude Code in {where[:100]}, session {call.session[:8]}")
        made = client.create(title, draft=True, key=f"hook/{call.session}/task")
        return Place(made["key"], None, wait)
    token = env.get("YOURTURN_CLAIM") or None
    held = token if token and client.claim_is_for(token, task) else None
    return Place(task, held, wait, hook_question.step_of(env, held))


# --- questions --------------------------------------------------------------------------------------------------------


def _questions(client: Client, call: Call, env: Mapping[str, str]) -> Decision:
    asked = call.input.get("questions")
    if (
        not isinstance(asked, list)
        or not asked
        or not all(isinstance(q, dict) and isinstance(q.get("question"), str) for q in asked)
    ):
        raise Invalid("AskUserQuestion came without questions")
    at = _place(client, call, env)
    found = []
    for n, q in enumerate(asked):
        named = hook_question.named(call.session, call.id, n)
        named["metadata"] |= {"n": n + 1, "of": len(asked)}
        named["context"] = {"header": str(q["header"])} if q.get("header") else None
        found.append(
            client.ask(
                at.task, q["question"], "input", _options(q.get("options")), response_type="choice", allow_other=True,
                multi=bool(q.get("multiSelect")), group=f"hook/{call.id}",
                **at.proof, **named,
            )
        )  # fmt: skip
    found = wait_for(client, found, at.wait)
    refused = [q for q in found if q["status"] != "pending" and not _agreed(q)]
    if refused:  # a no to one takes the others off the desk: it is the one to tell
        first = min(refused, key=lambda q: hook_question.CLOSED.index(q["status"]))
        return Decision(deny(_closed(first)), [first])
    if any(q["status"] == "pending" for q in found):
        return _parked(found)
    answers = {q["text"]: _answer(q) for q in found}
    return Decision(output("allow", f"{_person(found[0])} answered.", {**call.input, "answers": answers}), found)


def _options(given: Any) -> list[dict[str, Any]]:
    """Labels are what the answer is given in; an id is what a person types."""
    offered = [item for item in given or () if isinstance(item, dict) and isinstance(item.get("label"), str) and item["label"]]
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
    said = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{said} ({words})" if words and words != said else said


def _plan(client: Client, call: Call, env: Mapping[str, str]) -> Decision:
    at = _place(client, call, env)
    text = "Should the work go on by this plan?"
    named = hook_question.named(call.session, call.id)
    q = client.ask(at.task, text, "checkpoint", context=call.input or None, **at.proof, **named)
    q = wait_for(client, [q], at.wait)[0]
    if q["status"] == "pending":
        return _parked([q])
    return Decision(output("allow", _yes(q)) if _agreed(q) else deny(_closed(q)), [q] if _is_all(q) else [])


def _question(client: Client, call: Call, env: Mapping[str, str]) -> Decision:
    """Our own tool. It asks by itself where no worker would resume the session, and where nothing has to be waited for."""
    fields = hook_question.question_fields(call.input)
    if not env.get("YOURTURN_TASK") or call.input.get("task") or not fields["blocking"]:
        return Decision(output("allow", "Asking is always allowed."))
    at = _place(client, call, env)
    q = client.ask(at.task, **at.proof, **fields, **hook_question.named(call.session, call.id))
    q = wait_for(client, [q], at.wait)[0]
    if q["status"] == "pending":
        return _parked([q])
    return Decision(output("allow", f"{q['id']} has an end; the tool tells which."), [q])


def _parked(found: list[Question]) -> Decision:
    names = ", ".join(q["id"] for q in found if q["status"] == "pending")
    return Decision(output("defer", f"A person was asked ({names})."))


# --- permissions ------------------------------------------------------------------------------------------------------


def _permission(client: Client, call: Call, env: Mapping[str, str]) -> Decision:
    at = _place(client, call, env)
    q = wait_for(client, [ask_permission(client, call, at)], at.wait)[0]
    found = verdict(client, call, q, at.claim)
    if found.what == "wait":
        return _parked([q])
    return Decision(output(found.what, found.words, found.input), [q] if found.what == "deny" or _is_all(q) else [])


#: Who decides about the calls that are questions themselves; about all others a permission does.
_DECIDES = {QUESTIONS: _questions, PLAN: _plan, ASK: _question}


def ask_permission(client: Client, call: Call, at: Place) -> Question:
    """The question for this call, or the one that was asked for it before."""
    named = hook_question.named(call.session, call.id)
    return client.ask(at.task, describe(call), "permission", action=call.action, **at.proof, **named)


def verdict(client: Client, call: Call, q: Question, claim: str | None) -> Verdict:
    """How the permission for a call stands. To say allow is to use it: it serves this call and no other."""
    if q["status"] == "pending":
        return Verdict("wait", f"{q['id']} waits for a person.")
    if not _agreed(q):
        return Verdict("deny", _closed(q))
    value = q["response"]["value"]
    edited = value if isinstance(value, dict) else None
    try:
        client.use(q, call.by, edited or call.action, claim=claim)
    except YourturnError as error:
        return Verdict("deny", f"This was allowed, but not any more: {error}")
    words = _yes(q)
    return Verdict("allow", f"{words} The input was changed by them." if edited else words, edited["input"] if edited else None)


def describe(call: Call) -> str:
    """What will happen, in words. The exact input stands beside it, as the action."""
    given = call.input
    if isinstance(given.get("command"), str):
        return f"Run this in {call.folder or 'its folder'}?\n{_cut(given['command'])}"
    path = next((given[name] for name in ("file_path", "notebook_path") if isinstance(given.get(name), str)), None)
    if path is not None:
        verb = {"Write": "Write", "Read": "Read"}.get(call.tool, "Change")
        size = f" ({len(given['content']):,} characters)" if isinstance(given.get("content"), str) else ""
        return f"{verb} {_cut(path)}{size}?"
    if isinstance(given.get("url"), str):
        return f"Let {_cut(call.tool)} go to {_cut(given['url'])}?"
    return f"Let {_cut(call.tool)} run with this input?"


def _cut(text: str) -> str:
    return text if len(text) <= 2000 else f"{text[:2000]} … ({len(text) - 2000:,} more characters; all of them stand below)"


def superseded(client: Client, questions: Iterable[Question], reason: str, *, claim: str | None = None) -> list[Question]:
    """Take back what an agent asked for calls that its session has dropped. What only a person can take back gets a note."""
    gone = []
    for q in questions:
        try:
            gone.append(client.withdraw(q, reason, claim=claim))
        except (AlreadyClosed, IllegalMove):
            continue
        except NotAllowed:
            client.note(q["task"], f"{q['id']} is not needed any more: {reason}")
    return gone


def asked_for(client: Client, task: str, session: str, calls: Iterable[str]) -> list[Question]:
    """The questions that these calls of a session asked."""
    wanted = set(calls)
    mine = [(q, q["metadata"] or {}) for q in client.show(task)["questions"]]
    return [q for q, said in mine if said.get("session") == session and said.get("call") in wanted]


def tells(q: Question, result: ToolResult) -> bool:
    """Whether what came of the call that asked a question told the session how that was closed."""
    said = q["metadata"] or {}
    by_hook = q["kind"] == "checkpoint" or q["group"] == f"hook/{result.id}" or (q["action"] is not None and "tool" not in said)
    if q["status"] == "pending" or not by_hook:
        return False
    return _closed(q)[:200] in result.text if result.error else _agreed(q) and (q["group"] is not None or _is_all(q))


def _is_all(q: Question) -> bool:
    """Whether the decision says it all. The model sees why a call was denied, but not the words beside a yes, nor an edit."""
    response = q["response"] or {}
    return not _agreed(q) or not (str(response.get("text") or "").strip() or isinstance(response.get("value"), dict))


# --- what they share --------------------------------------------------------------------------------------------------


def wait_for(client: Client, questions: list[Question], seconds: float) -> list[Question]:
    """The same questions after at most so many seconds, or as soon as nothing is left to wait for."""
    ends = time.monotonic() + seconds
    found = []
    for q in questions:
        if q["status"] == "pending":
            q = client.wait_for(q, max(0.0, ends - time.monotonic()))
        found.append(q)
    return found


def _agreed(q: Question) -> bool:
    return bool(q["status"] == "answered" and q["response"]["verdict"] == "approved")


def _person(q: Question) -> str:
    return str(q["responded_by"] or "somebody").partition(":")[2] or "somebody"


def _yes(q: Question) -> str:
    words = str(q["response"]["text"]).strip()
    return f"{_person(q)} said yes to {q['id']}: {words}" if words else f"{_person(q)} said yes to {q['id']}."


def _closed(q: Question) -> str:
    """Why a question that was closed allows nothing. Silence is not told as a no."""
    if q["status"] == "timeout":
        return (
            f"Nobody answered {q['id']} in time. Nobody refused it either, but it is not allowed: end your turn, or do without."
        )
    if q["status"] == "cancelled":
        return f"{q['id']} was taken off the desk without an answer ({q['close_reason']}), so it is not allowed."
    words = str((q["response"] or {}).get("text") or "").strip()
    return f"{_person(q)} said no to {q['id']}{': ' + words if words else '.'}"
