"""The demo's inbox: `turn serve` on a temporary desk with a sample project, and a worker with scripted agents.

Server and worker are the real ones, in their own processes. `scripts` has the agents: they print output, ask, wait, and continue
when the page answers them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from pathlib import Path
from typing import Any

from ..client import Client
from ..config import connect, init, person
from ..worker.agents.base import turn_command
from .sample import fill
from .terminal import DemoTerminal

AGENTS = ("coder", "tester", "keeper", "writer")
RELEASE = """\
# A run: it lets agents work, and waits for you in between. While it waits there is no process.


def workflow(prompt):
    run("coder", "Collect what is in it")
    ok = pause("Everything is through. Publish 2.4 to everybody?")
    if not ok:
        return stuck(ok.reason)
    return run("keeper", "Publish it, and watch it for a while")
"""
SEATS = [
    {"id": "plan", "label": "A plan of the deck", "description": "One sees where one sits. Small on a small screen."},
    {"id": "list", "label": "A list of seats", "description": "Easy to read aloud; windows are marked."},
]


def scripts(keys: dict[str, str], second: float) -> dict[str, dict[str, Any]]:
    """agent -> task -> its script. `second`: the length of a second."""

    def talk(*lines: str, pause: float = 3) -> list[dict[str, Any]]:
        return [step for line in lines for step in ({"sleep": pause * second}, {"say": line})]

    def done(summary: str) -> dict[str, Any]:
        return {"signal": {"status": "DONE", "summary": summary}}

    seats = [
        *talk("Reading seats/choose.py and the plan of the deck", "Both ways work. One has to be chosen"),
        {"ask": "How should one choose a seat on a phone?", "options": SEATS, "allow_other": True, "wait": 15 * second,
         "on_timeout": "keep", "context": {"text": "Two of three people book on a phone.", "suggestion": "plan"}},
        *talk("You said: {answer}", "Building it", "pytest -q: 38 passed, 1 failed", "A row too many; mended"),
        *talk("pytest -q: 39 passed"), {"turn": ["note", "{task}", "Seats are chosen by: {answer}"]},
        done("Seats can be chosen on a phone; 39 tests."),
    ]  # fmt: skip
    text = "From today you choose your seat when you book, on a phone, too."
    letter = [
        *talk("Reading what was built", f"Draft: {text}"),
        {"ask": "May this text go out?", "kind": "content", "response_type": "approval", "wait": 15 * second,
         "on_timeout": "keep", "context": {"text": text}},
        *talk("Sent to the printer"), done("The text is out."),
    ]  # fmt: skip
    count = [line for n in range(1, 25) for line in talk(f"fares of week {n:02d}: {700 + n * 37 % 90} tickets, all the same")]
    collect = [*talk("Fares, refunds, seats", "312 tests pass"), done("Fares, refunds and seats")]
    test = [*talk("Choosing a seat with one thumb", "Choosing it twice", "41 passed"), done("Tried with both thumbs.")]
    publish = [*talk("To one pier of six", "To all of them", "Nobody has complained for a minute"), done("Published everywhere")]
    return {
        "coder": {keys["seats"]: seats, keys["run"]: collect},
        "tester": {keys["test"]: test, keys["tidy"]: [*count, done("24 weeks, no difference.")]},
        "keeper": {"*": publish},
        "writer": {"*": letter},
    }


def show(terminal: DemoTerminal) -> int:
    with tempfile.TemporaryDirectory(prefix="yourturn-demo-") as folder:
        env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
        env |= {"YOURTURN_DB": str(Path(folder, ".yourturn", "yourturn.db")), "YOURTURN_PROJECT": "BOOK"}
        terminal.print(terminal.paint("Yourturn: whose turn is it?", "bold"))
        terminal.print_part("Creating two weeks of work of a small ferry company, a few seconds ")
        Path(folder, ".yourturn").mkdir()
        init(env["YOURTURN_DB"], "BOOK", "Booking", env)[0].close()
        fill(env["YOURTURN_DB"], person(env), time.time_ns() // 1000, lambda: terminal.print_part("."))
        terminal.print()
        with connect(env["YOURTURN_DB"], as_=f"human:{person(env)}", project="BOOK", env=env) as desk:
            epic, keys = _prepare(desk, Path(folder), env, terminal.pace)
            return _run(terminal, desk, folder, env, epic, keys)


def _prepare(desk: Client, folder: Path, env: dict[str, str], pace: float) -> tuple[str, dict[str, str]]:
    """Create the tasks of the agents that work during the demo, and their scripts."""
    epic = desk.create("Seats for everybody", type="epic", priority=1)["key"]
    keys: dict[str, str] = {}
    for name, title, role, needs in (
        ("seats", "Choose a seat on the phone", "coder", ()),
        ("tidy", "Compare last year's fares, week by week", "tester", ()),
        ("test", "Test the choice of seats", "tester", ("seats",)),
        ("letter", "Tell the passengers", "writer", ("test",)),
    ):
        keys[name] = desk.create(title, parent=epic, role=role, priority=1, depends_on=[keys[n] for n in needs])["key"]
    (folder / "release.py").write_text(RELEASE, encoding="utf-8")
    words = ("run", "release.py", "Release 2.4: fares, refunds and seats", "--detach", "--parent", epic, "--json")
    created = subprocess.run(turn_command(*words), cwd=folder, env=env, capture_output=True, text=True, check=True)
    keys["run"] = json.loads(created.stdout)["key"]
    for name, script in scripts(keys, pace / 0.7).items():
        (folder / f"{name}.json").write_text(json.dumps(script), encoding="utf-8")
    tables = [f'[agents.{name}]\nadapter = "scripted"\nargv = ["{name}.json"]\n' for name in AGENTS]
    (folder / ".yourturn" / "config.toml").write_text("\n".join(tables), encoding="utf-8")
    return epic, keys


def _run(terminal: DemoTerminal, desk: Client, folder: str, env: dict[str, str], epic: str, keys: dict[str, str]) -> int:
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        """Start in a session of its own, so that Ctrl-C reaches only this process, which stops the others."""
        started.append(
            subprocess.Popen(turn_command(*words), cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, start_new_session=True)
        )  # fmt: skip
        return started[-1]

    try:
        server = start("serve", "--port", "0", "--json")
        assert server.stdout is not None
        ready = server.stdout.readline()
        if not ready.startswith("{"):
            terminal.print_line("desk", f"the server did not start: {ready.strip()}")
            return 1
        _welcome(terminal, desk, json.loads(ready), keys)
        worker = start("work", "--epic", epic, "--parallel", "3")
        threading.Thread(target=_repeat, args=(terminal, worker), daemon=True).start()
        return _follow(terminal, desk, server)
    finally:
        _end(started)


def _welcome(terminal: DemoTerminal, desk: Client, address: dict[str, str], keys: dict[str, str]) -> None:
    opened = _open(address["login"])
    waiting = sum(len(desk.waiting(project=project["key"])) for project in desk.projects())
    link = f"{address['url']}/enter/{desk.create_link()['link']}" if opened else address["login"]
    where = "It opens in your browser. For another one, once:" if opened else "Your inbox. The link lets you in, once:"
    terminal.print(
        f"""
  {where}
  {terminal.paint(link, "bold")}

  Three projects, five agents, and {waiting} questions of every kind wait for you.
  Agents are at work, too: in a moment one of them asks you something.
  Answer it in the page, and see it go on.

  /tasks          the board; {keys["seats"]} asks, {keys["test"]} waits for it
  /tasks/{keys["tidy"]}  a log that grows while you look
  /tasks/{keys["run"]}  a run of release.py: it waits for you, and holds no process
  /stats          how fast people answered in the last weeks

  {terminal.paint("Ctrl-C ends it. Nothing is left behind.", "quiet")}
