"""Runs the mutants two at a time, says which test caught each, and fails if one survives."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import ROOT, Mutant, mutated
from .table import MUTANTS

PARTS = ("yourturn", "tests", "pyproject.toml")
AT_ONCE = 2
PATIENCE = 300
_HUNG = -1
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def copy(folder: Path) -> Path:
    for part in PARTS:
        source, target = ROOT / part, folder / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"))
        else:
            shutil.copy(source, target)
    return folder


def env(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("YOURTURN_", "PYTEST_"))}
    return {**kept, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def pytest(folder: Path, *words: str, patience: int = PATIENCE) -> tuple[int, str]:
    """The exit code and the output. A test that hangs is killed, with all its child processes."""
    line = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=line", "-rfE", *words]
    with subprocess.Popen(
        line, cwd=folder, env=env(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as run:
        try:
            said, _ = run.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            _end(run)
            return _HUNG, f"it hung for {patience} s"
    return run.returncode, said


def _end(run: subprocess.Popen[str]) -> None:
    """Asked to stop, pytest also stops the PostgreSQL that it started; killed, it could not."""
    for blow in (signal.SIGINT, signal.SIGKILL):
        os.killpg(run.pid, blow)
        try:
            run.communicate(timeout=60)
            return
        except subprocess.TimeoutExpired:
            pass


def proved(folder: Path) -> None:
    """Processes that the tests start, and the command, use the copy: they show what only the copy says."""
    copy(folder)
    (folder / "yourturn" / "version.py").write_text('__version__ = "mutant"\n')
    python, turn = sys.executable, str(Path(sys.executable).parent / "turn")
    for line in ([python, "-c", "import yourturn; print(yourturn.__version__)"], [turn, "--version"]):
        said = subprocess.run(line, cwd=folder.parent, env=env(folder), capture_output=True, text=True).stdout
        if "mutant" not in said:
            raise SystemExit(f"{line[0]} does not use the copy: {said!r}")


def green(folder: Path, tests: list[str]) -> None:
    code, said = pytest(copy(folder), "-n", str(AT_ONCE), *tests, patience=600)
    if code != 0:
        raise SystemExit(f"The chosen tests do not pass without any mutant:\n{said[-3000:]}")


def try_one(m: Mutant, folder: Path) -> tuple[Mutant, str, bool]:
    try:
        file = copy(folder) / m.file
        file.write_text(mutated(m, file.read_text()))
        code, said = pytest(folder, "-x", *m.tests)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = _FAILED.findall(said)
    if code == 1 and found:
        return m, f"caught by {found[0]}", True
    return m, "SURVIVED" if code == 0 else f"BROKEN (pytest ended with {code}): {said[-1500:]}", False


def main(names: list[str]) -> int:
    chosen = [m for m in MUTANTS if not names or m.name in names or any(word in m.file for word in names)]
    if not chosen:
        raise SystemExit(f"No such mutant. There are: {', '.join(m.name for m in MUTANTS)}")
    for m in chosen:
        mutated(m, (ROOT / m.file).read_text())
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="yourturn-mutants-", ignore_cleanup_errors=True) as home:
        proved(Path(home) / "proof")
        tests = sorted({test for m in chosen for test in m.tests})
        green(Path(home) / "green", tests)
        print(f"{len(tests)} selections pass without a mutant ({time.monotonic() - begun:.0f} s)\n", flush=True)
        caught = 0
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for m, words, was_caught in pool.map(lambda pair: try_one(pair[1], Path(home) / str(pair[0])), enumerate(chosen)):
                print(f"{m.name:<34} {words}", flush=True)
                caught += was_caught
    print(f"\n{len(chosen)} mutants: {caught} caught, {len(chosen) - caught} not ({time.monotonic() - begun:.0f} s)")
    return int(caught < len(chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
