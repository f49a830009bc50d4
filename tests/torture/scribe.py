"""A process that writes until it is killed, and says aloud what was acknowledged: the task's key and its claim."""

from __future__ import annotations

import sys
import time

from yourturn.config import connect
from yourturn.core.errors import Busy, ClaimLost, NotFound


def main(address: str, name: str) -> None:
    with connect(address, as_=f"human:w{name}", project="PROJ", env={}) as desk:
        number = 0
        while True:
            number += 1
            try:
                key = desk.create(f"Task {number} of {name}", depends_on=[])["key"]
                claim = desk.claim(key, f"w{name}")["claim"]
                print(key, claim["token"], flush=True)
                if number % 3 == 1:
                    asked = desk.ask(key, "Which?", claim=claim)
                    if number % 2:
                        desk.answer(asked["id"], "that")
                elif number % 3 == 2:
                    desk.complete(claim, "done")
                desk.note("PROJ-1", f"{name} was here")
            except (Busy, ClaimLost, NotFound):
                continue  # somebody was faster, or the desk was restored
            time.sleep(0.005)  # the desk should grow with the backups, not run away from them


if __name__ == "__main__":
    main(*sys.argv[1:])
