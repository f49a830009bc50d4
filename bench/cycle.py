"""(a) A task's whole life, one move after the other: create → claim → ask → answer → claim → complete.

The question is asked by somebody who does not hold the claim, so the claim is dropped and the task is claimed again after
the answer. Six moves, six commits; so many bare commits are what it is compared with, on the same disk or server. Twice:
through the door (`Desk.do`), which says only what it did; and through the Python API, which answers with the whole task or
question as it is after the move.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from yourturn.client import Client
from yourturn.core.actions import say

from . import bare
from .figure import Figure, Step, rate, take_turns
from .place import NAMES, Place, open_desk

MOVES = ("create", "claim", "ask", "answer", "claim", "complete")
_BOUND = 0.25


class Life:
    """One task's life, move by move. A move is given all that the moves before it found out."""

    names: tuple[str, ...] = MOVES

    def __init__(self, ana: Client, coder: Client) -> None:
        self.ana, self.coder = ana, coder

    def moves(self) -> Iterator[tuple[str, Callable[[], None]]]:
        raise NotImplementedError

    def step(self) -> int:
        count = 0
        for _, move in self.moves():
            move()
            count += 1
        return count


class Door(Life):
    def moves(self) -> Iterator[tuple[str, Callable[[], None]]]:
        ana, coder = self.ana.desk, self.coder.desk
        known: dict[str, Any] = {}

        def create() -> None:
            done = coder.do(say("create", coder.who, project="PROJ", title="Add a login page"))
            known["task"] = done.task

        def claim() -> None:
            done = coder.do(say("claim", coder.who, task=known["task"], worker="w1", secret=os.urandom(16).hex()))
            known["claim"] = done.claim.token

        def ask() -> None:
            done = ana.do(say("ask", ana.who, task=known["task"], text="Sessions or tokens?"))
            known["question"] = done.question

        def answer() -> None:
            ana.do(say("answer", ana.who, task=known["task"], question_id=known["question"], value="sessions"))

        def complete() -> None:
            coder.do(say("complete", coder.who, task=known["task"], claim=known["claim"], summary="It is there"))

        yield from zip(MOVES, (create, claim, ask, answer, claim, complete), strict=True)


class Api(Life):
    def moves(self) -> Iterator[tuple[str, Callable[[], None]]]:
        ana, coder = self.ana, self.coder
        known: dict[str, Any] = {}

        def create() -> None:
            known["task"] = coder.create("Add a login page")

        def claim() -> None:
            known["claim"] = coder.claim(known["task"], "w1")["claim"]

        def ask() -> None:
            known["question"] = ana.ask(known["task"], "Sessions or tokens?")

        def answer() -> None:
            ana.answer(known["question"], "sessions")

        def complete() -> None:
            coder.complete(known["claim"], "It is there")

        yield from zip(MOVES, (create, claim, ask, answer, claim, complete), strict=True)


@contextmanager
def two(address: str) -> Iterator[tuple[Client, Client]]:
    """A person and an agent at one desk, on one connection."""
    with open_desk(address) as ana, open_desk(address, "agent:coder") as coder:
        yield ana, ana.as_(coder.who)


def run(place: Place) -> list[Figure]:
    found: list[Figure] = []
    for dialect in place.dialects:
        found += _measured(place, dialect)
    return found


def _measured(place: Place, dialect: str) -> list[Figure]:
    seconds, rounds = (0.02, 5) if place.quick else (0.4, 15)
    other = place.new(dialect)
    with two(place.new_desk(dialect)) as (ana, coder):
        door, api = Door(ana, coder), Api(ana, coder)
        steps: dict[str, Step] = {"door": door.step, "bare": bare.update(other), "api": api.step, "insert": bare.insert(other)}
        rates = take_turns({name: partial(rate, step, seconds) for name, step in steps.items()}, rounds)
    update = "bare commits that update one row"
    lines = (
        ("the door", "door", "bare", update, _BOUND),
        ("the door", "door", "insert", "bare commits that insert a row of 300 bytes", None),
        ("the Python API, with full replies", "api", "bare", update, None),
    )
    found = []
    for what, ours, raw, compared, least in lines:
        pairs = rates.pairs(ours, raw)
        found.append(
            Figure(
                NAMES[dialect], what, f"{rates.median(ours):,.0f} commits/s ({rates.median(ours) / 6:,.0f} lives/s)",
                pairs.percent(), f"≥ {least:.0%}" if least else "", pairs.median >= least if least else None,
                f"{compared}, {rates.median(raw):,.0f}/s",
            )
        )  # fmt: skip
    return found
