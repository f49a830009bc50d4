"""How all tests come to an end in time, whatever they test.

What they write, they write into memory, where there is enough of it: every change of a desk waits for the disk, and no test
takes the power away. Where memory is short, or programs may not be started from it, the disk is used as ever.

Every test process reads all tests, and what pytest makes of them has to be compiled. So each begins with its share, and finds
the others' when it comes to them. And when all are read, nobody looks through them for garbage again.

A password takes a quarter of a second, as it should. Only the test of that waits for it.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import pytest

from yourturn.desk import passwords

WORK, passwords.WORK = passwords.WORK, (4, 8, 1)
MEMORY = Path("/dev/shm")
ENOUGH = 4 * 2**30  #: bytes; all tests together need less than a quarter of it
ROOT = Path(__file__).parents[1]


def into_memory(memory: Path = MEMORY, enough: int = ENOUGH) -> Path | None:
    """From now on, and in all processes that come of this one, temporary files are made there."""
    if "TMPDIR" in os.environ or not os.access(memory, os.W_OK | os.X_OK):
        return None
    found = os.statvfs(memory)
    if found.f_bavail * found.f_frsize < enough or found.f_flag & getattr(os, "ST_NOEXEC", 0):
        return None
    for old in memory.glob("yt-*"):
        if re.fullmatch(r"yt-\d+", old.name) and not Path(f"/proc/{old.name[3:]}").exists():
            shutil.rmtree(old, ignore_errors=True)
    folder = memory / f"yt-{os.getpid()}"
    folder.mkdir(0o700)
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
    return folder


def read_a_share(config: pytest.Config) -> None:
    """The n-th of so many processes reads every so-many-th file first."""
    known = getattr(config, "workerinput", None)
    if known is None or config.args != config.getini("testpaths") or sys.dont_write_bytecode:
        return
    number, all_ = int(known["workerid"].removeprefix("gw")), int(known["workercount"])
    for path in sorted(ROOT.glob("tests/**/test_*.py"))[number::all_]:
        import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def settle_down() -> None:
    gc.collect()
    gc.freeze()
