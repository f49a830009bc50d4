"""After a change of the script: which of its calls are those that the older script made.

The older calls lie aside, from the call at which the scripts differ. They are aligned with the new ones in order, one line of
calls with one line of calls, as a diff aligns lines of text:

    run, step, sleep            the next older call that is the same. If the only one in the journal stood elsewhere, a deed
                                (run, step) is taken over from there: a deed is not done again because two lines were swapped
    pause, ask                  the next older one, if it is the only one that is the same, and if it stands behind the call that
                                it stood behind or the script asks this in one place only. A person's answer is never moved to
                                another question: where it has more than one place, the question is asked again
    now, random, uuid           directly behind the call that it stood behind
"""

from __future__ import annotations

from typing import Any

from ..core.canon import dumps
from ..core.journal import call_digest

Step = dict[str, Any]
#: Calls that do nothing outside.
QUIET = ("now", "random", "uuid", "log")
#: Calls of which a script may have more or fewer: neither their number nor their place says which call another one is.
LOOSE = ("now", "log")
ASKS = ("pause", "ask")
#: How long a person has, who is asked, and how urgently. Not what is asked.
PATIENCE = ("timeout", "on_timeout", "urgency", "reviewer")


def bare(call: Any) -> Any:
    return {name: value for name, value in call.items() if name not in PATIENCE} if isinstance(call, dict) else call


def same(step: Step, name: str, call: Any, digest: str) -> bool:
    """Is that the call of this step?"""
    if step["name"] != name:
        return False
    return bool(name == "log" or step["digest"] == digest) or dumps(bare(step["call"])) == dumps(bare(call))


def mark(step: Step) -> str:
    return call_digest(step["name"], bare(step["call"]))


def number(path: str) -> int:
    return int(path.rpartition(".")[2])


def line_of(path: str) -> str:
    return path.rpartition(".")[0]


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
    for place in range(sum(int(s["index"]) < at for s in own) - 1, -1, -1):
        latest = next(n for n in range(latest - 1, -1, -1) if marks[n] == marks[place])
        if latest != place and own[place]["index"] in asked:
            found = int(own[place]["index"])
    return found


class Spares:
    """What the older script called and the new one may call again."""

    def __init__(self, steps: list[Step], journal: int, without: str = "") -> None:
        """`without`: this call, and those behind it in its line, are to be made again."""
        self.journal = journal
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

    def find(self, name: str, call: Any, line: str | None, cursor: int, behind: str | None, body: str = "") -> Step | None:
        """`line`: the older line of calls, if there is one; `cursor`: how far it is; `behind`: where the call before this stood;
        `body`: the script."""
        known = self.marks.get(call_digest(name, bare(call)), [])
        here = [s for s in known if line_of(s["index"]) == line and number(s["index"]) > cursor and s["index"] not in self.taken]
        here.sort(key=lambda s: number(s["index"]))
        if name in ASKS:
            found = here or (known if line is None and known and known[0]["index"] not in self.taken else [])
            if not found or len(known) > 1:
                return None
            return found[0] if self._before(found[0]["index"]) == behind or _places(call["text"], body) <= 1 else None
        if name in QUIET:
            return next((s for s in here if number(s["index"]) == cursor + 1), None)
        if here:
            return here[0]
        moved = name in ("run", "step") and len(known) == 1 and known[0]["index"] not in self.taken
        return known[0] if moved else None

    def _before(self, path: str) -> str:
        """The call before that one in its line, or none."""
        earlier = [found for found in self.lines[line_of(path)] if found[0] < number(path)]
        return max(earlier)[1] if earlier else ""


def _places(text: str, body: str) -> int:
    """Where a script asks this."""
    return sum(body.count(f"{quote}{text}{quote}") for quote in ("'", '"'))


def _behind(path: str, other: str) -> bool:
    return bool(other) and line_of(path) == line_of(other) and number(path) >= number(other)
