"""A person who answers in a thread, for tests of approvals."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from yourturn.approval.call_binding import program
from yourturn.client import Client

#: The name of the program that runs the tests: pytest, or one of its workers.
PROGRAM = program()


@contextmanager
def person(desk: Client, act: Callable[[dict[str, Any]], object], times: int = 1) -> Iterator[list[dict[str, Any]]]:
    """Calls `act` on each question as soon as it is asked; yields these questions."""
    start, seen = desk.desk_cursor(), list[dict[str, Any]]()

    def react() -> None:
        for event in desk.watch(start, 30):
            if event["action"] == "ask":
                for opened in event["data"]["opened"]:
                    seen.append(desk.show(opened["id"]))
                    act(seen[-1])
                    if len(seen) == times:
                        return

    thread = threading.Thread(target=react)
    thread.start()
    try:
        yield seen
    finally:
        thread.join(40)


def edit(desk: Client, **changed: Any) -> Callable[[dict[str, Any]], object]:
    """Approve with changed arguments."""

    def act(q: dict[str, Any]) -> object:
        return desk.approve(q["id"], value={**q["action"], "arguments": {**q["action"]["arguments"], **changed}})

    return act


def outcome(q: dict[str, Any]) -> tuple[str, Any]:
    return q["status"], q["used_by"]
