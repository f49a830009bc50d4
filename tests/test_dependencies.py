"""The package requires what it imports and imports what it requires, for each extra."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.test_layers import MODULES, _imports

PYPROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
#: The modules of each extra: files or folders of the package.
EXTRAS = {
    "postgres": ("db",),
    "mcp": ("mcp",),
    "lua": ("flow/lua.py",),
    "serve": ("server", "api", "web", "mcp/http_transport.py"),  # /mcp is served where the extra mcp is installed too
}
#: Modules in these folders that the command line imports too, where no extra is installed.
PLAIN = ("server/__init__.py", "server/address.py", "server/command.py", "server/refusals.py")
#: uvicorn imports these itself, by configuration: http="httptools", and uvloop where it is installed.
USED_BY_UVICORN = {"httptools", "uvloop"}


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def required(lines: list[str]) -> set[str]:
    return {_normalized(re.split(r"[\[<>=~!; ]", line)[0]) for line in lines}


def imported(path: Path) -> set[str]:
    """The distributions that a module imports from, anywhere in it."""
    owners = packages_distributions()
    names = {name[0] for name in _imports(path)} - sys.stdlib_module_names - {"yourturn", "__future__"}
    return {_normalized(owners.get(name, [name])[0]) for name in names}


def extras_of(path: Path) -> set[str]:
    if str(path) in PLAIN:
        return set()
    return {extra for extra, places in EXTRAS.items() if any(path.is_relative_to(place) for place in places)}


def test_the_command_line_requires_nothing():
    assert PYPROJECT["dependencies"] == []


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_what_is_imported_is_required(path):
    allowed = set().union(*(required(PYPROJECT["optional-dependencies"][extra]) for extra in extras_of(path)))
    assert imported(path) <= allowed


@pytest.mark.parametrize("extra", EXTRAS)
def test_what_is_required_is_imported(extra):
    used = set().union(*(imported(path) for path in MODULES if extra in extras_of(path)))
    assert required(PYPROJECT["optional-dependencies"][extra]) - USED_BY_UVICORN <= used
