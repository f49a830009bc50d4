"""The scripted agent: a process that plays steps from a JSON file, without any model.

    python -m yourturn.worker.agents.scripted_process SCRIPT.json --session ID [--resume]

A script is a list of steps, or an object with a list per task ({"PROJ-1": […], "*": […]}). Where a session stands is kept in
a file, so that a resumed one goes on behind the question it asked. `{answer}` in a text is the last answer.

| step                                  | plays                                                                       |
|---------------------------------------|-----------------------------------------------------------------------------|
| {"say": "…"}, {"stderr": "…"}         | a line of the message; a line on standard error                             |
| {"write": "a.txt", "text": "…"}       | a file (`append` adds to it)                                                |
| {"brief": "a.txt"}                    | keeps what it was told in a file                                            |
| {"sleep": 0.5}                        | works hard                                                                  |
| {"turn": ["note", "PROJ-1", "hi"]}    | a `turn` command; `expect` names its exit code                              |
| {"run": "make"}                       | a shell command                                                             |
| {"ask": "…", "options": […], …}       | a question; waits for a quick person, else ends the turn until it is resumed |
| {"end": true}                         | ends the turn; a resumed session goes on behind it                          |
| {"promise": "COMPLETE"}               | a promise tag                                                               |
| {"result": {…}}, {"signal": {…}}      | a JSON result; a signal file                                                |
| {"print": 50, "line": true}           | megabytes, in many lines or in one                                          |
| {"stubborn": true}                    | does not end when it is asked to                                            |
| {"child": 60}                         | leaves a child behind that keeps the pipe open                              |
| {"hang": true}, {"crash": 3}          | never ends; ends at once, with a code or "SIGKILL"                          |
| {"lose": true}                        | forgets the session                                                         |
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn


class Actor:
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
            known = [name for name in step if hasattr(Actor, f"do_{name}")]
            if len(known) != 1:
                leave(2, f"Step {self.state['at'] + 1} is not one of the known steps: {json.dumps(step)}")
            if known[0] != "ask":  # a question is passed when it is answered
                self.state["at"] += 1
                self.save()
            getattr(self, f"do_{known[0]}")(step[known[0]], step)

    def text(self, given: Any) -> str:
        return str(given).replace("{answer}", str(self.state["answer"])).replace("{task}", os.environ.get("YOURTURN_TASK", ""))

    # --- steps ------------------------------------------------------------------------------------------------------

    def do_say(self, given: Any, step: dict[str, Any]) -> None:
        print(self.text(given), flush=True)

    def do_stderr(self, given: Any, step: dict[str, Any]) -> None:
        print(self.text(given), file=sys.stderr, flush=True)

    def do_write(self, given: Any, step: dict[str, Any]) -> None:
        path = Path(self.text(given))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text(step.get("text", "")), encoding="utf-8")

    def do_append(self, given: Any, step: dict[str, Any]) -> None:
        with Path(self.text(given)).open("a", encoding="utf-8") as file:
            file.write(self.text(step.get("text", "")))

    def do_brief(self, given: Any, step: dict[str, Any]) -> None:
        Path(given).write_text(self.brief, encoding="utf-8")

    def do_sleep(self, given: Any, step: dict[str, Any]) -> None:
        time.sleep(float(given))

    def do_turn(self, given: Any, step: dict[str, Any]) -> None:
        from .base import turn_command

        self._command([*turn_command(), *map(self.text, given)], step)

    def do_run(self, given: Any, step: dict[str, Any]) -> None:
        self._command(["/bin/sh", "-c", self.text(given)], step)

    def _command(self, argv: list[str], step: dict[str, Any]) -> None:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=None if step.get("loud") else 2)
        if "expect" in step and done.returncode != step["expect"]:
            leave(1, f"{json.dumps(step)} ended with exit code {done.returncode}")

    def do_ask(self, given: Any, step: dict[str, Any]) -> None:
        from ...config import connect
        from ..claude.hook_question import step_of

        fields = {name: value for name, value in step.items() if name not in ("ask", "wait")}
        wait = float(step.get("wait", os.environ.get("YOURTURN_ASK_WAIT", "45")))
        with connect() as desk:
            if self.state["question"] is None:
                task, claim = os.environ["YOURTURN_TASK"], os.environ.get("YOURTURN_CLAIM")
                found = desk.ask(task, self.text(given), claim=claim, step=step_of(os.environ, claim), **fields)
                self.state["question"] = found["id"]
                self.save()
                print(f"Asked {found['id']}", flush=True)
            found = desk.wait_for(self.state["question"], wait)
        if found["status"] == "pending" and found["blocking"]:
            leave(0)
        response = found["response"] or {}
        value = response.get("value")
        said = found["default"] if found["status"] == "pending" else response.get("text") if value is None else value
        self.state.update(at=self.state["at"] + 1, question=None, answer=said)
        self.save()

    def do_end(self, given: Any, step: dict[str, Any]) -> None:
        leave(0)

    def do_promise(self, given: Any, step: dict[str, Any]) -> None:
        print(f"<promise>{self.text(given)}</promise>", flush=True)

    def do_result(self, given: Any, step: dict[str, Any]) -> None:
        print(json.dumps(given), flush=True)

    def do_signal(self, given: Any, step: dict[str, Any]) -> None:
        folder = Path(os.environ.get("YOURTURN_SIGNALS", ".agents/signals"))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{os.environ.get('YOURTURN_AGENT', 'agent')}.json"
        path.write_text(given if isinstance(given, str) else json.dumps(given), encoding="utf-8")

    def do_print(self, given: Any, step: dict[str, Any]) -> None:
        piece = "x" * 1024 if step.get("line") else "x" * 1023 + "\n"
        for _ in range(int(float(given) * 1024)):
            sys.stdout.write(piece)
        sys.stdout.write("\n")
        sys.stdout.flush()

    def do_stubborn(self, given: Any, step: dict[str, Any]) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def do_child(self, given: Any, step: dict[str, Any]) -> None:
        child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({float(given)})"])
        if "pid" in step:
            Path(step["pid"]).write_text(str(child.pid), encoding="utf-8")

    def do_hang(self, given: Any, step: dict[str, Any]) -> None:
        while True:
            time.sleep(3600)

    def do_crash(self, given: Any, step: dict[str, Any]) -> None:
        if isinstance(given, str):
            os.kill(os.getpid(), getattr(signal, given))
        leave(int(given))

    def do_lose(self, given: Any, step: dict[str, Any]) -> None:
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
    import argparse

    parser = argparse.ArgumentParser(prog="actor")
    parser.add_argument("script")
    parser.add_argument("--session", required=True)
    parser.add_argument("--place", type=Path, default=Path())
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args(words)
    try:
        script = json.loads(Path(given.script).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        leave(2, f"{given.script} cannot be read: {error}")
    actor = Actor(given.session, given.place, sys.stdin.read())
    if given.resume:
        if not actor.file.exists():
            leave(1, f"No conversation found with session ID: {given.session}")
        actor.state = json.loads(actor.file.read_text(encoding="utf-8"))
    actor.save()
    actor.play(steps_for(script))
    leave(0)


if __name__ == "__main__":
    main(sys.argv[1:])
