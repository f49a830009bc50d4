"""Prints figures, and writes docs/benchmarks.md. A part that was not measured keeps its section of the page."""

from __future__ import annotations

import re
import time
from pathlib import Path

from . import PARTS
from .figure import Figure

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
#: Written by hand.
TAKEN_OUT = Path(__file__).parent / "taken_out.md"

_HEAD = """# Benchmarks

Measured and written by `make bench`; `BENCH=a make bench` measures one part again. Each figure is compared with another program
in the same run: both alternate in short slices, and each pair of slices gives one ratio. The table shows the median of the
ratios, in brackets the lowest and the highest, and the fastest slice of one against the fastest of the other (best). Rates are
medians too. The machine was shared with other work, so compare ratios, not rates.
"""


def lines(figures: list[Figure]) -> str:
    out = []
    for f in figures:
        out.append(f"    {f.database:<11}{f.what}: {f.value}")
        compared = f"{f.ratio} of {f.compared}" if f.ratio else f.compared
        against = "; ".join(filter(None, (compared, f.bound, f.verdict)))
        if against:
            out.append(f"    {'':<11}  {against}")
    return "\n".join(out)


def summary(results: dict[str, list[Figure]]) -> str:
    out = ["Bounds:"]
    for name, figures in results.items():
        for f in figures:
            if f.held is not None:
                out.append(f"  {f.verdict:<7}({name}) {f.database:<11}{f.what}: {f.ratio or f.value}, {f.bound}")
    missed = sum(f.held is False for figures in results.values() for f in figures)
    held = sum(f.held is True for figures in results.values() for f in figures)
    return "\n".join([*out, f"{held} hold, {missed} missed."])


def write(results: dict[str, list[Figure]], machine: str) -> Path:
    before = _sections(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
    body = _HEAD
    for part in PARTS:
        if part.name in results:
            body += f"\n## ({part.name}) {part.title}\n\n{_table(results[part.name], machine)}"
        elif part.name in before:
            body += f"\n{before[part.name]}"
    body += f"\n{TAKEN_OUT.read_text(encoding='utf-8')}"
    PAGE.write_text(body, encoding="utf-8")
    return PAGE.relative_to(PAGE.parent.parent)


def _sections(text: str) -> dict[str, str]:
    sections = re.findall(r"^(## \((\w)\).*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: body.rstrip("\n") + "\n" for body, name in sections}


def _table(figures: list[Figure], machine: str) -> str:
    rows = ["| database | what | figure | ratio | bound | | compared with |", "|---|---|---|---|---|---|---|"]
    rows += [f"| {f.database} | {f.what} | {f.value} | {f.ratio} | {f.bound} | {f.verdict} | {f.compared} |" for f in figures]
    return "\n".join(rows) + f"\n\n{time.strftime('%Y-%m-%d')}. {machine}.\n"
