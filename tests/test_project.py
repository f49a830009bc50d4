"""The files around the code: pins, targets, CI."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGETS = (
    "setup", "demo", "quick", "test", "browser", "check", "screenshots", "bench", "torture", "mutants", "docs", "clean", "help",
)  # fmt: skip


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line) for line in lines), "exact, and no addresses"
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in (line.split("==") for line in lines)}


def test_everything_is_pinned():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = {re.split(r"[\[<>=~! ]", line)[0].lower() for lines in extras.values() for line in lines} - {"yourturn"}
    assert wanted <= set(pins())
    assert "yourturn" not in pins()


def test_make_help_names_every_target():
    said = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert sorted(re.findall(r"^  make (\w+)", said, re.MULTILINE)) == sorted(TARGETS)


def test_ci_runs_make_test_and_nothing_else():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = [line for line in script.read_text().splitlines() if line and not line.startswith(("#", "set ", "cd "))]
    assert lines == ["make test"]


def test_the_licence_is_there():
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_the_tests_mirror_the_package():
    """CONTRIBUTING.md describes the folders that have no counterpart."""
    beside = {"contract", "docs", "doubles", "faults", "fixtures", "mutants", "reference_model", "stories", "surfaces"}
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")} - {Path()}
    extra = {path.as_posix() for path in folders if not (ROOT / "yourturn" / path).is_dir()} - beside - {"flow/lua"}
    assert not extra, "tests of a package folder lie in the folder of the same name"
