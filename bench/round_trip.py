"""(i) The round trip of a workflow: a run starts, waits for a person, gets the answer and goes on to its end.

Against LangGraph with its checkpointers, in this process, as a program would call either library. One round trip here is six
commits: a person creates the run, a worker claims it and runs its script until `pause()`, which asks in the same commit that
gives the claim back; the person approves; the worker claims the run again, replays the script from its first line and completes
it. The script is read from its file in both claims. There: `invoke` until `interrupt()`, then `invoke(Command(resume=…))`, with
a graph that was compiled before. Both sides use the same kind of database on the same disk or server, each with its own file or
schema and its own default durability; all that either writes is on disk when a round trip ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from yourturn.flow.engine import Engine

from . import peer_workflow
from .cycle import two
from .figure import Figure, rate, take_turns
from .place import NAMES, Place
from .runner import Host

SCRIPT = '''
def workflow(prompt):
    approved = pause("Go on?")
    return f"{prompt} {bool(approved)}"
'''
FILE = "asks.py"
_BOUND = {"sqlite": 2.0, "postgres": 1.5}


def run(place: Place) -> list[Figure]:
    if not peer_workflow.installed():
        place.say("LangGraph is not installed: pip install -e '.[bench]'")
        return []
    return [_compared(place, dialect) for dialect in place.dialects]


@contextmanager
def opened(address: str, folder: Path) -> Iterator[Callable[[], int]]:
    """A function that takes one new run from its start over its question to its end."""
    (folder / FILE).write_text(SCRIPT)
    with two(address) as (ana, worker):

        def proceed(key: str) -> tuple[str, str]:
            ended = Engine(worker, worker.claim(key, "w1"), Host(), folder).go()
            return ended.what, ended.words

        def round_trip() -> int:
            key = ana.create("ok?", description="ok?", workflow=FILE, program={"file": FILE, "body": SCRIPT})["key"]
            assert proceed(key) == ("waiting", "waits for a person (checkpoint): Go on?")
            ana.approve(key)
            assert proceed(key) == ("done", "ok? True")
            return 1

        yield round_trip


def _compared(place: Place, dialect: str) -> Figure:
    seconds, rounds = (0.02, 3) if place.quick else (0.5, 25)
    folder = place.folder / f"round-trip-{dialect}"
    folder.mkdir()
    with opened(place.new_desk(dialect), folder) as ours, peer_workflow.opened(place.new(dialect)) as peer:
        rates = take_turns({"ours": partial(rate, ours, seconds), "peer": partial(rate, peer, seconds)}, rounds)
    pairs, bound = rates.pairs("ours", "peer"), _BOUND[dialect]
    return Figure(
        NAMES[dialect], "start → waits → answer → end", f"{rates.median('ours'):,.0f} round trips/s", pairs.times(),
        f"≥ {bound} ×", pairs.median >= bound,
        f"LangGraph with its checkpointer, {rates.median('peer'):,.0f} round trips/s",
    )  # fmt: skip
