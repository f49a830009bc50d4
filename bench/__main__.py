"""Command line of the benchmarks: runs the parts, prints their figures, and writes docs/benchmarks.md."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from importlib import import_module

from . import PARTS, report
from . import __doc__ as about
from .environment import DIALECTS, opened
from .figure import Figure


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", nargs="*", help=f"some of: {' '.join(p.name for p in PARTS)}")
    parser.add_argument("--quick", action="store_true", help="short and small, to see that it runs; writes no page")
    parser.add_argument("--dialect", choices=DIALECTS, action="append", help="only this database")
    a = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that its servers are stopped
    unknown = set(a.part) - {part.name for part in PARTS}
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    whole = not a.quick and not a.dialect
    results: dict[str, list[Figure]] = {}
    with opened(a.quick, tuple(a.dialect or DIALECTS)) as environment:
        machine = environment.machine()
        print(machine + "\n", flush=True)
        for part in PARTS:
            if a.part and part.name not in a.part:
                continue
            print(f"({part.name}) {part.title}", flush=True)
            begun = time.monotonic()
            results[part.name] = import_module(f"bench.{part.module}").run(environment)
            print(report.lines(results[part.name]))
            print(f"    {time.monotonic() - begun:.0f} s\n", flush=True)
    print(report.summary(results))
    if whole:
        print(f"\nWritten: {report.write(results, machine)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
