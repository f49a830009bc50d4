"""Stand-ins for coding agents: small programs that speak as the real ones do, keep sessions on disk and run real hooks.

`install(folder)` puts `claude` and `codex` into a folder for PATH. What they do is a list of steps in the file that
DOUBLE_SCRIPT names; each program says which steps it knows.
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
