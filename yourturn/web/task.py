"""Page of a task: its facts, open questions, log, notes, steps, dependencies and events."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..core import permissions
from ..core.errors import Invalid, YourturnError
from ..core.model import READY
from ..display import as_text, old_id, person
from ..display.terminal import length, micros
from . import charts, event_text, labels, layout, page_version, times, view_models
from .board import PLAIN
from .request import Fragment, Json, Page, PageRequest, PageResult, Redirect, idempotency_key, is_number
from .task_actions import done_text, task_actions

#: Lines of the log on the task's page and on the log's own page; events on the task's page.
LINES, WHOLE, EVENTS = 200, 2000, 8
#: Sorts of output lines that are shown as errors.
BAD = frozenset({"error", "stderr", "failed"})
#: Actions whose events are shown between the lines of the log.
MARKS = frozenset({"claim", "ask", "flag", "answer", "timeout", "complete", "fail", "expire", "release", "accept", "reject"})


class LogLine(NamedTuple):
    at: str
    clock: str
    source: str
    text: str
    tone: str


class QuestionRow(NamedTuple):
    id: str
    href: str
    text: str
    kind: view_models.KindView
    who: view_models.ActorView
    when: times.Moment
    time: times.Countdown
    then: str
    words: str  #: the outcome
    bead: str
    icon: str
    pending: bool


class StepRow(NamedTuple):
    number: str
    name: str
    icon: str
    bead: str
    state: str  #: as a word
    time: str
    about: str
    spare: bool


class NoteRow(NamedTuple):
    who: view_models.ActorView
    when: times.Moment
    text: str
    agent: bool


# --- the log ----------------------------------------------------------------------------------------------------------


def lines(client: Any, task: Mapping[str, Any], limit: int) -> tuple[list[LogLine], str]:
    """Lines of the log: output of agents and events, in order of time; and a version that changes with every new line."""
    key, waiting = task["key"], {q["id"] for q in task["questions"] if q["status"] == "pending"}
    output = client.output(key, limit=limit)
    events = client.history(key, limit=limit)
    since = output[0]["at"] if len(output) == limit else ""
    source_at = _sources(events)
    rows = [(x["at"], 1, _line(x, source_at(x["at"]))) for x in output]
    rows += [(e["at"], 0, _mark(e, waiting)) for e in events if e["action"] in MARKS and e["at"] >= since]
    rows.sort(key=lambda row: row[:2])
    version = f"{output[-1]['id'] if output else 0}.{events[-1]['seq'] if events else 0}"
    return [line for _, _, line in rows][-limit:], version


def _sources(events: Iterable[Mapping[str, Any]]) -> Callable[[str], str]:
    """A function from a time to the name of the agent that wrote the output of that time."""
    names = [(e["at"], name) for e in events if (name := _source(e))]
    times = [at for at, _ in names]
    return lambda at: names[bisect_right(times, at) - 1][1] if names else ""


def _source(e: Mapping[str, Any]) -> str:
    """The name of the agent that writes from this event on: the claim's actor, or the agent that the worker has started."""
    if e["action"] == "claim":
        return person(e["actor"])
    seat = e["data"].get("set", {}).get("seat")
    return str(seat.get("agent") or "") if isinstance(seat, dict) else ""


def _line(x: Mapping[str, Any], name: str) -> LogLine:
    return LogLine(
        x["at"],
        times.clock_with_seconds(x["at"]),
        name if x["sort"] == "said" else x["sort"],
        x["text"].rstrip(),
        "err" if x["sort"] in BAD else "",
    )


def _mark(e: Mapping[str, Any], waiting: set[str]) -> LogLine:
    """An event as a line. A question that is still open is highlighted."""
    open_ = any(q["id"] in waiting for q in e["data"].get("opened", ()))
    text = event_text.sentence(e)
    who = "" if e["action"] in event_text.WITHOUT_ACTOR else f"{person(e['actor'])} "
    return LogLine(e["at"], times.clock_with_seconds(e["at"]), "yourturn", f"{who}{text}", "hey" if open_ else "calm")


