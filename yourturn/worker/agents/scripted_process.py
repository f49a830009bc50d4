"""The process of a scripted agent: plays steps from a JSON file, without a model.

    python -m yourturn.worker.agents.scripted_process SCRIPT.json --session ID [--resume]

A script is a list of steps, or an object with a list per task ({"PROJ-1": […], "*": […]}). The position of a
session is stored in a file, so that a resumed session goes on after its question. `{answer}` in a text is the last answer.

| step                                  | plays                                                                       |
|---------------------------------------|-----------------------------------------------------------------------------|
| {"say": "…"}, {"stderr": "…"}         | a line of the message; a line on standard error                             |
| {"write": "a.txt", "text": "…"}       | a file (`append` adds to it)                                                |
| {"brief": "a.txt"}                    | writes the brief to a file                                                  |
| {"sleep": 0.5}                        | takes time                                                                  |
| {"turn": ["note", "PROJ-1", "hi"]}    | a `turn` command; `expect` names its exit code                              |
| {"run": "make"}                       | a shell command                                                             |
| {"ask": "…", "options": […], …}       | a question; waits for the answer, or ends the turn until it is resumed       |
| {"end": true}                         | ends the turn; a resumed session goes on after it                           |
| {"promise": "COMPLETE"}               | a promise tag                                                               |
| {"result": {…}}, {"signal": {…}}      | a JSON result; a signal file                                                |
| {"print": 50, "line": true}           | megabytes, in many lines or in one                                          |
| {"stubborn": true}                    | ignores SIGTERM and SIGINT                                                  |
| {"child": 60}                         | starts a child process that keeps the pipe open                             |
| {"hang": true}, {"crash": 3}          | never ends; ends at once, with a code or "SIGKILL"                          |
| {"lose": true}                        | forgets the session                                                         |
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from ..claude.hook_question import step_of
from .base import turn_command


class ScriptedSession:
    def __init__(self, session: str, place: Path, brief: str) -> None:
        self.file = place / f"{session}.actor.json"
        self.brief = brief
        self.state: dict[str, Any] = {"at": 0, "answer": "", "question": None}

    def save(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.state), encoding="utf-8")
        new.replace(self.file)

    def play(self, steps: list[dict[str, Any]]) -> None:
        while self.state["at"] < len(steps):
            step = steps[self.state["at"]]
            names = [name for name in step if hasattr(ScriptedSession, f"do_{name}")]
            if len(names) != 1:
                leave(2, f"Step {self.state['at'] + 1} is not one of the known steps: {json.dumps(step)}")
            if names[0] != "ask":  # a question is passed only when it is answered
                self.state["at"] += 1
                self.save()
            getattr(self, f"do_{names[0]}")(step[names[0]], step)

    def text(self, value: Any) -> str:
        return str(value).replace("{answer}", str(self.state["answer"])).replace("{task}", os.environ.get("YOURTURN_TASK", ""))

    # --- steps ------------------------------------------------------------------------------------------------------

    def do_say(self, value: Any, step: dict[str, Any]) -> None:
        print(self.text(value), flush=True)

    def do_stderr(self, value: Any, step: dict[str, Any]) -> None:
        print(self.text(value), file=sys.stderr, flush=True)

    def do_write(self, value: Any, step: dict[str, Any]) -> None:
        path = Path(self.text(value))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text(step.get("text", "")), encoding="utf-8")

    def do_append(self, value: Any, step: dict[str, Any]) -> None:
        with Path(self.text(value)).open("a", encoding="utf-8") as file:
            file.write(self.text(step.get("text", "")))

    def do_brief(self, value: Any, step: dict[str, Any]) -> None:
        Path(value).write_text(self.brief, encoding="utf-8")

    def do_sleep(self, value: Any, step: dict[str, Any]) -> None:
        time.sleep(float(value))

    def do_turn(self, value: Any, step: dict[str, Any]) -> None:
        self._command([*turn_command(), *map(self.text, value)], step)

    def do_run(self, value: Any, step: dict[str, Any]) -> None:
        self._command(["/bin/sh", "-c", self.text(value)], step)

    def _command(self, argv: list[str], step: dict[str, Any]) -> None:
        process = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=None if step.get("loud") else 2)
        if "expect" in step and process.returncode != step["expect"]:
            leave(1, f"{json.dumps(step)} ended with exit code {process.returncode}")

    def do_ask(self, value: Any, step: dict[str, Any]) -> None:
        # late: most scripts ask nothing, and opening the desk loads 60 modules
        from ...config import connect

        fields = {name: value for name, value in step.items() if name not in ("ask", "wait")}
        wait = float(step.get("wait", os.environ.get("YOURTURN_ASK_WAIT", "45")))
        with connect() as desk:
            if self.state["question"] is None:
                task, claim = os.environ["YOURTURN_TASK"], os.environ.get("YOURTURN_CLAIM")
                question = desk.ask(task, self.text(value), claim=claim, step=step_of(os.environ, claim), **fields)
                self.state["question"] = question["id"]
                self.save()
                print(f"Asked {question['id']}", flush=True)
            question = desk.wait_for(self.state["question"], wait)
        if question["status"] == "pending" and question["blocking"]:
            leave(0)
        response = question["response"] or {}
        value = response.get("value")
        answer = question["default"] if question["status"] == "pending" else response.get("text") if value is None else value
        self.state.update(at=self.state["at"] + 1, question=None, answer=answer)
        self.save()

    def do_end(self, value: Any, step: dict[str, Any]) -> None:
        leave(0)

    def do_promise(self, value: Any, step: dict[str, Any]) -> None:
        print(f"<promise>{self.text(value)}</promise>", flush=True)

    def do_result(self, value: Any, step: dict[str, Any]) -> None:
        print(json.dumps(value), flush=True)

    def do_signal(self, value: Any, step: dict[str, Any]) -> None:
        folder = Path(os.environ.get("YOURTURN_SIGNALS", ".agents/signals"))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{os.environ.get('YOURTURN_AGENT', 'agent')}.json"
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")

    def do_print(self, value: Any, step: dict[str, Any]) -> None:
        piece = "x" * 1024 if step.get("line") else "x" * 1023 + "\n"
        for _ in range(int(float(value) * 1024)):
            sys.stdout.write(piece)
        sys.stdout.write("\n")
        sys.stdout.flush()

    def do_stubborn(self, value: Any, step: dict[str, Any]) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def do_child(self, value: Any, step: dict[str, Any]) -> None:
        child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({float(value)})"])
        if "pid" in step:
            Path(step["pid"]).write_text(str(child.pid), encoding="utf-8")

    def do_hang(self, value: Any, step: dict[str, Any]) -> None:
        while True:
            time.sleep(3600)

    def do_crash(self, value: Any, step: dict[str, Any]) -> None:
        if isinstance(value, str):
            os.kill(os.getpid(), getattr(signal, value))
        leave(int(value))

    def do_lose(self, value: Any, step: dict[str, Any]) -> None:
        self.file.unlink(missing_ok=True)


def leave(code: int, words: str = "") -> NoReturn:
    if words:
        print(words, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def steps_for(script: Any) -> list[dict[str, Any]]:
    if isinstance(script, dict):
        script = script.get(os.environ.get("YOURTURN_TASK", ""), script.get("*", []))
    if not isinstance(script, list) or not all(isinstance(step, dict) for step in script):
        leave(2, "A script is a list of steps, or an object with a list of steps per task.")
    return script


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="actor")
    parser.add_argument("script")
    parser.add_argument("--session", required=True)
    parser.add_argument("--place", type=Path, default=Path())
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args(words)
    try:
        script = json.loads(Path(args.script).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        leave(2, f"{args.script} cannot be read: {error}")
    session = ScriptedSession(args.session, args.place, sys.stdin.read())
    if args.resume:
        if not session.file.exists():
            leave(1, f"No conversation found with session ID: {args.session}")
        session.state = json.loads(session.file.read_text(encoding="utf-8"))
    session.save()
    session.play(steps_for(script))
    leave(0)


if __name__ == "__main__":
    main(sys.argv[1:])
