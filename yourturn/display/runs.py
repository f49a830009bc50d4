"""Words for people about runs: what became of each call of a script, whom a run waits for, and since when.

Like view/ it takes the plain values of client/serialize.py and returns lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .terminal import NARROW, ago, bold, clock, columns, cut, length, micros, one_line, safe, seconds_from_now, width

#: What a run in this state is called.
STATUS = {
    "created": "draft", "ready": "ready", "blocked": "blocked", "working": "running", "human": "waiting_human",
    "review": "review", "done": "completed", "failed": "failed", "cancelled": "cancelled", "deferred": "asleep",
}  # fmt: skip
MARKS = {"completed": "✓", "waiting": "⏸", "running": "●", "failed": "✗"}
#: Calls that do nothing: nobody wants to read of each.
QUIET = ("now", "random", "uuid", "log")
SHOWN = 30
PROGRAMS = {"claude": "Claude", "codex": "Codex"}


def status(run: dict[str, Any]) -> str:
    return "stuck" if run["failure"] == "stuck" else STATUS[run["state"]]


def spec(run: dict[str, Any]) -> str:
    """The script's name: feature, for flows/feature.py:release."""
    head, colon, name = str(run["workflow"]).rpartition(":")
    file = head if colon and name.isidentifier() else str(run["workflow"])
    return safe(file.replace("\\", "/").rpartition("/")[2].removesuffix(".py").removesuffix(".lua"))


def open_questions(task: dict[str, Any]) -> list[dict[str, Any]]:
    """What it waits for, oldest first."""
    return [q for q in task["questions"] if q["status"] == "pending" and q["blocking"]]


def about_run(q: dict[str, Any]) -> bool:
    """The run's own question: its script was changed, cannot be run, or failed."""
    return bool(q["kind"] == "recovery" and q["reason"] in ("code_changed", "run_failed"))


def retried(q: dict[str, Any]) -> bool:
    """The person said to try it again."""
    return said(q) in ("retry", "try again", "again")


def said(q: dict[str, Any]) -> str:
    """What the person chose, or wrote instead."""
    response = q["response"] or {}
    return str(response.get("value") or response.get("text") or "").strip().lower()


def offers(q: dict[str, Any], word: str) -> bool:
    return any(option["id"] == word for option in q["options"])


def failed_at(run: dict[str, Any]) -> str:
    """The call of a branch that failed, and is being made again in this journal."""
    asked = [q for q in run["questions"] if about_run(q)]
    q = asked[-1] if asked else None
    if q is None or q["reason"] != "run_failed" or q["journal"] != run["journal"] - 1 or not retried(q):
        return ""
    return str((q["context"] or {}).get("step") or "")


def made_again(run: dict[str, Any]) -> tuple[str, ...]:
    """The calls, by their marks, that are made again in this journal: a person says that what was recorded may not be theirs."""
    asked = [q for q in run["questions"] if about_run(q)]
    q = next((q for q in reversed(asked) if q["journal"] == run["journal"] - 1), None)
    if q is None or said(q) == "keep":
        return ()
    return tuple((q["metadata"] or {}).get("again") or ())


def asking(run: dict[str, Any], q: dict[str, Any]) -> dict[str, Any] | None:
    """The step that asks."""
    if q["step"] is None or q["journal"] != run["journal"] or about_run(q):
        return None
    return next((step for step in run["steps"] if step["index"] == q["step"] and not step["spare"]), None)


def agent(run: dict[str, Any]) -> str:
    """Who asks, or works: the name of an agent, or nothing."""
    waiting = open_questions(run)
    step = asking(run, waiting[0]) if waiting else None
    if step is None and not (waiting and about_run(waiting[0])):
        step = next((s for s in reversed(run["steps"]) if s["agent"] and not s["ended_at"] and not s["spare"]), None)
    return agent_of(step)


def agent_of(step: dict[str, Any] | None) -> str:
    """A checkpoint is nobody."""
    name = str((step or {}).get("agent") or "")
    return "" if name.startswith("_") else name


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


def table(found: list[dict[str, Any]]) -> list[str]:
    if width() < NARROW:
        return columns([[r["key"], spec(r), waits_for(r) or status(r)] for r in found], last=2)
    rows = [["ID", "SPEC", "STATUS", "AGENT", "WAITING FOR"]]
    rows += [[r["key"], spec(r), status(r), safe(agent(r)) or "-", waits_for(r) or "-"] for r in found]
    head, *lines = columns(rows, last=4)
    return [bold(head), *lines]


# --- steps ----------------------------------------------------------------------------------------------------------


def steps(run: dict[str, Any], indent: str = "") -> list[str]:
    """#1  architect  ✓  2m 15s"""
    found = [step for step in run["steps"] if not step["spare"] and step["name"] not in QUIET]
    waiting = {q["step"]: q for q in open_questions(run) if q["journal"] == run["journal"]}
    over = "left" if run["ended_at"] else "answered"
    rows = [_row(step, waiting.get(step["index"]), over) for step in found[-SHOWN:]]
    left_out = [f"{indent}… {len(found) - SHOWN} before that"] if len(found) > SHOWN else []
    return [*left_out, *columns(rows, last=4, indent=indent)]


