"""Section `migrations`: upgrades from every released schema, killed with SIGKILL after each statement, again and again."""

from __future__ import annotations

from tests.db.killed_upgrades import killed_everywhere
from tests.db.schemas import RELEASED

from . import Place, Tally

#: How often the long form goes through all statements.
ROUNDS = 12


def run(place: Place) -> Tally:
    tally = Tally()
    for _ in range(max(1, round(ROUNDS * place.scale))):
        for version in RELEASED:
            kills, wrong = killed_everywhere(place.new_db, version, every=1 if place.scale >= 0.2 else 7)
            tally.runs += 1
            tally.kills += kills
            tally.violations += wrong
    return tally
