"""A process that creates and claims a task for each input line, and prints what was acknowledged."""

from __future__ import annotations

import os
import sys

from yourturn.config import connect
from yourturn.core.errors import Busy, ClaimLost, IllegalMove, NotFound


def main(address: str, name: str) -> None:
    with connect(address, as_=f"human:w{name}", project="PROJ", env={}) as desk:
        for number, _ in enumerate(sys.stdin, 1):
            try:
                key = desk.create(f"Task {number} of {name}", depends_on=[])["key"]
                claim = desk.claim(key, f"w{name}")["claim"]
                os.write(1, f"{key} {claim['token']}\n".encode())  # whole, or not at all: a kill may come between two writes
                if number % 3 == 1:
                    asked = desk.ask(key, "Which?", claim=claim)
                    if number % 2:
                        desk.answer(asked["id"], "that")
                elif number % 3 == 2:
                    desk.complete(claim, "done")
                desk.note("PROJ-1", f"{name} was here")
            except (Busy, ClaimLost, IllegalMove, NotFound):
                continue  # another writer was faster, or the desk was restored and the key belongs to another task


if __name__ == "__main__":
    main(*sys.argv[1:])
