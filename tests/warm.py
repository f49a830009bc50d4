"""What every process does for the first time, done once by the mother of many.

Before she forks the first child she makes a desk, uses it and takes it away. What is then kept in memory (the texts of
statements, patterns, what the interpreter has learned about the code) every child has from the start; nothing stays open.
"""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from yourturn import strict
from yourturn.config import connect, init
from yourturn.db import sql_loader
from yourturn.db.postgres import PostgresStore


def up() -> None:
    sql_loader.queries(PostgresStore.words)
    with tempfile.TemporaryDirectory(prefix="yourturn-warm-") as folder:
        address = str(Path(folder) / "yourturn.db")
        init(address, "PROJ", None, {"USER": "ana"})[0].close()
        for _ in range(3):
            with connect(address, as_="human:ana", project="PROJ", env={}) as ana:
                key = ana.create("Done before")["key"]
                with connect(address, as_="agent:coder", project="PROJ", env={}) as coder:
                    got = coder.claim_next("w1", lease="60s")
                    coder.complete(got["claim"]["token"], "done")
                ana.flag(ana.create("Asked before")["key"], "Which?")
                ana.show(key)
                ana.reconcile()
        with connect(address, as_="human:ana", project="PROJ", env={}) as ana:
            strict.examine(ana)
    assert threading.active_count() == 1, "who forks is alone"
