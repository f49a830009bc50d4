"""Output of agent sessions, and patches of the work in their folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from . import serialize
from .refs import ClientBase, Named, not_served


class Output(ClientBase):
    def write_output(self, claim: Named, lines: Iterable[tuple[str, str]]) -> None:
        """Append lines, (sort, text), to the output of the session. Requires the claim."""
        from ..desk import agent_output

        task, token = self._shown(claim)
        agent_output.write(self.desk, task, token, lines)

    def output(self, task: Named, *, after: int | None = None, limit: int = 500) -> list[dict[str, Any]]:
        """Output lines of a task's sessions: those after the line `after`, or the newest ones."""
        from ..desk import agent_output

        lines = agent_output.lines(self.desk, self._task(task), -1 if after is None else after, limit)
        return [{"id": x.id, "epoch": x.epoch, "at": serialize.time(x.at), "sort": x.sort, "text": x.text} for x in lines]

    @not_served
    def follow(self, task: Named, after: str | None = None, line: int = 0) -> Iterator[dict[str, Any]]:
        """New events and output lines of a task, as they are recorded: those after the cursor `after` and the line `line`.

        A line has a `sort`, an event has an `action`.
        """
        key, cursor = self.show(task)["key"], after or self.desk.cursor()
        while True:
            for line_ in self.output(key, after=line):
                line = line_["id"]
                yield line_
            for event in self.watch(cursor, 0.0):  # type: ignore[attr-defined]
                cursor = event["cursor"]
                if event["task"] == key:
                    yield event
            self.desk.wait(1.0)

    def keep_patch(self, claim: Named, base: str, body: str) -> None:
        """Store the uncommitted work of the folder as a patch, so that another machine can continue it."""
        from ..desk import agent_output

        task, token = self._shown(claim)
        agent_output.keep(self.desk, task, token, base, body)

    def patch(self, task: Named) -> dict[str, Any] | None:
        """The stored patch of a task: `base` (a commit) and `body`."""
        from ..desk import agent_output

        patch = agent_output.patch(self.desk, self._task(task))
        return {**patch._asdict(), "at": serialize.time(patch.at)} if patch else None

    def _shown(self, claim: Named) -> tuple[int, str]:
        held = self._hold(claim, None, None)
        return held["task"], held["claim"] or ""
