"""How fast the desk is: `make bench`, or `python -m bench [a b c d e f g h i] [--quick]`.

Every figure is a ratio, or stands next to what it was compared with: a machine is fast or slow, busy or not, and an
absolute number says more about it than about the desk. So what is compared takes turns in short slices, in one run; each
pair of slices gives one ratio, and the median of these counts.

    (a) cycle    a task's whole life, one move after the other, against bare commits
    (b) workers  claim and complete by 1, 4 and 16 processes, against procrastinate and against bare commits
    (c) size     the first page and the cost of a move, among few tasks and among a million
    (d) wake     how soon a watcher hears of a commit, and what waiting costs
    (e) cold     what the command costs before it does anything
    (f) agents   what the worker adds to the time of its agents
    (g) runs     what a waiting workflow costs, how soon it goes on, what its journal costs
    (h) served   the desk over HTTP, against awaithumans and a bare endpoint; answers while a thousand watch
    (i) round_trip   a workflow from its start over a person's answer to its end, against LangGraph

A part is a row of PARTS; its module has `run(place) -> list[Figure]`. It is no test: the bounds are printed with what was
found, and nothing fails if they do not hold.
"""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    name: str
    module: str
    title: str


PARTS = (
    Part("a", "cycle", "create → claim → ask → answer → claim → complete, one after the other"),
    Part("b", "workers", "claim and complete, many workers"),
    Part("c", "size", "among a million tasks"),
    Part("d", "wake", "watching"),
    Part("e", "cold", "a cold command"),
    Part("f", "agents", "the worker"),
    Part("g", "runs", "workflows"),
    Part("h", "served", "over HTTP"),
    Part("i", "round_trip", "the round trip of a workflow"),
)
