"""Interactive terminal: prints lines, prompts for answers, runs programs such as an editor or an agent's session.

With --json standard output carries JSON, so text for the person goes to standard error.
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
        """True if input and output are a terminal."""
        return bool(sys.stdin and sys.stdin.isatty() and self.out and self.out.isatty())

    def print(self, *lines: str) -> None:
        from ..display import terminal

        plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        terminal.COLOUR = self.out.isatty() and not plain
        print(*lines, sep="\n", file=self.out, flush=True)

    def line(self, prompt: str) -> str:
        """The typed line, stripped; '' at the end of the input."""
        print(prompt, end="", file=self.out, flush=True)
        typed = sys.stdin.readline()
        if not typed.endswith("\n"):
            print(file=self.out, flush=True)
        return typed.strip()

    def yes(self, prompt: str) -> bool | None:
        """None if the person skips it."""
        while True:
            word = self.line(f"{prompt} [y/n, Enter skips] ")
            verdict = verdict_of(word)
            if not word or verdict is not None:
                return verdict
            self.print("Type y or n.")

    def run(self, words: Sequence[str], env: Mapping[str, str] | None = None, folder: Path | None = None) -> int:
        """Runs a program in the foreground. Ctrl+C reaches only the program, and the terminal's mode is restored afterwards."""
        import signal
        import subprocess
        import termios

        kept = termios.tcgetattr(sys.stdin)
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            process = subprocess.Popen([*words], env=env, cwd=folder, stdout=self.out)
        except OSError as error:
            raise Usage(f"Cannot start {words[0]}", reason=error.strerror or str(error)) from None
        else:
            return process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, kept)

    def verdict(self, q: dict[str, Any]) -> tuple[str, str] | None:
        """Verdict and text; None if the person skips it."""
        from ..core.answers import LABELS

        yes = self.yes(LABELS[q["kind"]].prompt)
        if yes is None:
            return None
        words = self.line("Comment (Enter for none): " if yes else "What should change, or why not? ")
        return ("approved" if yes else "rejected"), words

    def answer(self, desk: Any, q: dict[str, Any]) -> dict[str, Any] | None:
        """Prompts until the desk accepts the answer. Returns the closed question; None if the person skips it."""
        while True:
            try:
                if q["response_type"] == "approval":
                    judged = self.verdict(q)
                    return None if judged is None else self._send(desk, q, None, judged[1], judged[0])
                word = "Your choice" if q["options"] else "Yes or no" if q["response_type"] == "boolean" else "Your answer"
                typed = self.line(f"{word} (Enter skips): ")
                return self._send(desk, q, typed) if typed else None
            except Invalid as error:
                from ..display.terminal import safe

                self.print(*(safe(line) for line in error.lines()))

    def _send(
        self, desk: Any, q: dict[str, Any], value: str | None, text: str = "", verdict: str | None = None
    ) -> dict[str, Any] | None:
        """Answers the question. If that cancels the task, the person has to confirm it."""
        answer = {"value": value, "text": text, "verdict": verdict}
        key = q["task"]
        prompt = f"This answer cancels {key}. Type {key} to confirm: "
        if desk.lands(q["id"], **answer) == "cancelled" and self.line(prompt).upper() != key:
            self.print("Nothing was changed.")
            return None
        return dict(desk.answer(q["id"], **answer))


def open_editor(term: Terminal, folder: Path) -> None:
    """Opens a folder with $VISUAL, $EDITOR, code or cursor."""
    import shlex
    import shutil

    installed = next((name for name in ("code", "cursor") if shutil.which(name)), None)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or installed
    if not editor:
        raise Usage("No editor is set", hint="Set VISUAL or EDITOR, like: export VISUAL=code")
    term.print(f"Opening {folder} with {editor}")
    exit_code = term.run([*shlex.split(editor), str(folder)])
    if exit_code:
        term.print(f"The editor ended with exit code {exit_code}.")
