"""Runs the parts, prints what they found, and writes docs/benchmarks.md."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from importlib import import_module

from . import PARTS, page
from . import __doc__ as about
from .figure import Figure
from .place import DIALECTS, opened


def main(argv: list[str]) -> int:
    asked = argparse.ArgumentParser(prog="python -m bench", description=about, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("part", nargs="*", help=f"some of: {' '.join(p.name for p in PARTS)}")
    asked.add_argument("--quick", action="store_true", help="short and small, to see that it works; writes no page")
    asked.add_argument("--dialect", choices=DIALECTS, action="append", help="only this database")
    a = asked.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that its server is stopped, too
    unknown = set(a.part) - {part.name for part in PARTS}
    if unknown:
        asked.error(f"there is no part {', '.join(sorted(unknown))}")
    whole = not a.quick and not a.dialect
    results: dict[str, list[Figure]] = {}
    with opened(a.quick, tuple(a.dialect or DIALECTS)) as place:
        machine = place.machine()
        print(machine + "\n", flush=True)
        for part in PARTS:
            if a.part and part.name not in a.part:
                continue
            print(f"({part.name}) {part.title}", flush=True)
            begun = time.monotonic()
            results[part.name] = import_module(f"bench.{part.module}").run(place)
            print(page.lines(results[part.name]))
            print(f"    {time.monotonic() - begun:.0f} s\n", flush=True)
    print(page.summary(results))
    if whole:
        print(f"\nWritten: {page.write(results, machine)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
