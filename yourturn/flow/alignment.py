"""After a change of the script: which of its calls are those that the older script made.

The older calls lie aside, from the call at which the scripts differ. They are aligned with the new ones in order, one line of
calls with one line of calls, as a diff aligns lines of text:

    run, step, sleep            the next older call that is the same. If the only one in the journal stood elsewhere, a deed
                                (run, step) is taken over from there: a deed is not done again because two lines were swapped
    pause, ask                  the next older one, if it is the only one that is the same and stands directly behind the call
                                that it stood behind. An answer is never moved to another question: else it is asked again
    step(lambda: …)             the next older one, if it stands directly behind the call that it stood behind
    now, random, uuid           directly behind the call that it stood behind

What fits call by call may still belong to another call (`doubts`): a question that is asked twice behind the same deed, if one of
them is deleted or another one written before it; a function without a name, if it is another one now. A person decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.canonical_json import dumps
from ..core.journal import call_digest

Step = dict[str, Any]
#: Calls that do nothing outside.
QUIET = ("now", "random", "uuid", "log")
#: Calls of which a script may have more or fewer: neither their number nor their place says which call another one is.
LOOSE = ("now", "log")
ASKS = ("pause", "ask")
#: How long a person has, who is asked, and how urgently. Not what is asked.
PATIENCE = ("timeout", "on_timeout", "urgency", "reviewer")
#: What functions are called that have no name: in Python, and in Lua.
NAMELESS = ("lambda", "partial", "function")
SHORT = 12  #: characters that tell one mark from another


def bare(call: Any) -> Any:
    return {name: value for name, value in call.items() if name not in PATIENCE} if isinstance(call, dict) else call


def same(step: Step, name: str, call: Any, digest: str) -> bool:
    """Is that the call of this step?"""
    if step["name"] != name:
        return False
    return bool(name == "log" or step["digest"] == digest) or dumps(bare(step["call"])) == dumps(bare(call))


def mark(step: Step) -> str:
    return call_digest(step["name"], bare(step["call"]))


def nameless(name: str, call: Any) -> bool:
    """A step() of a lambda, say: nothing tells it from another one."""
    return name == "step" and str(call["function"]).rpartition(".")[2] in NAMELESS


def number(path: str) -> int:
    return int(path.rpartition(".")[2])


def place(path: str) -> list[int]:
    return [int(part) for part in path.split(".")]


def line_of(path: str) -> str:
    return path.rpartition(".")[0]


class Doubt(NamedTuple):
    """Calls that are the same, and whose records may be each other's in the script as it is now."""

    mark: str
    step: Step
    places: list[str]

    @property
    def first(self) -> str:
        return self.places[0]


def doubts(steps: Mapping[str, Step], new: Step | None = None) -> list[Doubt]:
    """`steps` by place: what was recorded; `new`: the call that the changed script makes now. The first place comes first."""
    calls = [*steps.items(), *([(new["path"], new)] if new is not None and new["name"] in ASKS else [])]
    found: dict[tuple[str, str], Doubt] = {}
    deeds: dict[str, str] = {}  #: the last one of each line
    for path, step in sorted(calls, key=lambda call: place(call[0])):
        if step["name"] in QUIET:
            continue
        asks, own, line = step["name"] in ASKS, mark(step), line_of(path)
        if asks or nameless(step["name"], step["call"]):
            found.setdefault((own, deeds.get(line, "") if asks else ""), Doubt(own, step, [])).places.append(path)
        if not asks:
            deeds[line] = own
    return [doubt for doubt in found.values() if len(doubt.places) > 1 or doubt.step["name"] not in ASKS]


def place_in_doubt(steps: list[Step], at: int) -> int:
    """From which call on to align, if the scripts differ at `at`: an answer before it may belong to a later question.

    The calls before `at` fit the first calls of the older script. Where they fit later ones as well, an answer has more than one
    place, and everything from there on is aligned anew.
    """
    own = [s for s in steps if s["index"].isdigit() and not s["spare"]]
    asked = {s["index"].partition(".")[0] for s in steps if s["name"] in ASKS and not s["spare"]}
    own.sort(key=lambda s: int(s["index"]))
    marks = [mark(s) for s in own]
    latest, found = len(own), at
    for here in range(sum(int(s["index"]) < at for s in own) - 1, -1, -1):
        latest = next(n for n in range(latest - 1, -1, -1) if marks[n] == marks[here])
        if latest != here and own[here]["index"] in asked:
            found = int(own[here]["index"])
    return found


class Spares:
    """What the older script called and the new one may call again."""

    def __init__(self, steps: list[Step], journal: int, without: str = "", again: tuple[str, ...] = ()) -> None:
        """`without`: this call, and those behind it in its line, are to be made again; `again`: so are calls with these marks."""
        self.journal, self.again = journal, again
        spares = [s for s in steps if s["spare"] and not _behind(s["index"], without)]
        own = [s for s in steps if not s["spare"]]
        self.first = min((int(s["index"].partition(".")[0]) for s in steps if s["spare"]), default=0)
        self.taken = {old for s in own if (old := self.old(s["index"], s)) and (s["seat"] or {}).get("spare")}
        self.marks: dict[str, list[Step]] = {}
        self.lines: dict[str, list[tuple[int, str]]] = {}  #: the calls of each line that do something outside
        for step in spares:
            self.marks.setdefault(mark(step), []).append(step)
        for step in [*(s for s in own if self._kept(s["index"])), *spares]:
            if step["name"] not in QUIET:
                self.lines.setdefault(line_of(step["index"]), []).append((number(step["index"]), step["index"]))

    def _kept(self, path: str) -> bool:
        return int(path.partition(".")[0]) < self.first

    def old(self, path: str, step: Step | None) -> str:
        """Where this call stood in the older script, if it was made there."""
        known = ((step or {}).get("seat") or {}).get("spare")
        if known and known[0] == self.journal:
            return str(known[1])
        return path if self._kept(path) else ""

    def find(self, name: str, call: Any, line: str | None, cursor: int, behind: str | None) -> Step | None:
        """`line`: the older line of calls, if there is one; `cursor`: how far it is; `behind`: where the call before stood."""
        wanted = call_digest(name, bare(call))
        known = self.marks.get(wanted, [])
        here = [s for s in known if line_of(s["index"]) == line and number(s["index"]) > cursor and s["index"] not in self.taken]
        here.sort(key=lambda s: number(s["index"]))
        if name in ASKS or nameless(name, call):
            unsure = wanted[:SHORT] in self.again or (name in ASKS and len(known) > 1)
            return here[0] if here and not unsure and self.in_place(here[0]["index"], behind) else None
        if name in QUIET:
            return next((s for s in here if number(s["index"]) == cursor + 1), None)
        if here:
            return here[0]
        moved = name in ("run", "step") and len(known) == 1 and known[0]["index"] not in self.taken
        return known[0] if moved else None

    def in_place(self, path: str, behind: str | None) -> bool:
        """Did the older call at this place stand directly behind that one, or as that one at the beginning?"""
        earlier = [found for found in self.lines.get(line_of(path), ()) if found[0] < number(path)]
        return (max(earlier)[1] if earlier else "") == behind


def _behind(path: str, other: str) -> bool:
    return bool(other) and line_of(path) == line_of(other) and number(path) >= number(other)