"""
    )


def _open(link: str) -> bool:
    """Open the link in a graphical browser, if there is one; never in a text browser in this terminal."""
    windows = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if not windows or os.environ.get("SSH_CONNECTION"):
        return False
    try:
        browser = webbrowser.get()
        return type(browser) is not webbrowser.GenericBrowser and browser.open(link)  # a GenericBrowser runs in the terminal
    except webbrowser.Error:
        return False


def _repeat(terminal: DemoTerminal, worker: subprocess.Popen[str]) -> None:
    """Print the worker's lines about its agents."""
    assert worker.stdout is not None
    for line in worker.stdout:
        if line[:1].isdigit() and "  stopped: " not in line and "  Stopping: " not in line:
            terminal.print_line("agent", line.rstrip()[10:])


def _follow(terminal: DemoTerminal, desk: Client, server: subprocess.Popen[str]) -> int:
    """Print what people do, until the server ends."""
    cursor = desk.desk_cursor()
    while server.poll() is None:
        for event in desk.watch(cursor, seconds=1):
            cursor = event["cursor"]
            if event["action"] == "link_use":
                terminal.print_line("person", f"{event['actor'].partition(':')[2]} came in")
            elif event["action"] == "answer" and event["actor"].startswith("human:"):
                asked = ", ".join(q["id"] for q in event["data"].get("closed", ()))
                terminal.print_line("person", f"{event['actor'].partition(':')[2]} answered {asked}, about {event['task']}")
    terminal.print_line("desk", "the server has ended")
    return 1


def _end(started: list[subprocess.Popen[str]]) -> None:
    for signals in (1, 2):  # after a second signal, a worker does not wait for its agents
        for process in started:
            if process.poll() is None:
                process.terminate()
        if signals == 1:
            time.sleep(0.2)
    for process in started:
        try:
            process.wait(8)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
