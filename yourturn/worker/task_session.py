"""One task from its claim to its outcome.

    folder ─ the agent's turns (turns.py) ─ say what came of them

Whatever goes wrong here goes wrong for this task only, and reaches a person: a lost claim ends the work, everything else
becomes a question. Work in the folder is kept unless the agent itself says that it failed; then it is put aside, not lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from ..core.errors import ClaimLost, YourturnError
from ..core.field_text import account
from ..core.rules import KINDS
from .agent_turns import Came, Turns, question
from .claim_holder import Holder, Result
from .git import worktrees
from .signals import outcomes

if TYPE_CHECKING:
    from ..client import Client
    from .agents.base import Agent
    from .worker import Worker


_BODY = 10_000  #: characters of each part of a commit's message


class Sitting(Holder):
    def __init__(self, worker: Worker, desk: Client, got: dict[str, Any], agent: Agent) -> None:
        super().__init__(worker, desk, got)
        self.agent = agent

    # --- the whole ----------------------------------------------------------------------------------------------------

    def run(self) -> Result:
        try:
            with ExitStack() as stack:
                self._sit_down()
                stack.callback(worktrees.leave, self.place)
                came = self.turns.take()
                self.task = self.turns.task
                return self._say(came)
        except ClaimLost as error:
            return Result("lost", str(error))
        except YourturnError as error:
            return self.hand_over(error, getattr(error, "flag", "") or "blocked_external")
        except Exception as bug:
            return self.hand_over(bug, "blocked_external")
        finally:
            self.minutes.flush()

    def _sit_down(self) -> None:
        """The folder, and the session that is to be woken, if there is one and it can be."""
        self.place = self.folder(self.desk.patch(self.key))
        self.turns = Turns(self, self.desk, self.agent, self.place)
        self.turns.sit_down(self.task["session_id"], self.task.get("seat") or {}, self.task["host"])

    def _say(self, came: Came) -> Result:
        match came.what:
            case "done":
                return self._complete(came.text, outcomes.account(came.context))
            case "failed":
                return self._fail(came.text, outcomes.account(came.context))
            case "moved":
                return self._moved()
            case "released":
                return self._release(came.text)
            case "stopped":
                self._park(came)
                return Result("stopped", "it goes on where it was, next time")
            case "waiting":
                self._park(came)
                self.worker.waits(self.key, self.place)
                return self._waits()
        if came.what == "unable":
            self.worker.unable(self.agent.name, came.text)
        return self._ask(came)

    # --- what is said about it ----------------------------------------------------------------------------------------

    def _complete(self, summary: str, said: dict[str, Any]) -> Result:
        worktrees.finish(self.place, self._message(summary, account(**said)))
        self.task = self.desk.complete(self.claim, summary, **said)
        self.worker.finished(self.key, self.place, self.task)
        return self._finished(summary or "finished")

    def _message(self, *said: str) -> str:
        """Of the commit: what was done, and what the agent says about it."""
        title = " ".join(self.task["title"].split())
        return "\n\n".join([f"{self.key}: {title}", *(text.strip()[:_BODY] for text in said if text.strip())]) + "\n"

    def _finished(self, words: str) -> Result:
        if self.task["awaiting"]:
            return self._waits()
        return Result("done", words if self.task["ended_at"] else f"{words} (a person looks at it before it counts)")

    def _waits(self) -> Result:
        return Result("waiting", f"waits for a person ({self.task['awaiting']}): {question(self.task)}")

    def _ask(self, came: Came) -> Result:
        """The signal's text becomes the question and a note."""
        self.turns.remember()
        self._keep()
        also = came.fields.get("also", ())
        for said in (came.text, *(other["text"] for other in also)):
            if said:
                self.desk.note(self.key, said)
        text = came.text or KINDS[came.kind].prompt.format(title=self.task["title"])
        fields = {"context": came.context or None, **came.fields}
        self.desk.flag(self.key, text, came.reason or None, came.kind, claim=self.claim, **fields)  # type: ignore[arg-type]
        self.worker.waits(self.key, self.place)
        more = f" (and {len(also)} more)" if also else ""
        return Result("waiting", f"waits for a person ({came.kind}): {text.splitlines()[0]}{more}")

    def _fail(self, reason: str, said: dict[str, Any]) -> Result:
        ref = worktrees.roll_back(self.place, self.key)
        kept = f" (its work is kept as {ref})" if ref else ""
        self.desk.fail(self.claim, f"{reason}{kept}", **said)
        return Result("failed", f"{reason}{kept}")

    def _release(self, reason: str) -> Result:
        self._keep()
        self.desk.note(self.key, f"Given back: {reason}")
        task = self.desk.release(self.claim, reason)
        left, person = task["max_retries"] - task["retry_count"], bool(task["awaiting"])
        more = "a person is asked" if person else f"{left} more tr{'y' if left == 1 else 'ies'}"
        return Result("released", f"{reason.rstrip('.')}; {more}", person)

    def _park(self, came: Came) -> None:
        self.turns.remember(parked=came.parked)
        self._keep()
        self.desk.park(self.claim)

    def _keep(self) -> None:
        self.keep_patch(self.place.base or "", lambda: worktrees.patch_of(self.place))

    def _moved(self) -> Result:
        """The task has moved without us: by the agent itself, through a tool or a command, or because the claim is over."""
        claims = self.desk.history(self.key, action="claim", limit=1000)
        since = next(event["seq"] for event in reversed(claims) if event["data"]["set"]["epoch"] == self.claim["epoch"])
        told = self._events(since)
        ours = takewhile(lambda event: event["action"] not in ("claim", "expire"), told)  # then it was somebody else's
        did = {event["action"]: event for event in ours if event["actor"] == self.desk.who.name and _lets_go(event)}
        own = list(did)
        if "complete" in own:
            said = [note["text"] for note in did["complete"]["data"].get("notes", ())]
            made = worktrees.finish(self.place, self._message(self.task["summary"], *said))
            self.worker.finished(self.key, self.place, self.task)
            return self._finished(self.task["summary"] or made["words"])
        if "fail" in own:
            ref = worktrees.roll_back(self.place, self.key)
            return Result("failed", self.task["reason"] + (f" (its work is kept as {ref})" if ref else ""))
        if self.task["awaiting"] and own:
            return self._waits()
        if own:
            return Result("moved", "the agent moved it on itself")
        return Result("lost", "the claim was lost; what was done stays in its folder")

    def _events(self, after: int) -> Iterator[dict[str, Any]]:
        """All of the task since then, however much it noted."""
        while page := self.desk.history(self.key, after=after, limit=100):
            yield from page
            after = page[-1]["seq"]


def _lets_go(event: dict[str, Any]) -> bool:
    """Did the claim end with this?"""
    return (event["data"].get("set") or {}).get("holder", "") is None
