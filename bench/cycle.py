"""(a) A task's whole life, one move after the other: create → claim → ask → answer → claim → complete.

The question is asked by an actor that does not hold the claim, so the claim is dropped and the task is claimed again after the
answer. Six moves are six commits, compared with as many bare commits on the same disk or server. Measured twice: through
`Desk.do`, which returns only what it changed, and through the Python API, which returns the whole task or question.
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
from .environment import NAMES, Environment, open_desk
from .figure import Figure, Step, rate, take_turns

MOVES = ("create", "claim", "ask", "answer", "claim", "complete")
_BOUND = 0.25


class TaskLife:
    """One task's life, move by move."""

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


class DeskLife(TaskLife):
    def moves(self) -> Iterator[tuple[str, Callable[[], None]]]:
        ana, coder = self.ana.desk, self.coder.desk
        state: dict[str, Any] = {}

        def create() -> None:
            done = coder.do(say("create", coder.who, project="PROJ", title="Add a login page"))
            state["task"] = done.task

        def claim() -> None:
            done = coder.do(say("claim", coder.who, task=state["task"], worker="w1", secret=os.urandom(16).hex()))
            state["claim"] = done.claim.token

        def ask() -> None:
            done = ana.do(say("ask", ana.who, task=state["task"], text="Sessions or tokens?"))
            state["question"] = done.question

        def answer() -> None:
            ana.do(say("answer", ana.who, task=state["task"], question_id=state["question"], value="sessions"))

        def complete() -> None:
            coder.do(say("complete", coder.who, task=state["task"], claim=state["claim"], summary="It is there"))

        yield from zip(MOVES, (create, claim, ask, answer, claim, complete), strict=True)


class ClientLife(TaskLife):
    def moves(self) -> Iterator[tuple[str, Callable[[], None]]]:
        ana, coder = self.ana, self.coder
        state: dict[str, Any] = {}

        def create() -> None:
            state["task"] = coder.create("Add a login page")

        def claim() -> None:
            state["claim"] = coder.claim(state["task"], "w1")["claim"]

        def ask() -> None:
            state["question"] = ana.ask(state["task"], "Sessions or tokens?")

        def answer() -> None:
            ana.answer(state["question"], "sessions")

        def complete() -> None:
            coder.complete(state["claim"], "It is there")

        yield from zip(MOVES, (create, claim, ask, answer, claim, complete), strict=True)


@contextmanager
def two(address: str) -> Iterator[tuple[Client, Client]]:
    """A person's and an agent's client of one desk, on one connection."""
    with open_desk(address) as ana, open_desk(address, "agent:coder") as coder:
        yield ana, ana.as_(coder.who)


def run(environment: Environment) -> list[Figure]:
    figures: list[Figure] = []
    for dialect in environment.dialects:
        figures += _measured(environment, dialect)
    return figures


def _measured(environment: Environment, dialect: str) -> list[Figure]:
    seconds, rounds = (0.02, 5) if environment.quick else (0.4, 15)
    other = environment.new(dialect)
    with two(environment.new_desk(dialect)) as (ana, coder):
        desk_life, client_life = DeskLife(ana, coder), ClientLife(ana, coder)
        steps: dict[str, Step] = {"desk": desk_life.step, "bare": bare.update(other)}
        steps |= {"api": client_life.step, "insert": bare.insert(other)}
        rates = take_turns({name: partial(rate, step, seconds) for name, step in steps.items()}, rounds)
    update = "bare commits that update one row"
    lines = (
        ("`Desk.do`", "desk", "bare", update, _BOUND),
        ("`Desk.do`", "desk", "insert", "bare commits that insert a row of 300 bytes", None),
        ("the Python API, with full replies", "api", "bare", update, None),
    )
    figures = []
    for what, ours, raw, compared, least in lines:
        pairs = rates.pairs(ours, raw)
        figures.append(
            Figure(
                NAMES[dialect], what, f"{rates.median(ours):,.0f} commits/s ({rates.median(ours) / 6:,.0f} lives/s)",
                pairs.percent(), f"≥ {least:.0%}" if least else "", pairs.median >= least if least else None,
                f"{compared}, {rates.median(raw):,.0f}/s",
            )
        )  # fmt: skip
    return figures
