"""What an agent's session says while it works, and the work that it leaves in its folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from . import serialize
from .refs import ClientBase, Named, not_served


class Output(ClientBase):
    def write_output(self, claim: Named, lines: Iterable[tuple[str, str]]) -> None:
        """Add lines, (sort, text), to what the session has said. Only who holds the claim can."""
        from ..desk import agent_output

        task, token = self._shown(claim)
        agent_output.write(self.desk, task, token, lines)

    def output(self, task: Named, *, after: int | None = None, limit: int = 500) -> list[dict[str, Any]]:
        """What the sessions of a task have said: after that line, or the newest."""
        from ..desk import agent_output

        found = agent_output.lines(self.desk, self._task(task), -1 if after is None else after, limit)
        return [{"id": x.id, "epoch": x.epoch, "at": serialize.time(x.at), "sort": x.sort, "text": x.text} for x in found]

    @not_served
    def follow(self, task: Named, after: str | None = None, line: int = 0) -> Iterator[dict[str, Any]]:
        """Events of a task and what its sessions say, as they happen. `after` is a cursor, `line` the last line that is known.

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
        """Keep the work that lies in the folder, so that another machine can go on with it."""
        from ..desk import agent_output

        task, token = self._shown(claim)
        agent_output.keep(self.desk, task, token, base, body)

    def patch(self, task: Named) -> dict[str, Any] | None:
        """The work that the last session left behind: `base` and `body`."""
        from ..desk import agent_output

        found = agent_output.patch(self.desk, self._task(task))
        return {**found._asdict(), "at": serialize.time(found.at)} if found else None

    def _shown(self, claim: Named) -> tuple[int, str]:
        held = self._hold(claim, None, None)
        return held["task"], held["claim"] or ""
