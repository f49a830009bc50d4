"""Runs as text: their status, their steps with results and times, and what they wait for.

Takes the plain values of client/serialize.py and returns lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .commands import next_steps
from .labels import WORDS, person
from .questions import option_lines, result
from .run_facts import QUIET, about_run, agent, agent_of, asking, has_failed, offers, open_questions, step_name
from .terminal import NARROW, ago, bold, clock, columns, cut, length, micros, one_line, safe, seconds_from_now, width

#: The status of a run, by its state.
STATUS = {
    "created": "draft", "ready": "ready", "blocked": "blocked", "working": "running", "human": "waiting_human",
    "review": "review", "done": "completed", "failed": "failed", "cancelled": "cancelled", "deferred": "asleep",
}  # fmt: skip
MARKS = {"completed": "✓", "waiting": "⏸", "running": "●", "failed": "✗"}
SHOWN = 30
PROGRAMS = {"claude": "Claude", "codex": "Codex"}


def status(run: dict[str, Any]) -> str:
    return "stuck" if run["failure"] == "stuck" else STATUS[run["state"]]


def spec(run: dict[str, Any]) -> str:
    """The script's name: feature, for flows/feature.py:release."""
    head, colon, name = str(run["workflow"]).rpartition(":")
    file = head if colon and name.isidentifier() else str(run["workflow"])
    return safe(file.replace("\\", "/").rpartition("/")[2].removesuffix(".py").removesuffix(".lua"))


def waits_for(run: dict[str, Any]) -> str:
    waiting = open_questions(run)
    if waiting:
        return _first_line(waiting[0]["text"]) + (f" (and {len(waiting) - 1} more)" if len(waiting) > 1 else "")
    if run["wake_at"]:
        return f"until {clock(run['wake_at'])}"
    return ", ".join(run["blocked_by"])


def _first_line(text: str) -> str:
    first, *more = text.strip().splitlines() or [""]
    return one_line(first) + (" …" if more else "")


def table(runs: list[dict[str, Any]]) -> list[str]:
    if width() < NARROW:
        return columns([[r["key"], spec(r), waits_for(r) or status(r)] for r in runs], last=2)
    rows = [["ID", "SPEC", "STATUS", "AGENT", "WAITING FOR"]]
    rows += [[r["key"], spec(r), status(r), safe(agent(r)) or "-", waits_for(r) or "-"] for r in runs]
    head, *lines = columns(rows, last=4)
    return [bold(head), *lines]


# --- steps ----------------------------------------------------------------------------------------------------------


def steps(run: dict[str, Any], indent: str = "") -> list[str]:
    """#1  architect  ✓  2m 15s"""
    shown = [step for step in run["steps"] if not step["spare"] and step["name"] not in QUIET]
    waiting = {q["step"]: q for q in open_questions(run) if q["journal"] == run["journal"]}
    over = "left" if run["ended_at"] else "answered"
    rows = [_row(step, waiting.get(step["index"]), over) for step in shown[-SHOWN:]]
    left_out = [f"{indent}… {len(shown) - SHOWN} before that"] if len(shown) > SHOWN else []
    return [*left_out, *columns(rows, last=4, indent=indent)]


def _row(step: dict[str, Any], q: dict[str, Any] | None, over: str) -> list[str]:
    mark = MARKS["failed" if has_failed(step) else step["status"]]
    return [f"#{step['index']}", step_name(step), mark, _time(step, q, over), cut(result_text(step), 100)]


def _time(step: dict[str, Any], q: dict[str, Any] | None, over: str) -> str:
    """`over`: the text for a call that has not returned and does not wait any more."""
    if step["ended_at"]:
        return length((micros(step["ended_at"]) - micros(step["started_at"])) / 1e6, compact=True)
    if over == "left" or (step["status"] == "waiting" and q is None and step["name"] in ("run", "pause", "ask")):
        return over
    since = length(-seconds_from_now((q or {}).get("asked_at") or step["started_at"]), compact=True)
    word = {"sleep": "asleep"}.get(step["name"], "waiting") if step["status"] == "waiting" else "running"
    return f"{word} ({since})"


def result_text(step: dict[str, Any]) -> str:
    """The step's result; empty if that is only that it is done."""
    result = step["result"] if isinstance(step["result"], dict) else {}
    if step["name"] in ("pause", "ask"):
        if not result:
            return ""
        answer = result.get("text") or result.get("value")
        answer = "no" if answer is False else answer
        words = f"“{one_line(str(answer))}”" if answer not in (None, "", True) else ""
        stopped = step["name"] == "pause" and result.get("verdict") != "approved"
        return " ".join(filter(None, ["stopped" if stopped else "", words]))
    if step["name"] == "run" and result:
        words = one_line(str(result.get("summary") or result.get("reason") or result.get("message") or ""))
        word = one_line(str(result.get("status") or ""))
        return words if word == "DONE" else ": ".join(filter(None, [word, words]))
    place = f" ({one_line(str(result['place']))})" if result.get("place") else ""
    return one_line(str(result["error"])) + place if "error" in result else ""


