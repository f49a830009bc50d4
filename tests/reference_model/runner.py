"""Runs the machines with a number of examples and a seed; then reaches the remaining cells on purpose."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test

from tests.core.states import LEAST, Bench, number
from tests.core.transition_recipes import recipes
from yourturn.client import Client
from yourturn.core.errors import YourturnError
from yourturn.core.model import SYSTEM, Who
from yourturn.db.backend import Store
from yourturn.testing import FakeClock

from .biased_machine import SYSTEMS, Biased
from .comparison import START, Watched
from .coverage import ILLEGAL, LEGAL, Cells
from .machines import Machine, Naive

MACHINES: dict[str, type[Machine]] = {"naive": Naive, "biased": Biased}
#: Moves in one example. Most states are several moves away from a new desk.
LENGTH = 100
AGENT = Who("agent:coder", "agent", direct=True)


def walk(name: str, store: Store, examples: int, seed: int, cells: Cells) -> None:
    """Raises what the machine found. The same seed does the same."""
    how = settings(
        max_examples=examples, stateful_step_count=LENGTH, database=None, deadline=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck), verbosity=Verbosity.quiet, print_blob=False,
    )  # fmt: skip
    machine: Any = type(name, (MACHINES[name],), {"store": store, "cells": cells})
    run_state_machine_as_test(seeded(seed)(machine), settings=how)


def rest(store: Store, cells: Cells) -> None:
    """Every cell that was not reached, by the recipes that the tests of the table use, and watched like everything else."""
    clock = FakeClock(START)
    desk = Watched(store, clock, cells)
    admin = Client(desk, "PROJ")
    bench = Bench(admin, admin.as_(AGENT), clock)
    for (source, verb, _), recipe in recipes():
        if (source, verb) not in cells.reached:
            recipe(bench)
    for state, verb in sorted(ILLEGAL - cells.illegal()):
        speaker = desk.as_(SYSTEM if verb in SYSTEMS else admin.who)
        task = number(admin, bench.into(state))
        try:
            Client(speaker, "PROJ").do(verb, task=task, **LEAST.get(verb, {}))
        except YourturnError:
            pass
    desk.check_reads()
    desk.check_invariants()


def report(chance: Cells, all_: Cells) -> str:
    return (
        f"{chance.steps} moves by chance reached {len(chance.legal())} legal and {len(chance.illegal())} illegal cells; "
        f"with recipes {len(all_.legal())} of {len(LEGAL)} and {len(all_.illegal())} of {len(ILLEGAL)}"
    )
