"""A person at a terminal: lines for them, questions that they answer here, and programs that take the terminal over.

With --json standard output is the program's, so everything for the person goes to standard error.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.answers import verdict_of
from ..core.errors import Invalid, Usage


class Terminal:
    def __init__(self, a: Namespace) -> None:
        self.out = sys.stderr if a.json else sys.stdout

    @property
    def there(self) -> bool:
        """Is somebody there to read and to type?"""
        return bool(sys.stdin and sys.stdin.isatty() and self.out and self.out.isatty())

    def say(self, *lines: str) -> None:
        from ..display import terminal

        plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        terminal.COLOUR = self.out.isatty() and not plain
        print(*lines, sep="\n", file=self.out, flush=True)

    def line(self, prompt: str) -> str:
        """What was typed; '' also at the end of the input."""
        print(prompt, end="", file=self.out, flush=True)
        typed = sys.stdin.readline()
        if not typed.endswith("\n"):
            print(file=self.out, flush=True)
        return typed.strip()

    def yes(self, prompt: str) -> bool | None:
        """None leaves it open."""
        while True:
            word = self.line(f"{prompt} [y/n, Enter leaves it open] ")
            found = verdict_of(word)
            if not word or found is not None:
                return found
            self.say("Type y or n.")

    def run(self, words: Sequence[str], env: Mapping[str, str] | None = None, folder: Path | None = None) -> int:
        """Let a program have the terminal. Ctrl+C is for it alone, and however it leaves the terminal, it is put right."""
        import signal
        import subprocess
        import termios

        kept = termios.tcgetattr(sys.stdin)
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            process = subprocess.Popen([*words], env=env, cwd=folder, stdout=self.out)
        except OSError as error:
            raise Usage(f"{words[0]} cannot be started", reason=error.strerror or str(error)) from None
        else:
            return process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, kept)

    # --- a question -----------------------------------------------------------------------------------------------------

    def verdict(self, q: dict[str, Any]) -> tuple[str, str] | None:
        """Yes or no, and words; None leaves it open."""
        from ..core.answers import LABELS

        yes = self.yes(LABELS[q["kind"]].prompt)
        if yes is None:
            return None
        words = self.line("Anything to say? (Enter for nothing) " if yes else "What should change, or why not? ")
        return ("approved" if yes else "rejected"), words

    def answer(self, desk: Any, q: dict[str, Any]) -> dict[str, Any] | None:
        """The question, answered here; None leaves it open."""
        while True:
            try:
                if q["response_type"] == "approval":
                    said = self.verdict(q)
                    return None if said is None else dict(desk.answer(q["id"], None, said[1], said[0]))
                word = "Your choice" if q["options"] else "Yes or no" if q["response_type"] == "boolean" else "Your answer"
                typed = self.line(f"{word} (Enter leaves it open): ")
                return dict(desk.answer(q["id"], typed)) if typed else None
            except Invalid as error:
                from ..display.terminal import safe

                self.say(*(safe(line) for line in error.lines()))


def open_editor(term: Terminal, folder: Path) -> None:
    """$VISUAL, $EDITOR, or a known one, on a folder."""
    import shlex
    import shutil

    known = next((name for name in ("code", "cursor") if shutil.which(name)), None)
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or known
    if not chosen:
        raise Usage("There is no editor to open", hint="Set VISUAL or EDITOR, like: export VISUAL=code")
    term.say(f"Opening {folder} with {chosen}")
    code = term.run([*shlex.split(chosen), str(folder)])
    if code:
        term.say(f"The editor ended with exit code {code}.")
