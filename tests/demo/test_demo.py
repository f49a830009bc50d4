"""`turn demo` as a process, with and without a terminal."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from yourturn import connect

COMMAND = [sys.executable, "-m", "yourturn.demo", "--pace", "0"]
TEXT, WEB = [*COMMAND, "--text"], [*COMMAND[:-1], "0.1"]
LANE = r'data-lane="(\w+)">.*?class="count num">(\d+)<'
LANES = {"ready", "blocked", "working", "human", "review", "done"}
SEATS, PUBLISH = "How should one choose a seat on a phone?", "Everything is through. Publish 2.4 to everybody?"
QUESTION = "Where should a signed-in session live?"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A temporary folder that must be empty afterwards, and the name of an agent, which must have no effect."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM", "CI", "DISPLAY")}
    return {**kept, "TMPDIR": str(tmp_path), "USER": "ana", "TERM": "xterm", "YOURTURN_AGENT": "coder"}


def alive(tmp_path: Path) -> list[str]:
    """Processes that still use this desk."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words, place = (process / "cmdline").read_text(), (process / "environ").read_text(errors="replace")
        except OSError:
            continue
        if ("yourturn" in words or "turn" in words) and str(tmp_path) in place:
            pids.append(process.name)
    return pids


def wait_until_ignored(pid: int, number: int) -> None:
    """Until the process has received a signal once, and ignores it now."""
    ends = time.monotonic() + 30
    while True:
        ignored = int(re.search(r"SigIgn:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())[1], 16)
        if ignored >> (number - 1) & 1:
            return
        assert time.monotonic() < ends, "the signal was not handled"
        os.sched_yield()


def test_story_without_a_terminal(env, tmp_path):
    done = subprocess.run(COMMAND, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert f"asks Q1: “{QUESTION}”" in done.stdout
    assert "turn respond DEMO-1 cookie" in done.stdout
    assert "human:ana answers Q1: cookie" in done.stdout
    assert "reads the answer of human:ana to Q1: cookie" in done.stdout
    log = done.stdout.partition("The history of DEMO-1")[2]
    assert [line.split()[2] for line in log.splitlines() if re.match(r"  \d\d:", line)] == [
        "create", "claim", "note", "ask", "park", "answer", "claim", "complete", "accept",
    ]  # fmt: skip
    claims = re.findall(r"(coder-\d+) \(a new process\) claims (DEMO-\d)", done.stdout)
    assert [task for _, task in claims] == ["DEMO-1", "DEMO-2", "DEMO-1", "DEMO-3", "DEMO-4"]
    assert len({process for process, _ in claims}) == 5
    assert list(tmp_path.iterdir()) == []
    assert alive(tmp_path) == []


class Terminal:
    """The demo in a pseudo-terminal: waits for text, types text."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        ours, theirs = pty.openpty()
        self.fd = ours
        self.process = subprocess.Popen(
            command, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""

    def until(self, words: str, seconds: float = 30) -> None:
        ends = time.monotonic() + seconds
        while words not in self.seen and time.monotonic() < ends and self._more():
            pass
        assert words in self.seen, self.seen

    def _more(self) -> bool:
        if not select.select([self.fd], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError as error:
            assert error.errno == errno.EIO  # the other end is closed
            return False
        self.seen += data.decode()
        return bool(data)

    def type(self, words: str) -> None:
        os.write(self.fd, words.encode())

    def end(self) -> int:
        while self._more() and self.process.poll() is None:
            pass
        return self.process.wait(30)


@pytest.fixture
def terminal(env, request):
    opened = Terminal(getattr(request, "param", TEXT), env)
    yield opened
    if opened.process.poll() is None:
        opened.process.kill()
        opened.process.wait()
    os.close(opened.fd)


TYPED = {"jwt\n": "jwt", "\n": "cookie", "\x04": "cookie", "on paper\n": "on paper"}


@pytest.mark.parametrize(("typed", "value"), TYPED.items(), ids=["choice", "enter", "ctrl-d", "other"])
def test_story_at_a_terminal(terminal, tmp_path, typed, value):
    terminal.until("Your answer [cookie]: ")
    assert list(tmp_path.iterdir()) != []
    terminal.type(typed)
    terminal.until(f"human:ana answers Q1: {value}")
    terminal.until("What to type next")
    assert terminal.end() == 0
    assert "\x1b[1mYourturn" in terminal.seen
    assert list(tmp_path.iterdir()) == []
    assert alive(tmp_path) == []


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_and_cleans_up(terminal, tmp_path, stop):
    terminal.until("Your answer [cookie]: ")
    time.sleep(0.3)  # until it reads: an earlier signal would be noticed only with the next key
    os.kill(terminal.process.pid, stop)
    terminal.until("Nothing is left behind")
    assert terminal.end() == 130
    assert list(tmp_path.iterdir()) == []
    assert alive(tmp_path) == []


def test_another_person_answers_first(terminal, tmp_path, env):
    """The desk is a real one: another client may answer first, and the first answer wins."""
    terminal.until("Your answer [cookie]: ")
    database = next(tmp_path.glob("*/yourturn.db"))
    with connect(str(database), as_="human:ben", env={}) as desk:
        desk.answer("Q1", "jwt")
    terminal.type("cookie\n")
    terminal.until("human:ben answered “In a JWT that the browser keeps”")
    terminal.until("reads the answer of human:ben to Q1: jwt")
    assert terminal.end() == 0


# --- the inbox, at a terminal -----------------------------------------------------------------------------------------


def test_ci_runs_the_story(env, tmp_path):
    opened = Terminal(COMMAND, {**env, "CI": "1"})
    opened.until("What to type next")
    assert opened.end() == 0
    os.close(opened.fd)


@pytest.mark.parametrize("terminal", [WEB], indirect=True)
def test_inbox_with_working_agents(terminal, tmp_path):
    """The real server and a real worker; a person logs in by the link and answers over HTTP."""
    terminal.until("Your inbox. ")
    terminal.until(f"waits for a person (checkpoint): {PUBLISH}")
    terminal.until(f"waits for a person (input): {SEATS}")
    link = re.search(r"(http://127\.0\.0\.1:\d+)/enter/(yl_\w+)", terminal.seen)
    assert link
    person = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    inbox = person.open(f"{link[1]}/enter", f"link={link[2]}".encode()).read().decode()
    assert {lane for lane, _ in re.findall(LANE, person.open(f"{link[1]}/tasks").read().decode())} == LANES
    csrf = re.search(r'data-csrf="(\w+)"', inbox)
    assert csrf
    with connect(str(next(tmp_path.glob("*/.yourturn/yourturn.db"))), as_="agent:looker", project="BOOK", env={}) as desk:
        asked = {q["text"]: q["id"] for q in desk.inbox(project="BOOK")}
        waits = [q for p in desk.projects() for q in desk.inbox(project=p["key"]) if q["text"] not in (SEATS, PUBLISH)]
    assert f"and {len(waits)} questions of every kind wait for you." in terminal.seen
    assert re.search(r"ferry company, a few seconds \.{14}\r?\n", terminal.seen), "a dot for every day"
    answers = {SEATS: {"type": "choice", "value": "plan"}, PUBLISH: {"type": "approval", "value": True}}
    for text, response in answers.items():
        assert text in inbox
        sent = json.dumps({"response": response}).encode()
        headers = {"Content-Type": "application/json", "X-CSRF-Token": csrf[1], "Origin": link[1]}
        request = urllib.request.Request(f"{link[1]}/api/questions/{asked[text]}/answer", sent, headers)
        assert person.open(request).status == 200
    terminal.until("done: Published everywhere")
    terminal.until("done: Seats can be chosen on a phone")
    terminal.until("tester begins: Test the choice of seats")
    os.kill(terminal.process.pid, signal.SIGINT)
    wait_until_ignored(terminal.process.pid, signal.SIGINT)
    os.kill(terminal.process.pid, signal.SIGINT)  # a second Ctrl-C does not interrupt the cleanup
    terminal.until("Stopped. Nothing is left behind.")
    assert terminal.end() == 130
    assert list(tmp_path.iterdir()) == []
    assert alive(tmp_path) == []


MAKE = ["make", "--no-print-directory", "-C", str(Path(__file__).parents[2]), "-o", "setup", f"PY={sys.executable}", "demo"]


@pytest.mark.parametrize("terminal", [MAKE], indirect=True)
def test_ctrl_c_ends_make_demo(terminal, tmp_path):
    """Ctrl-C reaches make, its shell and the demo alike."""
    terminal.until("Ctrl-C ends it.", 60)
    os.killpg(terminal.process.pid, signal.SIGINT)
    terminal.until("Stopped. Nothing is left behind.")
    terminal.end()
    assert "***" not in terminal.seen and "Error" not in terminal.seen, terminal.seen
    assert list(tmp_path.iterdir()) == []
    ends = time.monotonic() + 10
    while alive(tmp_path) and time.monotonic() < ends:  # make may end before the process that printed this
        os.sched_yield()
    assert alive(tmp_path) == []