def step_events(event: dict[str, Any]) -> list[str]:
    """The steps in an event of a run, one text each."""
    data, words = event["data"], []
    for step in data.get("steps", ()):
        if step.get("name") in (*QUIET, None):
            continue
        more = result_text({"result": None, **step})
        state = "" if step.get("status") == "completed" else f" {step.get('status')}"
        name = step_name({"call": None, "agent": None, **step})
        words.append(f"#{step['index']} {name}{state}" + (f": {more}" if more else ""))
    if data.get("rewound"):
        spare = ", reusing equal calls" if data["rewound"]["spare"] else ""
        words.append(f"back to step {data['rewound']['to']}{spare}")
    elif event["action"] == "rewind":
        words.append("continues where it was")
    if data.get("program"):
        words.append(f"script {one_line(str(data['program']['file']))}")
    return words


def event_lines(event: dict[str, Any]) -> list[str]:
    """One event of a run, as lines for `turn watch`."""
    data, words = event["data"], step_events(event)
    for q in data.get("opened", ()):
        words.append(f"{person(event['actor'])} asks ({q['id']}): {one_line(str(q.get('text') or ''))}")
    for q in data.get("closed", ()):
        if q["status"] != "pending":
            shown = {"response": None, "responded_by": "", "close_reason": "", **q}
            words.append(f"{q['id']}: {result(shown)}")
    words += [f"{person(event['actor'])} notes: {one_line(note['text'])}" for note in data.get("notes", ()) if note.get("text")]
    if data.get("from") != data.get("to") and data.get("to"):
        words.append(STATUS[data["to"]])
    return [f"{clock(event['at'])}  {line}" for line in words]


# --- one run --------------------------------------------------------------------------------------------------------


def run_page(task: dict[str, Any], typed: str, adapter: str = "", hint: Iterable[str] = ()) -> list[str]:
    """The page of `turn status 42`. `hint`: lines before the commands at the end."""
    waiting = open_questions(task)
    run = bool(task["workflow"])
    lines = [bold(f"Run {typed}: {status(task)}" if run else f"Task {typed}: {WORDS[task['state']]}")]
    lines += [line for q in waiting for line in _waits(task, q)]
    if not waiting:
        lines += _facts(task)
    if run and task["steps"]:
        lines += ["", *steps(task)]
    return [*lines, "", *hint, *_use(task, typed, adapter)]


def _waits(task: dict[str, Any], q: dict[str, Any]) -> list[str]:
    step = asking(task, q)
    who = agent_of(step) or ("" if task["workflow"] else str((task["seat"] or {}).get("agent") or ""))
    session = step["session_id"] if step else task["session_id"] if not task["workflow"] else None
    return [
        f"Agent: {safe(who) or '-'}",
        *([f"Session: {safe(session)}"] if session else []),
        *_reason(q["text"]),
        *option_lines(q),
        f"Waiting since: {ago(q['asked_at'])}",
        f"Question: {q['id']} ({q['kind']})",
    ]


def _reason(text: str) -> list[str]:
    first, *more = [line for line in safe(text).splitlines() if line.strip()] or [""]
    return [f"Reason: {first}", *(f"  {line}" for line in more)]


def _facts(task: dict[str, Any]) -> list[str]:
    claim, who = task["claim"], agent(task) if task["workflow"] else str((task["seat"] or {}).get("agent") or "")
    facts = [
        ("Agent", safe(who)),
        ("Worker", safe(claim["worker"]) if claim else ""),
        ("Summary", one_line(task["summary"])),
        ("Reason", one_line(task["reason"])),
        ("Sleeps until", clock(task["wake_at"]) if task["wake_at"] else ""),
        ("Waits for", ", ".join(task["blocked_by"]) if not task["ended_at"] else ""),
        ("Ended", ago(task["ended_at"]) if task["ended_at"] else ""),
    ]
    return [f"{name}: {value}" for name, value in facts if value]


def _use(task: dict[str, Any], typed: str, adapter: str) -> list[str]:
    """The command to continue with."""
    waiting = open_questions(task)
    if not waiting:
        return next_steps(task)
    q = waiting[0]
    name = typed if len(waiting) == 1 else q["id"]
    step = asking(task, q)
    session = step["session_id"] if step else task["session_id"] if not task["workflow"] else None
    if about_run(q):
        new = f"Use 'turn resume {typed}' to try it again, 'turn stop {typed}' to end it."
        if offers(q, "continue"):
            new = f"Use 'turn resume {typed} --accept-new-code' to go on with it."
        return [new, f"Use 'turn continue {name}' to choose."]
    if session and adapter in PROGRAMS:
        return [f"Use 'turn continue {name}' to open the {PROGRAMS[adapter]} session."]
    return [f"Use 'turn continue {name}' to answer."]
