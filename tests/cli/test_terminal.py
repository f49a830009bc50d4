"""What only happens on a real terminal: colour, width, questions before something ends; and completion in a real shell."""

from __future__ import annotations

import os
import pty
import select
import shutil
import struct
import subprocess
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

from tests.conftest import TURN
from tests.fixtures.command import Turn


def type_in(turn: Turn, *words: str, keys: str = "", columns: int = 80, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Run the command on a terminal, type, and return its exit code and everything that was on the screen."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [TURN, *words],
        cwd=turn.folder,
        env={**turn.env, "TERM": "xterm", **(env or {})},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    if keys:
        os.write(ours, keys.encode())
    seen = b""
    while True:
        ready, _, _ = select.select([ours], [], [], 30)
        assert ready, seen
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(ours)
    return process.wait(30), seen.decode().replace("\r\n", "\n")


@pytest.fixture
def waiting(here: Turn) -> Turn:
    here("create", "A task whose title is much longer than a narrow terminal can ever show in one line of eighty signs")
    here("flag", "PROJ-1", "JWT or sessions?", "--kind", "input")
    return here


def test_colour_is_for_terminals(waiting: Turn) -> None:
    assert "\x1b[1m" in type_in(waiting, "show", "PROJ-1")[1]
    assert "\x1b" not in type_in(waiting, "show", "PROJ-1", env={"NO_COLOR": "1"})[1]
    assert "\x1b" not in type_in(waiting, "show", "PROJ-1", env={"TERM": "dumb"})[1]
    assert "\x1b" not in type_in(waiting, "show", "PROJ-1", "--json")[1]
    assert "\x1b" not in waiting.text("show", "PROJ-1")


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_lists_fit_the_terminal(waiting: Turn, columns: int) -> None:
    from yourturn.display.terminal import cells

    for line in (("list",), ("inbox",), ("tree",), ()):
        code, seen = type_in(waiting, *line, columns=columns, env={"NO_COLOR": "1"})
        assert code == 0
        rows = [row for row in seen.splitlines() if "PROJ-1" in row and not row.startswith(("Answer", "Next"))]
        assert rows
        assert max(cells(row) for row in rows) <= columns, rows
        assert all("PROJ-1" in row for row in rows)


def test_a_narrow_screen_shows_what_a_run_waits_for(waiting: Turn) -> None:
    (waiting.folder / "deploy.py").write_text('def workflow(prompt):\n    step(str, "a long word")\n    pause("Ship it?")\n')
    waiting("run", "deploy.py", exit=7)
    seen = type_in(waiting, "list", "--runs", columns=40, env={"NO_COLOR": "1"})[1]
    assert "PROJ-2  deploy  Ship it?" in seen.splitlines()
    seen = type_in(waiting, "show", "2", columns=40, env={"NO_COLOR": "1"})[1]
    assert all(len(line) <= 40 for line in seen.splitlines() if line.startswith("  #"))


def test_a_narrow_screen_shows_what_is_asked(waiting: Turn) -> None:
    seen = type_in(waiting, "inbox", columns=40, env={"NO_COLOR": "1"})[1]
    assert "\n      JWT or sessions?\n" in seen, seen
    assert max(map(len, seen.splitlines()[:3])) <= 40


def test_a_no_that_ends_the_task_asks_first(waiting: Turn) -> None:
    before = waiting("show", "PROJ-1")
    code, seen = type_in(waiting, "reject", "PROJ-1", "no way", keys="n\n")
    assert "This answer cancels PROJ-1. Type PROJ-1 to confirm:" in seen
    assert code == 6
    assert waiting("show", "PROJ-1") == before
    code, seen = type_in(waiting, "reject", "PROJ-1", "no way", keys="PROJ-1\n")
    assert code == 0
    assert waiting.state("PROJ-1") == "cancelled"


@pytest.mark.parametrize(
    ("command", "typed"), [(("signal", "PROJ-1", "--status", "STOP"), ""), (("continue", "PROJ-1"), "no\nnot wanted\n")]
)
def test_signal_and_continue_ask_before_a_task_is_cancelled(here: Turn, command: tuple[str, ...], typed: str) -> None:
    here("create", "A")
    here("flag", "PROJ-1", "Delete them?", "--kind", "input", "--response-type", "approval")
    code, seen = type_in(here, *command, keys=f"{typed}n\n")
    assert "This answer cancels PROJ-1. Type PROJ-1 to confirm:" in seen
    assert code != 0 and here.state("PROJ-1") == "human"
    type_in(here, *command, keys=f"{typed}PROJ-1\n")
    assert here.state("PROJ-1") == "cancelled"


def test_a_no_that_ends_nothing_does_not_ask(here: Turn) -> None:
    here("create", "Login", "--awaiting", "approval")
    code, seen = type_in(here, "reject", "PROJ-1", "softer")
    assert (code, here.state("PROJ-1")) == (0, "ready")
    assert "Type" not in seen


def test_yes_skips_the_question(waiting: Turn) -> None:
    assert type_in(waiting, "reject", "PROJ-1", "no", "--yes")[0] == 0
    assert waiting.state("PROJ-1") == "cancelled"


def test_one_after_the_other(waiting: Turn) -> None:
    waiting("create", "Second")
    waiting("ask", "PROJ-2", "Tabs or spaces?", "--option", "tabs", "--option", "spaces")
    code, seen = type_in(waiting, "respond", "--all", keys="\nspaces\n")
    assert code == 0
    assert "Tabs or spaces?" in seen
    assert (waiting("show", "Q1")["status"], waiting("show", "Q2")["response"]["value"]) == ("pending", "spaces")


def test_one_answer_for_several_questions_lists_them_first(waiting: Turn) -> None:
    waiting("create", "Second")
    waiting("ask", "PROJ-2", "Tabs or spaces?")
    code, seen = type_in(waiting, "respond", "--all", "as you like", keys="n\n")
    assert "PROJ-2  Tabs or spaces?" in seen and "Send this answer to 2 questions? [y/N]" in seen
    assert (code, waiting.state("PROJ-2")) == (6, "human")
    assert type_in(waiting, "respond", "--all", "as you like", keys="y\n")[0] == 0
    assert waiting.state("PROJ-2") == "ready"


def test_one_after_the_other_asks_before_a_task_is_cancelled(here: Turn) -> None:
    """Also where the one answer is given beforehand; and the line says what came of it, and to which question."""
    here("create", "A")
    here("ask", "PROJ-1", "Delete them?", "--response-type", "approval")
    seen = type_in(here, "respond", "--all", keys="no\nn\n")[1]
    assert "This answer cancels PROJ-1. Type PROJ-1 to confirm:" in seen and "✗ Q1: Nothing was changed" in seen
    assert here.state("PROJ-1") == "human"
    seen = type_in(here, "respond", "--all", keys="no\nPROJ-1\n")[1]
    assert "✓ Q1 (Delete them?): " in seen and "said no. PROJ-1 is 'cancelled'" in seen
    here("create", "B")
    here("create", "C", "--depends-on", "PROJ-2")
    here("fail", "PROJ-2", "--reason", "broken")
    assert "This answer cancels PROJ-3." in type_in(here, "respond", "--all", "cancel", keys="n\n")[1]
    assert here.state("PROJ-3") == "human"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(here: Turn, shell: str) -> None:
    script = here.text("completion", shell)
    assert "turn __complete" in script
    found = shutil.which(shell)
    if found:
        checked = subprocess.run([found, "-n"], input=script, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr


def test_completion_in_bash(waiting: Turn) -> None:
    def complete(*words: str) -> list[str]:
        line = " ".join(f"'{word}'" for word in ("turn", *words))
        script = f'eval "$(turn completion bash)"; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _turn; '
        script += 'printf "%s\\n" "${COMPREPLY[@]}"'
        env = {**waiting.env, "PATH": f"{Path(TURN).parent}:{os.environ['PATH']}"}
        return subprocess.run(["bash", "-c", script], cwd=waiting.folder, env=env, capture_output=True, text=True).stdout.split()

    assert complete("li") == ["list"]
    (waiting.folder / "flows").mkdir()
    (waiting.folder / "flows" / "feature.lua").touch()
    assert complete("run", "fl") == ["flows/"] and complete("run", "flows/f") == ["flows/feature.lua"]
    assert complete("run", "PR") == complete("run", "nowhere/x") == []
    assert complete("ticket", "dec") == ["decompose"]
    assert complete("list", "--aw") == ["--awaiting"]
    assert complete("list", "--awaiting", "che") == ["checkpoint"]
    assert complete("show", "") == ["PROJ-1", "Q1"]
    assert complete("approve", "Q") == ["Q1"]
    assert complete("nonsense", "x") == []


def test_every_command_has_help_with_examples(here: Turn) -> None:
    from yourturn.cli.command_table import COMMANDS

    for name, command in COMMANDS.items():
        if name not in ("overview", "help"):
            text = here.text(name, "--help")
            assert f"usage: turn {name}" in text
            assert "examples:" in text
            assert command.examples[0] in text
    for line in ((), ("help",), ("--help",)):
        if line:
            assert "Questions:" in here.text(*line)
    assert here.text("--version").startswith("turn 0.")


def test_every_example_is_understood() -> None:
    """Each example in a help text parses, and names the command it stands under."""
    import shlex
    from importlib import import_module

    from yourturn.cli.command_table import COMMANDS
    from yourturn.cli.parser import parser_for

    count = 0
    for name, command in COMMANDS.items():
        module = import_module(command.home)
        for example in command.examples:
            if not example.startswith("turn "):
                continue
            words = shlex.split(example.partition(" > ")[0])[1:]
            assert words[0] == name, example
            parser = parser_for(name, command, getattr(module, f"{command.function}_args", None))
            parser.parse_intermixed_args(words[1:])
            count += 1
    assert count > 50


def test_numbers_fit_a_narrow_terminal(waiting: Turn) -> None:
    """What tells least goes first; a number is never cut."""
    wide, narrow = (type_in(waiting, "stats", columns=columns, env={"NO_COLOR": "1"})[1].splitlines() for columns in (80, 40))
    assert wide[0] == "The last 30 days" and wide[-1] == "Next: turn inbox"
    assert "  kind   waiting  answered  timed out  median  slowest tenth" in wide
    assert "  kind   answered  timed out  median" in narrow and max(map(len, narrow)) <= 40
    assert waiting("stats", "--days", "7")["questions"]["pending"] == 1
    assert waiting("stats", "--days", "0", exit=2)["code"] == "usage"


def test_respond_shows_the_question_before_it_is_answered(waiting: Turn) -> None:
    code, seen = type_in(waiting, "respond", "PROJ-1", "JWT", env={"NO_COLOR": "1"})
    assert code == 0
    assert seen.index("JWT or sessions?") < seen.index("✓ Q1")
    waiting("flag", "PROJ-1", "And then?", "--kind", "input")
    assert "And then?" not in waiting.text("respond", "PROJ-1", "Nothing")
