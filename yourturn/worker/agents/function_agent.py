"""Adapter for a Python function as an agent: `(run) -> str | dict | None`.

`argv = ["package.module:function"]` names it. It runs in a process of its own, so that it can be stopped like any other agent,
and a crash of it does not end the worker.

A text or a dictionary (a JSON result) is the message, None is no signal, an exception is a failure. What the function prints goes
to the log. Async functions are awaited.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from .base import Activity, Agent, AgentEvent, AgentRun, Ending, Finished, Launch, Text, Transcript, Unknown, environment, killed

#: The fields of the run that the process gets; it has the environment anyway.
_FIELDS = ("task", "prompt", "answer_prompt", "folder", "session_id", "log", "parked")


class FunctionAgent:
    plain = False

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def session_id(self) -> str | None:
        return None

    def start(self, run: AgentRun) -> Launch:
        return self._launch(run, False)

    def resume(self, run: AgentRun) -> Launch:
        return self._launch(run, True)

    def _launch(self, run: AgentRun, resumed: bool) -> Launch:
        env = environment(run)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (os.getcwd(), env.get("PYTHONPATH"))))  # noqa: PTH109
        fields = {"resumed": resumed, **{name: getattr(run, name) for name in _FIELDS}}
        data = {"target": run.agent.argv[0], "agent": dataclasses.asdict(run.agent), "run": fields}
        argv = (sys.executable, "-u", "-m", "yourturn.worker.agents.function_agent")
        return Launch(argv, env, run.folder, json.dumps(data).encode())

    def parse(self, line: str) -> list[AgentEvent]:
        try:
            match json.loads(line):
                case {"message": str(text)}:
                    return [Text(text), Finished(True, text)]
                case {"progress": str(text)}:
                    return [Activity(text)]
                case {"missing": str(text)}:
                    return [Finished(False, error=text, cause="not_started")]
                case {"error": str(text)}:
                    return [Finished(False, error=text, cause="exception")]
        except (ValueError, RecursionError):
            pass
        return [Unknown("", line)]

    def classify(self, rc: int, transcript: Transcript) -> Ending:
        finished = transcript.finished
        if finished is not None:
            return transcript.ending("done" if finished.ok else "failed", finished.error, finished.cause, text=finished.text)
        if death := killed(rc):
            return transcript.ending("retryable", death, "killed")
        return transcript.ending("failed", transcript.stderr() or f"It ended with exit code {rc} and printed nothing.", "crash")


# --- the process of the function --------------------------------------------------------------------------------------


def load(target: str) -> Callable[..., Any]:
    """The function `package.module:function`."""
    module, _, path = target.partition(":")
    function: Any = importlib.import_module(module)
    for name in path.split("."):
        function = getattr(function, name)
    if not callable(function):
        raise TypeError(f"{target} is not a function")
    return function  # type: ignore[no-any-return]


def call(function: Callable[..., Any], run: AgentRun) -> tuple[str, str]:
    """('message', …) or ('error', …)."""
    name = str(getattr(function, "__qualname__", function))
    try:
        value = function(run)
        if hasattr(value, "__await__"):
            import asyncio  # late: it takes 40 ms, and most functions are not async

            value = asyncio.run(_awaited(value))
        if value is None or isinstance(value, str):
            return "message", value or ""
        if isinstance(value, dict):
            return "message", json.dumps(value)
        return "error", f"{name} returned a {type(value).__name__}: a text, a dictionary or None is expected"
    except SystemExit as error:
        return "error", f"{name} left with sys.exit({error.code!r})"
    except BaseException as error:
        traceback.print_exc()
        return "error", f"{name} failed: {type(error).__name__}: {error}".rstrip(": ")


async def _awaited(value: Any) -> Any:
    return await value


def main() -> None:
    """Run the function. Standard output is for messages to the worker, so prints of the function go to standard error."""
    data = json.load(sys.stdin)
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(**message: str) -> None:
        print(json.dumps(message), file=output, flush=True)

    run = AgentRun(**data["run"], agent=Agent(**data["agent"]), env=dict(os.environ))
    run.say = lambda text: send(progress=str(text))
    try:
        function = load(data["target"])
    except Exception as error:
        what, text = "missing", f"{data['target']} cannot be loaded: {type(error).__name__}: {error}"
    else:
        what, text = call(function, run)
    send(**{what: text})
    os._exit(0 if what == "message" else 1)


if __name__ == "__main__":
    main()
