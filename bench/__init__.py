"""Benchmarks: `make bench`, or `python -m bench [a b c d e f g h i] [--quick]`.

Each figure is a ratio or is printed beside a comparison, because an absolute number depends on the machine and its load. The
compared programs alternate in short slices of one run; each pair of slices gives one ratio, and the median counts.

    (a) cycle    a task's whole life, one move after the other, against bare commits
    (b) workers  claim and complete by 1, 4 and 16 processes, against procrastinate or bare commits
    (c) size     the first page and the cost of a move, with few tasks and with a million
    (d) wake     how soon a watcher receives a commit, and the cost of waiting
    (e) cold     the start-up cost of the command
    (f) agents   the worker's overhead per agent run
    (g) runs     the cost of a waiting workflow, its resumption, its journal
    (h) served   the desk over HTTP, against awaithumans and a bare endpoint; answers with a thousand watchers
    (i) round_trip   a workflow from its start over a person's answer to its end, against LangGraph

A part is a row of PARTS; its module has `run(environment) -> list[Figure]`. The bounds are printed with the figures; a missed
bound is no error.
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