def live(request: PageRequest) -> PageResult:
    """The log for an open page; empty if the page already shows this version."""
    task = _task(request)
    if isinstance(task, Redirect):
        return task
    log_lines, version = lines(request.client, task, LINES)
    if request.query.get("seen") == version:
        return Fragment("")
    return Fragment(layout.render_macro("log.html", "lines", log_lines, version))


def log(request: PageRequest) -> PageResult:
    task = _task(request)
    if isinstance(task, Redirect):
        return task
    after = request.query.get("after", "")
    if after and not is_number(after):
        raise Invalid("after must be the number of a line")
    output = request.client.output(task["key"], limit=WHOLE + 1, after=int(after or 0))
    more, output = len(output) > WHOLE, output[:WHOLE]
    href = f"/tasks/{task['key']}/log?after={output[-1]['id']}" if more else ""
    source_at = _sources(request.client.history(task["key"], limit=WHOLE))
    log_lines = [_line(x, source_at(x["at"])) for x in output]
    return Page("full_log.html", {"here": "tasks", "task": task, "lines": log_lines, "more": href, "after": after})


# --- parts ------------------------------------------------------------------------------------------------------------


def question_row(q: Mapping[str, Any], now: int, me: str, run: str) -> QuestionRow:
    pending = q["status"] == "pending"
    kind = view_models.kind(q)
    rejected = (q["response"] or {}).get("verdict") == "rejected"
    bead, icon = (
        ("now", kind.icon)
        if pending
        else ("gate", "clock")
        if q["status"] == "timeout"
        else ("", "x")
        if rejected or q["status"] == "cancelled"
        else ("good", "check")
    )
    return QuestionRow(
        q["id"],
        f"/questions/{q['id']}",
        q["text"],
        kind,
        view_models.actor_view(f"agent:{run}" if run else q["asked_by"]),
        times.moment(q["asked_at"], now),
        times.countdown(q, now),
        labels.timeout_text(q, run, short=True),
        "" if pending else labels.result_text(q, me),
        bead,
        icon,
        pending,
    )


_STEPS = {"completed": ("good", "check", "done"), "running": ("now", "working", "running"), "waiting": ("gate", "pause", "waits")}


def step_row(s: Mapping[str, Any], now: int) -> StepRow:
    bead, icon, word = _STEPS.get(s["status"], ("", "ready", s["status"]))
    result = s["result"] if isinstance(s["result"], dict) else {}
    if result.get("status") in ("FAILED", "ERROR", "REJECTED") or "error" in result:
        bead, icon, word = "trouble", "x", str(result.get("status") or "failed").lower()
    ends = s["ended_at"]
    took = (micros(ends) if ends else now) - micros(s["started_at"])
    time = length(max(0, took) / 1_000_000)
    return StepRow(
        s["index"],
        s["agent"] if s["agent"] and not s["agent"].startswith("_") else s["name"],
        icon,
        bead,
        word,
        time if ends else f"{word} {times.elapsed(took / 1_000_000)}",
        _about(s, result),
        s["spare"],
    )


