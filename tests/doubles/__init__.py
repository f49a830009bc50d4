"""Doubles of coding agents: small programs with the output format, the sessions on disk and the hooks of the real ones.

`install(folder)` puts `claude` and `codex` into a folder for PATH. They play a list of steps from the file that
DOUBLE_SCRIPT names; the docstring of each program lists its steps.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent


def install(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("claude", "codex"):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{HERE / name}.py" "$@"\n')
        program.chmod(0o755)
    return folder
