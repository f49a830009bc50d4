"""Optional: re-checks the whole event log against the rules. Only `turn doctor --strict` and the tests load this package.

    replay.py   rebuilds the tasks from the events alone
    moves.py    checks each move against the rules, independently of core/decide.py and the effects
    checks.py   compares the rebuilt tasks with what the API shows, and reports

The rest of the program works without it.
"""

from .checks import as_written, examine, report

__all__ = ["as_written", "examine", "report"]