def _about(s: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """A text about the result of a step, or about its call."""
    for name in ("summary", "message", "reason", "text", "error"):
        if isinstance(result.get(name), str) and result[name].strip():
            return str(result[name])[:200]
    if isinstance(s["result"], (str, int, float)) and not isinstance(s["result"], bool):
        return str(s["result"])[:200]
    call = s["call"] if isinstance(s["call"], dict) else {}
    for name in ("message", "text", "question", "prompt"):
        if isinstance(call.get(name), str) and call[name].strip():
            return f"“{call[name][:200]}”"
    return ""


def _facts(t: Mapping[str, Any], now: int) -> list[tuple[str, str, bool]]:
    """Rows of the facts: name, text, and whether it is shown in a monospaced font."""
    tries = f"{min(t['retry_count'] + 1, t['max_retries'])} of {t['max_retries']}"
    tries = tries if t["retry_count"] < t["max_retries"] else f"all {t['max_retries']} used"
    return [
        ("Priority", str(t["priority"]), False),
        ("Type", t["type"] if t["type"] != "task" else "", False),
        ("Size", t["complexity"] if t["complexity"] != "medium" else "", False),
        ("Tries", tries if t["retry_count"] or t["state"] in ("working", "human") else "", False),
        ("Branch", t["branch"] or "", True),
        ("Script", t["workflow"] or "", True),
        ("For", t["role"] or "", False),
        (
            "Needs",
            {"approval": "an approval", "review": "a review", "content": "a look at the text"}.get(t["requires"] or "", ""),
            False,
        ),
        ("Put aside", f"until {times.future_day(t['wake_at'], now)}" if t["wake_at"] else "", False),
        *[(label, as_text(t[name]), False) for name, label in PLAIN.items()],
    ]


def _task(request: PageRequest) -> dict[str, Any] | Redirect:
    named = request.path_params["key"]
    reply = request.client.show(named)
    if "key" not in reply:
        return Redirect(f"/questions/{reply['id']}")
    return reply if reply["key"] == named else Redirect(f"/tasks/{reply['key']}")


# --- the page ---------------------------------------------------------------------------------------------------------


def show(request: PageRequest) -> PageResult:
    task = _task(request)
    return task if isinstance(task, Redirect) else _page(request, task)


def _page(request: PageRequest, t: dict[str, Any], wrong: str = "", draft: str = "", status: int = 200) -> PageResult:
    client, key = request.client, t["key"]
    now, me, run = times.desk_time(client), client.who.name, labels.script_name(t)
    questions = [question_row(q, now, me, run) for q in t["questions"]]
    finished = client.inbox(task=key) if not any(q.pending for q in questions) else []
    waiting = [q for q in questions if q.pending] + [question_row(q, now, me, run) for q in finished if q["id"] == key]
    log_lines, version = lines(client, t, LINES)
    events = [e for e in client.history(key, limit=4 * EVENTS) if e["action"] != "step"]  # the page lists steps separately
    graph = client.graph(key, most=12)
    writer = next((e for e in reversed(events) if e["action"] == "complete"), None)
    actions = task_actions(request, t)
    return Page(
        "task.html",
        {
            "here": "tasks",
            "t": t,
            "tag": view_models.state(t["state"]),
            "worker": view_models.working_agent(t),
            "about": t["description"].strip() != t["title"].strip() and t["description"].strip(),
            "facts": [fact for fact in _facts(t, now) if fact[1]],
            "waiting_q": waiting,
            "questions": questions[::-1],
            "lines": log_lines,
            "seen": version,
            "notes": [
                NoteRow(author := view_models.actor_view(n["author"]), times.moment(n["at"], now), n["text"], author.agent)
                for n in t["notes"]
            ],
            "steps": [step_row(s, now) for s in t["steps"]],
            "script": run,
            "graph": charts.graph(graph) if graph["edges"] else None,
            "events": [event_text.event_view(e, now) for e in reversed(events[-EVENTS:])],
            "created": times.moment(t["created_at"], now),
            "author": view_models.actor_view(t["created_by"]),
            "old": old_id(t),
            "wrote": view_models.actor_view(writer["actor"] if writer else None),
            "ended": times.moment(t["ended_at"], now) if t["ended_at"] else None,
            "sure": [m for m in actions if m.style == "go"][:1],
            "moves": actions,
            "as_of": page_version.mark(t),
            "may_note": permissions.may(client.who, "note"),
            "may_answer": permissions.may(client.who, "answer"),
            "working": t["state"] == "working",
            "unattended": client.unattended(task=key) if t["state"] == READY else None,
            "did": done_text(request, key),
            "wrong": wrong,
            "draft": draft,
            "key": idempotency_key(),
        },
        status,
    )


def note(request: PageRequest) -> PageResult:
    task = _task(request)
    if isinstance(task, Redirect):
        return task
    text = request.field("text")
    try:
        request.client.note(task["key"], text, key=request.key)
    except YourturnError as error:
        if request.wants_json:
            raise
        return _page(request, task, f"{error}.", text, error.http_status)
    return Json({"ok": True}) if request.wants_json else Redirect(f"/tasks/{task['key']}?did=note#notes")
