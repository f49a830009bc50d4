"""Section `models`: random machines compare the desk with tests/reference_model; then every cell of the table is reached."""

from __future__ import annotations

from tests.reference_model.coverage import ILLEGAL, LEGAL, Cells
from tests.reference_model.runner import MACHINES, report, rest, walk
from yourturn.config import init, open_store

from . import Place, Tally

#: Examples of each machine in the long form.
EXAMPLES = 150
#: From this scale on, random moves alone reach most cells of the table.
ENOUGH = 0.16


def run(place: Place) -> Tally:
    found, _, _ = explore(place)
    return found


def explore(place: Place) -> tuple[Tally, Cells, Cells]:
    """What was found, what was reached by chance, and what was reached in the end."""
    address = place.new_db()
    init(address, "PROJ", None, {"USER": "ana"})[0].close()
    store = open_store(address)
    found, chance = Tally(), Cells()
    try:
        for name in MACHINES:
            examples = max(1, round(EXAMPLES * place.scale))
            found.runs += examples
            try:
                walk(name, store, examples, place.seed, chance)
            except Exception as wrong:  # whatever a machine meets is what we want to be told
                found.violations.append(f"seed {place.seed}, {name} machine: {type(wrong).__name__}: {wrong}")
        all_ = chance.copy()
        if not found.violations and place.scale >= ENOUGH:
            for cells, every in ((chance.legal(), LEGAL), (chance.illegal(), ILLEGAL)):
                if len(cells) < 0.6 * len(every):
                    found.violations.append(f"seed {place.seed}: chance reached only {len(cells)} of {len(every)} cells")
        if not found.violations:
            rest(store, all_)
            found.violations += [f"the cell {cell} was not reached: {report(chance, all_)}" for cell in all_.missing()]
    finally:
        store.close()
    return found, chance, all_