def _row(step: dict[str, Any], q: dict[str, Any] | None, over: str) -> list[str]:
    mark = MARKS["failed" if went_wrong(step) else step["status"]]
    return [f"#{step['index']}", called(step), mark, _time(step, q, over), cut(came_of(step), 100)]


def went_wrong(step: dict[str, Any]) -> bool:
    """It came back, and brought no result: a function that raised, an agent that failed."""
    result = step["result"] if isinstance(step["result"], dict) else {}
    if step["name"] == "run":
        return str(result.get("status") or "").upper() in ("FAILED", "ERROR")
    return bool(step["name"] == "step" and "error" in result)


def _time(step: dict[str, Any], q: dict[str, Any] | None, over: str) -> str:
    """`over`: what is said of a call that has not come back, and that nobody waits for any more."""
    if step["ended_at"]:
        return length((micros(step["ended_at"]) - micros(step["started_at"])) / 1e6, compact=True)
    if over == "left" or (step["status"] == "waiting" and q is None and step["name"] in ("run", "pause", "ask")):
        return over
    since = length(-seconds_from_now((q or {}).get("asked_at") or step["started_at"]), compact=True)
    word = {"sleep": "asleep"}.get(step["name"], "waiting") if step["status"] == "waiting" else "running"
    return f"{word} ({since})"


def called(step: dict[str, Any]) -> str:
    """A step's name in a list."""
    call = step["call"] if isinstance(step["call"], dict) else {}
    return safe(str(step["agent"] or (call.get("function") if step["name"] == "step" else None) or step["name"]))


def came_of(step: dict[str, Any]) -> str:
    """What it returned, where that is more than that it is done."""
    result = step["result"] if isinstance(step["result"], dict) else {}
    if step["name"] in ("pause", "ask"):
        if not result:
            return ""
        said = result.get("text") or result.get("value")
        said = "no" if said is False else said
        words = f"“{one_line(str(said))}”" if said not in (None, "", True) else ""
        stopped = step["name"] == "pause" and result.get("verdict") != "approved"
        return " ".join(filter(None, ["stopped" if stopped else "", words]))
    if step["name"] == "run" and result:
        words = one_line(str(result.get("summary") or result.get("reason") or result.get("message") or ""))
        word = one_line(str(result.get("status") or ""))
        return words if word == "DONE" else ": ".join(filter(None, [word, words]))
    place = f" ({one_line(str(result['place']))})" if result.get("place") else ""
    return one_line(str(result["error"])) + place if "error" in result else ""


def told(event: dict[str, Any]) -> list[str]:
    """What an event says of a run's steps."""
    data, words = event["data"], []
    for step in data.get("steps", ()):
        if step.get("name") in (*QUIET, None):
            continue
        more = came_of({"result": None, **step})
        state = "" if step.get("status") == "completed" else f" {step.get('status')}"
        words.append(f"#{step['index']} {called({'call': None, 'agent': None, **step})}{state}" + (f": {more}" if more else ""))
    if data.get("rewound"):
        spare = ", taking over what is the same" if data["rewound"]["spare"] else ""
        words.append(f"back to step {data['rewound']['to']}{spare}")
    elif event["action"] == "rewind":
        words.append("goes on from where it was")
    if data.get("program"):
        words.append(f"script {one_line(str(data['program']['file']))}")
    return words


def happened(event: dict[str, Any]) -> list[str]:
    """One event of a run, for whoever watches it."""
    from . import person, result

    data, words = event["data"], told(event)
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


def sheet(task: dict[str, Any], typed: str, adapter: str = "", hint: Iterable[str] = ()) -> list[str]:
    """`turn status 42`. `hint`: what is to know before the end."""
    from . import WORDS

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
    from . import option_lines

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
    """What to type now."""
    from . import next_steps

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


def again(run: dict[str, Any]) -> str:
    """The line that lets an ended run go on. What was refused or failed would be the same again: so from that step."""
    last = _last(run)
    refused = last is not None and last["ended_at"] and _said_no(last)
    return f"turn resume {run['key']}" + (f" --from {last['index']}" if last and refused else "")


def _last(run: dict[str, Any]) -> dict[str, Any] | None:
    own = [step for step in run["steps"] if step["index"].isdigit() and not step["spare"] and step["name"] not in QUIET]
    return own[-1] if own else None


def _said_no(step: dict[str, Any]) -> bool:
    result = step["result"] if isinstance(step["result"], dict) else {}
    if step["name"] in ("pause", "ask"):
        return bool(result.get("verdict", "") != "approved")
    if step["name"] == "step":
        return "error" in result
    return bool(step["name"] == "run" and result.get("status") != "DONE")


def says_to(run: dict[str, Any], q: dict[str, Any]) -> tuple[str, str]:
    """What a yes and a no do, where it is more than that the asker hears it."""
    from ..core.rules import outcome

    if about_run(q):
        return "", f"{run['key']} ends as {'failed' if q['reason'] == 'run_failed' else 'stuck'}"
    step = asking(run, q)
    if step is None or step["name"] != "run":
        return "", ""
    name, by_signal = called(step), (step["seat"] or {}).get("by_signal")
    yes, no = (outcome(q["kind"], verdict) if by_signal else "back" for verdict in ("approved", "rejected"))
    return (
        f"{name}'s step is DONE" if yes == "done" else f"{name} goes on with it",
        f"{name}'s step is REJECTED, and the script goes on" if no == "cancelled" else f"{name} gets your words",
    )
