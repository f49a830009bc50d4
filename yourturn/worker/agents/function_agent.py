"""A Python function as an agent: `(run) -> str | dict | None`.

`argv = ["package.module:function"]` names one. It runs in a process of its own, so that it can be stopped like any other
agent and a crash of it is only its own. A callable that a program hands over (`Inline`) runs in a thread of that program;
a thread can not be killed, so a limit ends our waiting and sets `run.stop`, which a well-behaved function looks at.

A text or a dictionary (a JSON result) is the message, None is no signal, an exception is a failure in words. What it prints
goes to the log. Async functions are awaited.
"""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .base import Agent, Ending, Finished, Hear, Heard, Launch, Progress, Run, Said, Text, Unknown, environment, killed

if TYPE_CHECKING:
    from .process import Limits

#: What a function in a process learns of its run; the environment it has.
TOLD = ("task", "prompt", "answer_prompt", "folder", "session_id", "log", "parked")


class Call:
    """A named function, in a process."""

    plain = False

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def session_id(self) -> str | None:
        return None

    def start(self, run: Run) -> Launch:
        return self._launch(run, False)

    def resume(self, run: Run) -> Launch:
        return self._launch(run, True)

    def _launch(self, run: Run, resumed: bool) -> Launch:
        env = environment(run)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (os.getcwd(), env.get("PYTHONPATH"))))  # noqa: PTH109
        told = {name: getattr(run, name) for name in TOLD}
        given = {"target": run.agent.argv[0], "agent": dataclasses.asdict(run.agent), "run": {**told, "resumed": resumed}}
        argv = (sys.executable, "-u", "-m", "yourturn.worker.agents.function_agent")
        return Launch(argv, env, run.folder, json.dumps(given).encode())

    def parse(self, line: str) -> list[Said]:
        try:
            event = json.loads(line)
            match event:
                case {"message": str(text)}:
                    return [Text(text), Finished(True, text)]
                case {"progress": str(text)}:
                    return [Progress(text)]
                case {"missing": str(text)}:
                    return [Finished(False, error=text, cause="not_started")]
                case {"error": str(text)}:
                    return [Finished(False, error=text, cause="exception")]
        except (ValueError, RecursionError):
            pass
        return [Unknown("", line)]

    def classify(self, rc: int, heard: Heard) -> Ending:
        last = heard.finished
        if last is not None:
            return heard.ending("done" if last.ok else "failed", last.error, last.cause, text=last.text)
        if death := killed(rc):
            return heard.ending("retryable", death, "killed")
        return heard.ending("failed", heard.stderr() or f"It ended with exit code {rc} and said nothing.", "crash")


class Inline:
    """A callable, in a thread of this program."""

    plain = False

    def __init__(self, function: Callable[..., Any], agent: Agent | None = None) -> None:
        self.function = function
        self.agent = agent or Agent(getattr(function, "__name__", "python"), "python")

    def session_id(self) -> str | None:
        return None

    def start(self, run: Run) -> Launch:
        raise ValueError("A callable has no command line")

    resume = start

    def parse(self, line: str) -> list[Said]:
        return []

    def classify(self, rc: int, heard: Heard) -> Ending:
        return heard.ending("done")

    def perform(self, run: Run, limits: Limits, heard: Hear) -> Ending:
        from .process import STOPPED, TICK

        known = Heard()
        known.session_id = run.session_id
        results: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        run.stop = threading.Event()

        def say(text: str) -> None:
            limits.heard()
            heard(Progress(str(text)))

        run.say = say
        threading.Thread(target=lambda: results.put(outcome(self.function, run)), name=f"agent {run.task}", daemon=True).start()
        while True:
            try:
                what, text = results.get(timeout=TICK)
            except queue.Empty:
                if not limits.stopped:
                    limits.stopped = limits.over()
                    if limits.stopped:
                        limits.asked = limits.clock()
                        run.stop.set()
                elif not limits.patient():
                    return known.ending("stopped", STOPPED[limits.stopped], limits.stopped)
                continue
            if limits.stopped:
                return known.ending("stopped", STOPPED[limits.stopped], limits.stopped, text=text if what == "message" else "")
            if what == "error":
                return known.ending("failed", text, "exception")
            heard(Text(text))
            return known.ending("done", text=text)


def outcome(function: Callable[..., Any], run: Run) -> tuple[str, str]:
    """('message', …) or ('error', …)."""
    try:
        found = function(run)
        if hasattr(found, "__await__"):
            import asyncio

            found = asyncio.run(_awaited(found))
        if found is None or isinstance(found, str):
            return "message", found or ""
        if isinstance(found, dict):
            return "message", json.dumps(found)
        return "error", f"{_name(function)} returned a {type(found).__name__}: a text, a dictionary or None is expected"
    except SystemExit as error:
        return "error", f"{_name(function)} left with sys.exit({error.code!r})"
    except BaseException as error:
        import traceback

        traceback.print_exc()
        return "error", f"{_name(function)} failed: {type(error).__name__}: {error}".rstrip(": ")


async def _awaited(found: Any) -> Any:
    return await found


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", function))


def load(target: str) -> Callable[..., Any]:
    """`package.module:function`."""
    import importlib

    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    if not callable(found):
        raise TypeError(f"{target} is not a function")
    return found  # type: ignore[no-any-return]


def main() -> None:
    """In the process: standard output belongs to the message, so that whatever is printed goes to the log instead."""
    given = json.load(sys.stdin)
    voice = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def speak(**words: str) -> None:
        print(json.dumps(words), file=voice, flush=True)

    run = Run(**given["run"], agent=Agent(**given["agent"]), env=dict(os.environ), stop=threading.Event())
    run.say = lambda text: speak(progress=str(text))
    try:
        function = load(given["target"])
    except Exception as error:
        what, text = "missing", f"{given['target']} cannot be loaded: {type(error).__name__}: {error}"
    else:
        what, text = outcome(function, run)
    speak(**{what: text})
    os._exit(0 if what == "message" else 1)


if __name__ == "__main__":
    main()
