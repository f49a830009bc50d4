"""Durable workflows: scripts that wait for people, for days if need be, and use no process while they wait.

    from yourturn.flow import pause, run, stuck, workflow

    @workflow
    def feature(prompt):
        run("architect", prompt)
        run("coder")
        ok = pause("Approve deployment to production?")
        if not ok:
            return stuck(ok.reason)
        run("deployer")

`turn run feature.py "Add login"` runs it. In a file that `turn run` runs, the functions are there without an import too.
"""

from __future__ import annotations

from .api import ask, config, log, now, parallel, pause, random, run, sleep, step, stuck, uuid
from .results import Answer, Pause, Signal, StepFailed
from .script import workflow

__all__ = [
    "Answer", "Pause", "Signal", "StepFailed", "ask", "config", "log", "now", "parallel", "pause", "random", "run", "sleep",
    "step", "stuck", "uuid", "workflow",
]  # fmt: skip
