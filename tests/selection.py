"""Which tests run: markers by folder and fixture, and which combinations of parameters `make test` leaves to `make torture`.

Markers, for `make quick`:

    postgres   needs a PostgreSQL
    browser    needs a Chromium
    processes  starts commands, workers, agents or servers as processes, or kills them
    long       fuzzing, random walks, large inputs

`mark` sets the first three by folder and fixture; a module or a test that needs another one says so itself.

Combinations. Tests in BOTH_DATABASES run on SQLite and PostgreSQL with all their parameters. In FIRST_CASE each test runs on
SQLite with all its parameters, and on PostgreSQL with the first. Elsewhere the database is not what is tested: on PostgreSQL
runs every sixth test of a file, with its first parameters. Pages are tested without JavaScript on a wide screen only: the
width changes the style sheet, and not the forms. `pytest --rest` runs what this leaves out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent

BOTH_DATABASES = ("data", "db", "desk", "faults", "health", "strict")
FIRST_CASE = ("approval", "contract", "core")
ONE_IN = 6

PROCESS_FOLDERS = ("cli", "contract", "demo", "faults", "server", "stories", "worker")
#: Folders of PROCESS_FOLDERS whose tests only parse and format.
PURE_FOLDERS = ("worker/prompt", "worker/signals")
PROCESS_FIXTURES = {"between", "go", "here", "outside", "through", "turn"}
BROWSER_FIXTURES = {"browser", "launched"}
POSTGRES_FIXTURES = {"postgres_server"}


def mark(item: pytest.Item) -> None:
    fixtures = set(getattr(item, "fixturenames", ()))
    folder = _folder(item)
    if _database(item) == "postgres" or fixtures & POSTGRES_FIXTURES:
        item.add_marker(pytest.mark.postgres)
    if fixtures & BROWSER_FIXTURES:
        item.add_marker(pytest.mark.browser)
    inside = [name for name in PROCESS_FOLDERS if _is_in(folder, name)]
    if fixtures & PROCESS_FIXTURES or (inside and not any(_is_in(folder, name) for name in PURE_FOLDERS)):
        item.add_marker(pytest.mark.processes)


def split(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """(what runs by default, the rest)"""
    chosen: list[pytest.Item] = []
    rest: list[pytest.Item] = []
    tests: dict[Path, dict[str, int]] = {}  #: the tests of a file that know PostgreSQL, by position
    begun: set[tuple[Path, str]] = set()  #: tests that have run on PostgreSQL with their first parameters
    for item in items:
        kept = not _is_left_out(item)
        if _database(item) == "postgres" and not _is_in(_folder(item), *BOTH_DATABASES):
            name = getattr(item, "originalname", item.name)
            known = tests.setdefault(item.path, {})
            position = known.setdefault(name, len(known))
            sampled = _is_in(_folder(item), *FIRST_CASE) or position % ONE_IN == 0
            kept = kept and sampled and (item.path, name) not in begun
            begun.add((item.path, name))
        (chosen if kept else rest).append(item)
    return chosen, rest


def _is_left_out(item: pytest.Item) -> bool:
    params = _params(item)
    return params.get("js") is False and params.get("width", 1280) < 1280


def _database(item: pytest.Item) -> str | None:
    """The database among the parameters of a test; PostgreSQL if there are both."""
    given = [value for value in _params(item).values() if value in ("sqlite", "postgres")]
    return "postgres" if "postgres" in given else next(iter(given), None)  # type: ignore[arg-type]


def _params(item: pytest.Item) -> dict[str, object]:
    callspec = getattr(item, "callspec", None)
    return dict(callspec.params) if callspec else {}


def _folder(item: pytest.Item) -> Path:
    return item.path.parent.relative_to(HERE) if item.path.is_relative_to(HERE) else Path()


def _is_in(folder: Path, *names: str) -> bool:
    return any(folder.is_relative_to(name) for name in names)
