"""Facts about a run, computed from its plain values: what it asks, which agent asks, where it failed, how it is resumed."""

from __future__ import annotations

from typing import Any

from .terminal import safe

#: Calls without an effect, which are not listed.
QUIET = ("now", "random", "uuid", "log")


def open_questions(task: dict[str, Any]) -> list[dict[str, Any]]:
    """The questions that block the task, oldest first."""
    return [q for q in task["questions"] if q["status"] == "pending" and q["blocking"]]


def about_run(q: dict[str, Any]) -> bool:
    """Whether the question is about the run itself: its script was changed, cannot be run, or failed."""
    return bool(q["kind"] == "recovery" and q["reason"] in ("code_changed", "run_failed"))


def retried(q: dict[str, Any]) -> bool:
    """Whether the person chose to try again."""
    return response_word(q) in ("retry", "try again", "again")


def response_word(q: dict[str, Any]) -> str:
    """The chosen option, or the text that was written instead, in lower case."""
    response = q["response"] or {}
    return str(response.get("value") or response.get("text") or "").strip().lower()


def offers(q: dict[str, Any], word: str) -> bool:
    return any(option["id"] == word for option in q["options"])


def failed_at(run: dict[str, Any]) -> str:
    """The call that failed in the previous journal and is made again in this one."""
    asked = [q for q in run["questions"] if about_run(q)]
    q = asked[-1] if asked else None
    if q is None or q["reason"] != "run_failed" or q["journal"] != run["journal"] - 1 or not retried(q):
        return ""
    return str((q["context"] or {}).get("step") or "")


def made_again(run: dict[str, Any]) -> tuple[str, ...]:
    """Digests of the calls that are made again in this journal, because their recorded results may belong to other calls."""
    asked = [q for q in run["questions"] if about_run(q)]
    q = next((q for q in reversed(asked) if q["journal"] == run["journal"] - 1), None)
    if q is None or response_word(q) == "keep":
        return ()
    return tuple((q["metadata"] or {}).get("again") or ())


def asking(run: dict[str, Any], q: dict[str, Any]) -> dict[str, Any] | None:
    """The step that asked the question, if a step did."""
    if q["step"] is None or q["journal"] != run["journal"] or about_run(q):
        return None
    return next((step for step in run["steps"] if step["index"] == q["step"] and not step["spare"]), None)


def agent(run: dict[str, Any]) -> str:
    """The name of the agent that asks or works, or an empty text."""
    waiting = open_questions(run)
    step = asking(run, waiting[0]) if waiting else None
    if step is None and not (waiting and about_run(waiting[0])):
        step = next((s for s in reversed(run["steps"]) if s["agent"] and not s["ended_at"] and not s["spare"]), None)
    return agent_of(step)


def agent_of(step: dict[str, Any] | None) -> str:
    """The name of the step's agent. A checkpoint has none."""
    name = str((step or {}).get("agent") or "")
    return "" if name.startswith("_") else name


def step_name(step: dict[str, Any]) -> str:
    """The name of the step's agent or function, else of the call."""
    call = step["call"] if isinstance(step["call"], dict) else {}
    return safe(str(step["agent"] or (call.get("function") if step["name"] == "step" else None) or step["name"]))


def has_failed(step: dict[str, Any]) -> bool:
    """Whether the step has ended without a result: its function raised an exception, or its agent failed."""
    result = step["result"] if isinstance(step["result"], dict) else {}
    if step["name"] == "run":
        return str(result.get("status") or "").upper() in ("FAILED", "ERROR")
    return bool(step["name"] == "step" and "error" in result)


def again(run: dict[str, Any]) -> str:
    """The command that resumes an ended run. If a step was refused or failed, it resumes from that step."""
    last = _last(run)
    refused = last is not None and last["ended_at"] and _was_refused(last)
    return f"turn resume {run['key']}" + (f" --from {last['index']}" if last and refused else "")


def _last(run: dict[str, Any]) -> dict[str, Any] | None:
    own = [step for step in run["steps"] if step["index"].isdigit() and not step["spare"] and step["name"] not in QUIET]
    return own[-1] if own else None


def _was_refused(step: dict[str, Any]) -> bool:
    result = step["result"] if isinstance(step["result"], dict) else {}
    if step["name"] in ("pause", "ask"):
        return bool(result.get("verdict", "") != "approved")
    if step["name"] == "step":
        return "error" in result
    return bool(step["name"] == "run" and result.get("status") != "DONE")
