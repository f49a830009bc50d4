"""(i) The round trip of a workflow: a run starts, waits for a person, gets the answer and goes on to its end.

Beside LangGraph with its checkpointers. Both run in this process and this thread, as a program calls either library, and both
answer and go on in the process that started the run. Databases are of the same kind, on the same disk or server, and all that
either side writes is on disk when a round trip ends (fsync on both, by default). Each database is used until its log has its
full size before anything is measured, because a file that grows is slower to sync.

    Yourturn   `start`: the run is created and claimed (1 commit). The script is read from its file, runs until `pause()`, which
               asks and gives the claim back (1 commit). `answer_and_claim` (1 commit). The script is read and replayed from its
               first line, and the run completed (1 commit). Every move leaves an event in the log: six of them.
    LangGraph  `invoke` until `interrupt()` (4 commits), `invoke(Command(resume=…))` (3 commits), of a graph that was compiled
               once; checkpoints are written by a background thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from yourturn.flow.engine import Engine

from . import peer_workflow
from .environment import NAMES, Environment, open_desk
from .figure import Figure, rate, take_turns
from .runner import Host

SCRIPT = '''
def workflow(prompt):
    approved = pause("Go on?")
    return f"{prompt} {bool(approved)}"
'''
FILE = "asks.py"
_BOUND = {"sqlite": 2.0, "postgres": 1.5}


def run(environment: Environment) -> list[Figure]:
    if not peer_workflow.installed():
        environment.report("LangGraph is not installed: pip install -e '.[bench]'")
        return []
    return [_compared(environment, dialect) for dialect in environment.dialects]


@contextmanager
def opened(address: str, folder: Path) -> Iterator[Callable[[], int]]:
    """A function that takes one new run from its start over its question to its end."""
    (folder / FILE).write_text(SCRIPT)
    source, host = {"file": FILE, "body": SCRIPT}, Host()
    with open_desk(address) as desk:

        def proceed(claimed: dict[str, Any]) -> tuple[str, str]:
            ended = Engine(desk, claimed, host, folder).go_here()
            return ended.what, ended.words

        def round_trip() -> int:
            claimed = desk.start("ok?", "w1", description="ok?", workflow=FILE, program=source)
            assert proceed(claimed) == ("waiting", "waits for a person (checkpoint): Go on?")
            assert proceed(desk.answer_and_claim(claimed["task"]["key"], "w1", True)) == ("done", "ok? True")
            return 1

        yield round_trip


def _compared(environment: Environment, dialect: str) -> Figure:
    seconds, rounds, warm = (0.02, 3, 1) if environment.quick else (0.5, 25, 200)
    folder = environment.folder / f"round-trip-{dialect}"
    folder.mkdir()
    with opened(environment.new_desk(dialect), folder) as ours, peer_workflow.opened(environment.new(dialect)) as peer:
        for _ in range(warm):
            ours()
            peer()
        rates = take_turns({"ours": partial(rate, ours, seconds), "peer": partial(rate, peer, seconds)}, rounds)
    pairs, bound = rates.pairs("ours", "peer"), _BOUND[dialect]
    return Figure(
        NAMES[dialect], "start → waits → answer → end", f"{rates.median('ours'):,.0f} round trips/s", pairs.times(),
        f"≥ {bound} ×", pairs.median >= bound,
        f"LangGraph with its checkpointer, {rates.median('peer'):,.0f} round trips/s",
    )  # fmt: skip
