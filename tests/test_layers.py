"""Layers: imports point down, the core is pure, surfaces never import the database."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import yourturn

ROOT = Path(yourturn.__file__).parent

#: From the ground up. A name stands for a module or a whole folder; what stands on one line may import each other.
SURFACES = ("cli", "tui", "web", "api", "mcp")
LAYERS = (
    ("version", "core"),
    ("display", "db"),
    ("desk",),
    ("client", "data", "config"),
    ("health", "strict", "approval"),
    ("worker", "flow", "notify", "demo", "server"),  # of the server: what its surfaces share
    ("testing",),
    SURFACES,
    ("server/app", "server/run", "server/command"),  # joins the surfaces that speak HTTP
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

#: What core may take from the standard library: nothing that touches a disk, a clock, a network or chance.
PURE = {
    "__future__", "bisect", "builtins", "collections", "contextlib", "copy", "dataclasses", "datetime", "enum",
    "functools", "hashlib", "importlib", "itertools", "json", "math", "operator", "re", "string", "textwrap", "types",
    "typing", "unicodedata",
}  # fmt: skip

MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))


def _home(path: Path) -> str:
    return _named(path.with_suffix("").parts)


def _named(parts: tuple[str, ...]) -> str:
    """The name in LAYERS: that of the module if it has one, else that of its folder."""
    return "/".join(parts[:2]) if "/".join(parts[:2]) in LEVEL else parts[0]


def _imports(path: Path) -> set[tuple[str, ...]]:
    """Every module that a file imports, anywhere in it, as parts of an absolute name."""
    package = ("yourturn", *path.parent.parts)
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = base + tuple((node.module or "").split(".") if node.module else ())
            found |= {(*module, alias.name) for alias in node.names} if module[:1] == ("yourturn",) else {module}
    return found


def _neighbours(path: Path) -> set[str]:
    return {_named(name[1:]) for name in _imports(path) if name[0] == "yourturn" and len(name) > 1 and name[1] != "__version__"}


def test_every_module_has_a_layer():
    assert {_home(path) for path in MODULES} - {"__init__", "__main__"} <= set(LEVEL)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_point_down(path):
    home = _home(path)
    if home in ("__init__", "__main__"):
        return
    for name in _neighbours(path):
        assert LEVEL[name] <= LEVEL[home], f"{path} reaches up to {name}"
        if home in SURFACES:
            assert name == home or name not in SURFACES, f"{path} imports another surface, {name}"
            assert name not in ("db", "desk"), f"{path} goes round the client, to {name}"


@pytest.mark.parametrize("path", [p for p in MODULES if p.parts[0] == "core"], ids=str)
def test_the_core_is_pure(path):
    assert {name[0] for name in _imports(path)} - {"yourturn"} <= PURE
    assert _neighbours(path) <= {"core"}


def test_only_db_talks_to_databases():
    for path in MODULES:
        if path.parts[0] != "db":
            assert not {name[0] for name in _imports(path)} & {"sqlite3", "psycopg"}, path
