"""The benchmarks run, compare equal work, and use consistent desks. No test checks a speed."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import PARTS, cycle, report
from bench.environment import Environment, open_desk
from bench.figure import Figure, take_turns
from bench.fill import fill
from yourturn.health.doctor import examine

ACTIONS = ["create", "claim", "ask", "answer", "claim", "complete", "accept"]


def test_cycle_runs_on_both_databases(tmp_path, postgres_server):
    figures = cycle.run(Environment(tmp_path, postgres_server, quick=True))
    assert [f.database for f in figures] == ["SQLite"] * 3 + ["PostgreSQL"] * 3
    assert all("%" in f.ratio and "commits/s" in f.value for f in figures)
    assert [f.held is None for f in figures] == [False, True, True] * 2


@pytest.mark.parametrize("life", [cycle.DeskLife, cycle.ClientLife])
def test_life_of_a_task_is_six_commits(address, life, monkeypatch):
    with cycle.two(address) as (ana, coder):
        store, begun = ana.desk.store, []
        begin = store.begin

        @contextmanager
        def counted(what="", *, write=True):
            begun.extend([what] * write)
            with begin(what, write=write) as run:
                yield run

        monkeypatch.setattr(store, "begin", counted)
        assert life(ana, coder).step() == 6
        assert begun == list(cycle.MOVES)
        assert [event["action"] for event in ana.history("PROJ-1")] == ACTIONS


def test_filled_desk_is_consistent(address):
    fill(address, ready=30, human=20, done=10)
    fill(address, ready=5)
    with open_desk(address) as desk:
        assert desk.counts() == {"ready": 35, "human": 20, "done": 10}
        assert [line for line in examine(desk) if line["status"] != "ok"] == []
        assert desk.create("One more")["key"] == "PROJ-66"
        assert desk.ask("PROJ-66", "And now?")["id"] == "Q21"
        assert len(desk.inbox(limit=50)) == 21


def test_slices_alternate():
    order: list[str] = []
    slices = {name: lambda n=name, r=rate: (order.append(n), r)[1] for name, rate in (("ours", 3.0), ("other", 6.0))}
    pairs = take_turns(slices, 5).pairs("ours", "other")
    assert (len(pairs.ratios), pairs.median, pairs.best) == (5, 0.5, 0.5)
    assert order == ["ours", "other", "other", "ours"] * 3


def test_the_page_keeps_what_was_not_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "PAGE", tmp_path / "docs" / "benchmarks.md")
    report.PAGE.parent.mkdir()
    old, new = Figure("SQLite", "old", "1/s"), Figure("SQLite", "new", "2/s", "20%", "≥ 10%", True, "3/s")
    report.write({"a": [old], "c": [old]}, "1 core")
    report.write({"b": [new], "c": [new]}, "2 cores")
    text = report.PAGE.read_text(encoding="utf-8")
    assert [line[4] for line in text.splitlines() if line.startswith("## (")] == ["a", "b", "c"]
    assert (text.count("| old |"), text.count("| new |"), text.count("1 core."), text.count("2 cores.")) == (1, 2, 1, 2)
    assert "1 hold, 0 missed" in report.summary({"b": [new]})


def test_every_part_has_a_module_and_a_place_on_the_page():
    folder = Path(report.__file__).parent
    assert all((folder / f"{part.module}.py").exists() for part in PARTS)
    assert report.PAGE.exists()
