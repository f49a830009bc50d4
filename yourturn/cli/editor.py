"""`turn respond --edit`: opens the question in $EDITOR and reads the answer from below a line."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ..core.errors import Invalid, Usage

LINE = "## Your answer (write below this line)"


def compose(desk: Any, what: str) -> str:
    row = desk.show(what)
    task = desk.show(row["task"]) if "status" in row else row
    asked = [row] if "status" in row else [q for q in task["questions"] if q["status"] == "pending"]
    if len(asked) != 1:
        raise Invalid(f"{task['key']} has {len(asked) or 'no'} open questions", hint="Name one, like Q17: turn inbox")
    return edit(template(task, asked[0]))


def template(task: dict[str, Any], q: dict[str, Any]) -> str:
    from .. import display
    from ..display import terminal

    parts = [f"# {task['key']}: {terminal.one_line(task['title'])}", f"## {q['id']} asks\n\n{terminal.safe(q['text'])}"]
    if q["options"]:
        parts.append(
            "## Choices\n\n"
            + "\n".join(f"- {terminal.safe(str(o['id']))}  {terminal.one_line(o['description'])}".rstrip() for o in q["options"])
        )
    about = display.context_lines(q["context"])
    if about:
        parts.append("## Context\n\n" + "\n".join(about))
    return "\n\n".join([*parts, LINE]) + "\n\n"


def edit(text: str) -> str:
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="turn-") as folder:
        path = Path(folder) / "answer.md"
        path.write_text(text, encoding="utf-8")
        try:
            process = subprocess.run([*editor, str(path)], check=False)
        except OSError as error:
            raise Usage(
                f"Cannot start the editor {editor[0]}", reason=error.strerror or str(error), hint="Set EDITOR."
            ) from None
        if process.returncode != 0:
            raise Invalid("The editor failed", reason=f"exit code {process.returncode}", hint="Nothing was sent.")
        try:
            written = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise Invalid("The answer is not valid UTF-8", hint="Nothing was sent.") from None
    _, line, answer = written.partition(LINE)
    answer = answer if line else written
    if not answer.strip():
        raise Invalid("The answer must not be empty", hint="Nothing was sent; the question is still open.")
    return answer.strip()
