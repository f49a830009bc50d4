"""After a change of the script: which of its calls match recorded steps of the older script.

From the call at which the scripts differ, the older steps are superseded. They are aligned with the new calls in order, branch
by branch, as a diff aligns lines of text:

    run, step, sleep            the next older step with the same call. If the only such step stood elsewhere, a run or step is
                                reused from there: swapping two lines does not repeat an effect
    pause, ask                  the next older step, if it is the only one with the same call and follows the same call as before.
                                An answer is never moved to another question; otherwise the question is asked again
    step(lambda: …)             the next older step, if it follows the same call as before
    now, random, uuid           the step that follows the same call as before

Steps that match call by call may still belong to another call (`doubts`): a question that is asked twice after the same effect,
if one of the two is deleted or another one is inserted before it; an anonymous function, if it is a different one now. A person
decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.canonical_json import dumps
from ..core.journal import call_digest

Step = dict[str, Any]
#: Calls without an effect outside the run.
QUIET = ("now", "random", "uuid", "log")
#: Calls that a script may add or remove freely: neither their number nor their position identifies other calls.
LOOSE = ("now", "log")
ASKS = ("pause", "ask")
#: Options about how a person is asked, not about what is asked.
WAIT_OPTIONS = ("timeout", "on_timeout", "urgency", "reviewer")
#: Names of anonymous functions, in Python and in Lua.
NAMELESS = ("lambda", "partial", "function")
SHORT = 12  #: characters of a digest that identify a call


def essential(call: Any) -> Any:
    """The arguments without the options about waiting."""
    return {name: value for name, value in call.items() if name not in WAIT_OPTIONS} if isinstance(call, dict) else call


def matches(step: Step, name: str, call: Any, digest: str) -> bool:
    """Whether this is the call that the step recorded."""
    if step["name"] != name:
        return False
    return bool(name == "log" or step["digest"] == digest) or dumps(essential(step["call"])) == dumps(essential(call))


def call_mark(step: Step) -> str:
    return call_digest(step["name"], essential(step["call"]))


def is_anonymous(name: str, call: Any) -> bool:
    """A step() of an anonymous function: its name does not identify it."""
    return name == "step" and str(call["function"]).rpartition(".")[2] in NAMELESS


def last_number(path: str) -> int:
    return int(path.rpartition(".")[2])


def path_key(path: str) -> list[int]:
    return [int(part) for part in path.split(".")]


def branch_of(path: str) -> str:
    return path.rpartition(".")[0]


class Doubt(NamedTuple):
    """Equal calls whose recorded steps may be swapped in the changed script."""

    mark: str  #: as of `call_mark`
    step: Step
    places: list[str]

    @property
    def first(self) -> str:
        return self.places[0]


def doubts(steps: Mapping[str, Step], new: Step | None = None) -> list[Doubt]:
    """`steps`: recorded, by path; `new`: the call that the changed script makes now. Ordered by first path."""
    calls = [*steps.items(), *([(new["path"], new)] if new is not None and new["name"] in ASKS else [])]
    candidates: dict[tuple[str, str], Doubt] = {}
    effects: dict[str, str] = {}  #: the last call with an effect, by branch
    for path, step in sorted(calls, key=lambda call: path_key(call[0])):
        if step["name"] in QUIET:
            continue
        asks, own, branch = step["name"] in ASKS, call_mark(step), branch_of(path)
        if asks or is_anonymous(step["name"], step["call"]):
            candidates.setdefault((own, effects.get(branch, "") if asks else ""), Doubt(own, step, [])).places.append(path)
        if not asks:
            effects[branch] = own
    return [doubt for doubt in candidates.values() if len(doubt.places) > 1 or doubt.step["name"] not in ASKS]


def first_doubtful(steps: list[Step], at: int) -> int:
    """The call from which to align, if the scripts differ at `at`: an answer before it may belong to a later question.

    The calls before `at` match the first calls of the older script. Where they match later ones as well, an answer has more than
    one possible place, and everything from there on is aligned again.
    """
    own = [s for s in steps if s["index"].isdigit() and not s["spare"]]
    asked = {s["index"].partition(".")[0] for s in steps if s["name"] in ASKS and not s["spare"]}
    own.sort(key=lambda s: int(s["index"]))
    marks = [call_mark(s) for s in own]
    latest, first = len(own), at
    for here in range(sum(int(s["index"]) < at for s in own) - 1, -1, -1):
        latest = next(n for n in range(latest - 1, -1, -1) if marks[n] == marks[here])
        if latest != here and own[here]["index"] in asked:
            first = int(own[here]["index"])
    return first


class Superseded:
    """Steps of the older script that calls of the new one may reuse."""

    def __init__(self, steps: list[Step], journal: int, without: str = "", again: tuple[str, ...] = ()) -> None:
        """`without`: this call and the later ones of its branch are not reused; neither are calls with the digests in `again`."""
        self.journal, self.again = journal, again
        reusable = [s for s in steps if s["spare"] and not _from_on(s["index"], without)]
        own = [s for s in steps if not s["spare"]]
        self.first = min((int(s["index"].partition(".")[0]) for s in steps if s["spare"]), default=0)
        self.taken = {old for s in own if (old := self.old(s["index"], s)) and (s["seat"] or {}).get("spare")}
        self.marks: dict[str, list[Step]] = {}
        self.by_branch: dict[str, list[tuple[int, str]]] = {}  #: calls with effects, by branch
        for step in reusable:
            self.marks.setdefault(call_mark(step), []).append(step)
        for step in [*(s for s in own if self._kept(s["index"])), *reusable]:
            if step["name"] not in QUIET:
                self.by_branch.setdefault(branch_of(step["index"]), []).append((last_number(step["index"]), step["index"]))

    def _kept(self, path: str) -> bool:
        return int(path.partition(".")[0]) < self.first

    def old(self, path: str, step: Step | None) -> str:
        """The path of this call in the older script, if that made it."""
        reused = ((step or {}).get("seat") or {}).get("spare")
        if reused and reused[0] == self.journal:
            return str(reused[1])
        return path if self._kept(path) else ""

    def find(self, name: str, call: Any, branch: str | None, cursor: int, behind: str | None) -> Step | None:
        """`branch`: the older branch, if there is one; `cursor`: its position; `behind`: the older path of the previous call."""
        wanted = call_digest(name, essential(call))
        equal = self.marks.get(wanted, [])
        later = [s for s in equal if branch_of(s["index"]) == branch and last_number(s["index"]) > cursor]
        here = [s for s in later if s["index"] not in self.taken]
        here.sort(key=lambda s: last_number(s["index"]))
        if name in ASKS or is_anonymous(name, call):
            unsure = wanted[:SHORT] in self.again or (name in ASKS and len(equal) > 1)
            return here[0] if here and not unsure and self.in_place(here[0]["index"], behind) else None
        if name in QUIET:
            return next((s for s in here if last_number(s["index"]) == cursor + 1), None)
        if here:
            return here[0]
        moved = name in ("run", "step") and len(equal) == 1 and equal[0]["index"] not in self.taken
        return equal[0] if moved else None

    def in_place(self, path: str, behind: str | None) -> bool:
        """Whether the older call at this path directly followed `behind` (or, like it, came first)."""
        earlier = [call for call in self.by_branch.get(branch_of(path), ()) if call[0] < last_number(path)]
        return (max(earlier)[1] if earlier else "") == behind


def _from_on(path: str, other: str) -> bool:
    return bool(other) and branch_of(path) == branch_of(other) and last_number(path) >= last_number(other)
