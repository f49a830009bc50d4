"""Whatever is thrown at it: a clear error, the right exit code, nothing changed, never a traceback."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.conftest import TURN
from tests.fixtures.command import Turn

KEY = "PROJ-1"

#: command line -> exit code
LINES: list[tuple[int, tuple[str, ...]]] = [
    # unknown names and path tricks
    *[
        (3, ("show", name))
        for name in (
            "PROJ-99",
            "NOPE-1",
            "Q99",
            "../../etc/passwd",
            "",
            " ",
            "'; DROP TABLE tasks; --",
            "PROJ-" + "9" * 30,
            "Ω-1",
            "0",
        )
    ],
    (3, ("claim", "PROJ-99", "--worker-id", "w")),
    (3, ("answer", "Q99", "x")),
    (3, ("create", "x", "--parent", "../..")),
    (3, ("create", "x", "--depends-on", "PROJ-77")),
    (3, ("create", "x", "--project", "NOPE")),
    (3, ("dep", "add", KEY, "PROJ-99")),
    (3, ("log", "PROJ-99")),
    (3, ("tree", "PROJ-99")),
    (3, ("token", "revoke", "nobody")),
    (3, ("user", "remove", "nobody")),
    # wrong state, wrong cell
    (4, ("vet", KEY)),
    (4, ("accept", KEY)),
    (4, ("resolve", KEY)),
    (4, ("approve", KEY)),
    (4, ("respond", KEY, "hello")),
    (4, ("wake", KEY)),
    (4, ("reopen", KEY)),
    (4, ("complete", KEY)),
    (4, ("heartbeat", KEY, "--worker-id", "w9")),
    (4, ("heartbeat", KEY, "--claim", "garbage")),
    (4, ("release", KEY, "--claim", "PROJ-1.1.00")),
    (4, ("dep", "add", KEY, KEY)),
    (4, ("defer", KEY, "--until", "2020-01-01")),
    (4, ("project", "create", "PROJ")),
    # not allowed
    (5, ("approve", KEY, "--as", "agent:coder")),
    (5, ("token", "create", "x", "--as", "agent:coder")),
    # empty, too long, not text
    (6, ("create", "")),
    (6, ("create", "   ")),
    (6, ("create", "x" * 301)),
    (6, ("create", "bad\x1b[2Jtitle")),
    (6, ("create", "two\nlines")),
    (6, ("create", "x", "--label", "a b\tc\x07")),
    (6, ("create", "x", "--priority", "9")),
    (6, ("create", "x", "--priority", "high")),
    (6, ("create", "x", "--role", "a b")),
    (6, ("create", "x", "--max-retries", "0")),
    (6, ("note", KEY, "")),
    (6, ("note", KEY, " \n\t ")),
    (6, ("ask", KEY, "")),
    (6, ("ask", KEY, "x", "--timeout", "1m")),
    (6, ("ask", KEY, "x", "--timeout", "2 days and a bit")),
    (6, ("ask", KEY, "x", "--kind", "approval", "--default", "yes")),
    (6, ("ask", KEY, "x", "--non-blocking")),
    (6, ("ask", KEY, "x", "--option", "a", "--option", "a")),
    (6, ("ask", KEY, "x", "--option", "a", "--default", "z")),
    (6, ("ask", KEY, "x", "--response-type", "choice")),
    (6, ("ask", KEY, "x", "--confidence", "2")),
    (6, ("ask", KEY, "x", "--kind", "permission", "--action", '{"a": NaN}')),
    (6, ("ask", KEY, "x", "--kind", "permission", "--action", '{"a": 1, "a": 2}')),
    (6, ("ask", KEY, "x", "--kind", "permission", "--action", "{" * 5000)),
    (6, ("ask", KEY, "x", "--metadata", "[1]")),
    (6, ("list", "--state", "bogus")),
    (6, ("list", "--awaiting", "bogus")),
    (6, ("list", "--expiring", "soon")),
    (6, ("update", KEY, "--title", "")),
    (6, ("update", KEY, "--requires", "applause")),
    (6, ("defer", KEY, "--until", "someday")),
    (6, ("project", "create", "lower case")),
    (6, ("project", "set", "lease", "-1")),
    (6, ("project", "set", "no_such_thing", "1")),
    (6, ("token", "create", "a b")),
    (6, ("user", "add", "../ana")),
    # usage
    (2, ("frobnicate",)),
    (2, ("claim",)),
    (2, ("create",)),
    (2, ("update", KEY)),
    (2, ("list", "--limit", "0")),
    (2, ("list", "--limit", "many")),
    (2, ("create", "x", "--type", "sandwich")),
    (2, ("ask", KEY, "x", "--kind", "riddle")),
    (2, ("decompose", KEY)),
    (2, ("show", KEY, "--as", "martian:x")),
    (2, ("show", KEY, "--db", "mysql://localhost/x")),
    (2, ("audit", "frobnicate")),
    (2, ("inbox", "send", KEY)),
]


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Turn:
    folder = tmp_path_factory.mktemp("bad")
    turn = Turn(folder)
    turn("init", "--key", "PROJ")
    turn("create", "The only task")
    return turn


def _rows(turn: Turn) -> list[tuple[object, ...]]:
    """Every row of every table, read by another program."""
    with sqlite3.connect(f"file:{turn.folder}/.yourturn/yourturn.db?mode=ro", uri=True) as db:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return [(table, *row) for table in tables for row in db.execute(f"SELECT * FROM {table}")]


@pytest.mark.parametrize(
    ("code", "line"), LINES, ids=lambda value: ascii(" ".join(value))[:60] if isinstance(value, tuple) else ""
)
def test_nothing_changes(bad: Turn, code: int, line: tuple[str, ...]) -> None:
    before = _rows(bad)
    error = bad(*line, exit=code)
    assert error["message"]
    assert _rows(bad) == before


def test_errors_are_plain_words_too(bad: Turn) -> None:
    for code, line in LINES[::6]:
        words = bad.text(*line, exit=code)
        assert words.startswith("Error: ")
        assert "\x1b" not in words


TEXTS = {"10 MB": b"x" * 10_000_000, "not UTF-8": b"\xff\xfe broken", "NUL": b"nul \x00 inside", "empty": b""}
TAKERS = [("note", KEY, "-"), ("ask", KEY, "-"), ("flag", KEY, "-"), ("create", "-"), ("create", "x", "--description", "-")]
CASES = [(name, line) for name in TEXTS for line in TAKERS if (name, line[-2]) != ("empty", "--description")]


@pytest.mark.parametrize(("name", "line"), CASES, ids=lambda value: value if isinstance(value, str) else " ".join(value))
def test_bad_texts_on_standard_input(bad: Turn, name: str, line: tuple[str, ...]) -> None:
    before = _rows(bad)
    done = subprocess.run([TURN, *line], cwd=bad.folder, env=bad.env, input=TEXTS[name], capture_output=True, timeout=60)
    assert done.returncode == 6, done.stderr
    assert done.stderr.startswith(b"Error: ")
    assert _rows(bad) == before


def test_broken_utf8_as_an_argument(bad: Turn) -> None:
    before = _rows(bad)
    for line in ([b"create", b"\xff\xfe"], [b"note", KEY.encode(), b"\xc3"], [b"show", b"\xff"]):
        done = subprocess.run([TURN.encode(), *line], cwd=bad.folder, env=bad.env, capture_output=True, timeout=60)
        assert done.returncode in (3, 6), done.stderr
        assert done.stderr.startswith(b"Error: ")
    assert _rows(bad) == before


def test_words_that_look_like_options(here: Turn) -> None:
    """Behind `--` a word is a word, wherever the options stand."""
    assert "Created PROJ-1: -n" in here.text("create", "--priority", "1", "--", "-n")
    assert "Created PROJ-2: --help" in here.text("create", "--", "--help")
    here.text("note", KEY, "--as", "human:ana", "--", "--draft")
    task = here("show", KEY)
    assert (task["priority"], task["notes"][0]["text"]) == (1, "--draft")
    assert here("create", "-n", exit=2)["code"] == "usage"


def test_escapes_are_kept_but_never_shown(here: Turn) -> None:
    evil = "look \x1b[2J\x1b]0;owned\x07 \u202egnp.exe \u200b \x9b31m \r over"
    here("create", "Harmless")
    here("note", "PROJ-1", evil)
    here("ask", "PROJ-1", evil, "--context", evil, "--option", "a=" + evil, "--option", "b")
    here("create", "Second", "--description", evil)
    here("claim", "PROJ-2", "--worker-id", "w1")
    here("fail", "PROJ-2", "--reason", evil)
    shown = ""
    for line in (
        ("show", "PROJ-1"),
        ("show", "Q1"),
        ("show", "PROJ-2"),
        ("list",),
        ("list", "--awaiting"),
        ("inbox",),
        ("tree",),
        ("log",),
        (),
    ):
        shown += here.text(*line)
        shown += here.run(*line, "--json").stdout
    for sign in "\x1b\x07\u202e\u200b\x9b\r":
        assert sign not in shown, f"U+{ord(sign):04X}"
    assert "<ESC>[2J" in shown
    assert "<U+202E>" in shown
    assert here("show", "PROJ-1")["notes"][0]["text"] == evil


class TestDatabases:
    def test_no_desk(self, tmp_path: Path) -> None:
        error = Turn(tmp_path)("list", exit=3)
        assert error["code"] == "no_desk"
        assert "turn init" in error["hint"]

    @pytest.mark.parametrize("what", ["text", "folder", "empty", "foreign", "random"])
    def test_wrong_file(self, tmp_path: Path, what: str) -> None:
        path = tmp_path / "thing.db"
        if what == "text":
            path.write_text("just a text file, long enough to be looked at\n" * 100)
        elif what == "folder":
            path.mkdir()
        elif what == "empty":
            path.touch()
        elif what == "random":
            path.write_bytes(os.urandom(8192))
        else:
            with sqlite3.connect(path) as db:
                db.execute("CREATE TABLE tasks (id INTEGER)")
        before = path.read_bytes() if path.is_file() else b""
        error = Turn(tmp_path)("list", "--db", str(path), exit=1)
        assert error["code"] == "bad_database"
        assert (path.read_bytes() if path.is_file() else b"") == before
        if what in ("text", "foreign", "random"):
            Turn(tmp_path)("init", "--db", str(path), exit=1)
            assert path.read_bytes() == before

    def test_a_folder_that_cannot_be_written(self, tmp_path: Path) -> None:
        turn = Turn(tmp_path)
        error = turn("init", "--db", "/proc/1/no/desk.db", exit=1)
        assert error["code"] == "store"
        assert "cannot be created" in error["message"]

    def test_locked(self, here: Turn) -> None:
        """Writers wait, then say so; readers do not even notice."""
        here("create", "Login")
        holder = sqlite3.connect(here.folder / ".yourturn" / "yourturn.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        try:
            error = here("note", "PROJ-1", "hello", exit=1, env={"YOURTURN_BUSY": "0.3"})
            assert error["code"] == "busy"
            assert "Nothing was changed" in error["hint"]
            assert here("show", "PROJ-1")["notes"] == []
        finally:
            holder.close()
        assert here("note", "PROJ-1", "hello")["notes"]

    def test_no_postgres(self, tmp_path: Path) -> None:
        error = Turn(tmp_path)("list", "--db", "postgresql://ana:secret@127.0.0.1:1/x", exit=1)
        assert error["code"] == "store"
        assert "does not answer" in error["message"]
        assert "secret" not in error["message"]


def test_broken_utf8_in_filters_and_names(bad: Turn) -> None:
    before = _rows(bad)
    broken = b"\xff"
    lines = [[b"list", b"--search", broken], [b"list", b"--label", broken], [b"ready", b"--role", broken]]
    lines += [[b"log", b"--actor", broken], [b"inbox", b"--reviewer", broken]]
    for line in lines:
        done = subprocess.run([TURN.encode(), *line], cwd=bad.folder, env=bad.env, capture_output=True, timeout=60)
        assert (done.returncode, done.stderr[:7]) == (6, b"Error: "), line
    for name in ("YOURTURN_AGENT", "YOURTURN_TOKEN"):
        for value in ("\udcff", "\x1b[2J", "a b"):
            done = subprocess.run([TURN, "list"], cwd=bad.folder, env={**bad.env, name: value}, capture_output=True, timeout=60)
            assert done.returncode in (5, 6), (name, value, done.stderr)
            assert done.stderr.startswith(b"Error: ")
    assert _rows(bad) == before


def test_a_bug_is_a_line_not_a_traceback(here: Turn) -> None:
    """A table was dropped outside the desk."""
    with sqlite3.connect(here.folder / ".yourturn" / "yourturn.db") as db:
        db.execute("DROP TABLE events")
    here("create", "Still works?", exit=1)
    assert here.text("list", exit=0).startswith("No tasks")


def test_closed_and_full_streams(here: Turn) -> None:
    """Nothing to read from, nowhere to write to: no traceback, and what was said is done or is not."""

    def shell(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", "-c", f"{TURN} {line}"], cwd=here.folder, env=here.env, capture_output=True, text=True)

    here("create", "Login")
    for line, code in (
        ("list --json >&-", 0),
        ("list >/dev/full", 1),
        ("show 99 2>&-", 3),
        ("show 99 --json 2>&-", 3),
        ("note 1 - <&-", 6),
        ("respond 1 - <&-", 6),
        ("list | true", 0),
        ("create Second >/dev/full", 1),
    ):
        done = shell(line)
        assert "Traceback" not in done.stderr, (line, done.stderr)
        assert done.returncode == code, (line, done.returncode, done.stderr)
    assert [task["title"] for task in here("list")] == ["Login", "Second"]
