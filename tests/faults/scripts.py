"""Section `scripts`: random scripts that are killed at each step end with the same result as undisturbed ones.

Each script (scripts.py) is first run in peace: that says how it ends, what its journal holds and what it does outside. Then
it is run by processes that die: the first is killed at the first point behind its claim, the next one takes the run over when
the lease is over and is killed at the next point, until something was committed; from there it begins anew. So each commit of
the run is survived at each of its points, and whatever happens between them. So it is for one script in four; the others are
killed at one point of each commit, by chance, and in the short form all are. A person answers when it waits, and the clock is
wound when it sleeps.

In the end state, words, journal and effects must be as in peace. After every death: what is completed in the journal stays as
it is; nothing was done outside whose result was already written; what was done again was done with the same values; and
nothing was done twice by one process.
"""

from __future__ import annotations

import json
import random
import re
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any
from zlib import crc32

from yourturn import strict
from yourturn.client import Client
from yourturn.config import connect, init
from yourturn.db.failpoints import POINTS

from . import Place, Tally
from .ledger import SECOND, Ledger, SharedClock, lines
from .processes import Processes
from .random_scripts import CHANGE, Script, script
from .script_sessions import FILE, LEASE, Reaper, Session

#: In the long form.
PROGRAMS = 1000
_DESK = 25  #: so many on one desk, so that looking at all of it stays cheap
_START = 1_790_000_000_000_000
_COMMIT = len(POINTS) - 1  #: the points of one commit; no reply is sent here
#: Survived at each point, in the long form.
CHANGES = ("claim_next", "step", "flag", "park", "complete", "fail", "rewind")
_VOLATILE = ("now", "random", "uuid")
_DATES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)")
_ENOUGH = 1000  #: sessions that no run needs

Wrong = Callable[[str], None]


class Stage:
    """A desk, the folder in which a script lies, a clock and a ledger outside."""

    def __init__(self, address: str, folder: Path) -> None:
        folder.mkdir(parents=True)
        init(address, "PROJ", None, {"USER": "ana"})[0].close()
        self.address, self.folder = address, folder
        self.clock = SharedClock(f"{folder}/clock", _START)
        self.ana = self._open("human:ana")
        self.worker = self._open("agent:coder")

    def _open(self, who: str) -> Client:
        return connect(self.address, as_=who, project="PROJ", clock=self.clock, env={})

    def begin(self, text: Script, tries: int) -> str:
        for file in self.folder.iterdir():
            if file.name != "clock":
                file.unlink()
        self.lay(text.body)
        source = {"file": FILE, "body": text.body}
        key: str = self.ana.create("A run", workflow=FILE, program=source, max_retries=tries)["key"]
        return key

    def lay(self, body: str) -> None:
        Path(self.folder, FILE).write_text(body)

    def ledger(self) -> list[dict[str, Any]]:
        return lines(f"{self.folder}/ledger")

    def close(self) -> None:
        self.ana.close()
        self.worker.close()


class Run:
    """One run, from its creation to its end."""

    def __init__(self, stage: Stage, text: Script, tries: int, wrong: Wrong) -> None:
        self.stage, self.text, self.wrong = stage, text, wrong
        self.key = stage.begin(text, tries)
        self.sessions = 0
        self.steps: list[dict[str, Any]] = []
        self.known: dict[tuple[int, bool, str], str] = {}  #: what is completed, and came to what
        self.written: dict[tuple[int, str], int] = {}  #: what was done outside, and the session behind which that is written
        self.sleepers: set[int] = set()  #: sessions that were stopped: they may wake in the middle of something

    def look(self) -> dict[str, Any]:
        task = self.stage.ana.show(self.key)
        self.steps = task["steps"]
        for step in self.steps:
            if step["status"] == "completed":
                place = (task["journal"], step["spare"], step["index"])
                came = json.dumps([step["name"], step["call"], step["result"]])
                if self.known.setdefault(place, came) != came:
                    before, self.known[place] = self.known[place], came
                    self.wrong(f"step {step['index']} came to {before}, and later to {came}")
                if (name := _outside(step)) and not step["spare"]:
                    self.written.setdefault((task["journal"], name), self.sessions)
        return task

    def signature(self, task: dict[str, Any]) -> Any:
        """Another one when the script got further. That it was lost too often brings it no further."""
        questions = sum(q["reason"] != "retry_exhausted" for q in task["questions"])
        return len(self.known), task["journal"], questions, len(self.steps)

    def person(self, task: dict[str, Any]) -> bool:
        """What others than the script can do now. False when it is the script's turn, or it has ended."""
        ana, clock = self.stage.ana, self.stage.clock
        if task["state"] == "deferred":
            clock.advance((_micros(task["wake_at"]) - clock()) / SECOND + 1)
        elif task["state"] == "working":
            clock.advance(LEASE + 1)
        elif task["state"] == "human":
            pending = [q for q in task["questions"] if q["status"] == "pending" and q["blocking"]]
            aloud = [q for q in pending if not q["text"].startswith("silent")]
            if aloud:
                self._answer(min(aloud, key=lambda q: str(q["text"])))
            else:
                clock.advance((min(_micros(q["timeout_at"]) for q in pending) - clock()) / SECOND + 1)
        else:
            return False
        ana.reconcile()
        return True

    def _answer(self, q: dict[str, Any]) -> None:
        ana, luck = self.stage.ana, crc32(q["text"].encode())
        if q["text"] == CHANGE and self.text.changed:
            self.stage.lay(self.text.changed)
        if q["reason"] == "code_changed":
            ana.answer(q["id"], self.text.recovery)
        elif q["reason"] == "run_failed":
            ana.answer(q["id"], "stop")
        elif q["reason"] == "retry_exhausted":
            ana.answer(q["id"], "retry")
        elif q["kind"] in ("checkpoint", "approval"):
            (ana.approve if luck % 3 else ana.reject)(q["id"], f"word {luck % 100}")
        else:
            ana.answer(q["id"], q["options"][luck % 2]["id"] if q["options"] else f"word {luck % 100}")

    def end(self) -> tuple[Any, ...]:
        """How it ended: comparable with another run of the same script."""
        task, steps = self.stage.ana.show(self.key), self.stage.ana.steps(self.key)
        journal = [[s["index"], s["name"], s["call"], s["status"], s["result"]] for s in steps if not s["spare"]]
        said = json.dumps([task["state"], task["summary"], task["failure"], task["reason"], journal])
        for step in steps:
            if step["name"] in _VOLATILE and step["status"] == "completed":
                said = said.replace(json.dumps(step["result"]).strip('"'), "…")
        said = _DATES.sub("…", said)
        done = {(line["journal"], line["name"]) for line in self.stage.ledger() if line["what"] == "effect"}
        return said, sorted(done)

    def judge(self) -> None:
        """What was done outside, and when."""
        ledger = self.stage.ledger()
        for line in ledger:
            if line["what"] == "wrong":
                self.wrong(line["words"])
        given: dict[tuple[int, str], Any] = {}
        for line in ledger:
            if line["what"] == "effect" and given.setdefault((line["journal"], line["name"]), line["values"]) != line["values"]:
                self.wrong(f"{line['name']} was done with {given[line['journal'], line['name']]}, and with {line['values']}")
        often = Counter((line["session"], line["journal"], line["name"]) for line in ledger if line["what"] == "effect")
        for (session, journal, name), count in often.items():
            if count > 1:
                self.wrong(f"{name} was done {count} times by one process")
            if session > self.written.get((journal, name), session) and session not in self.sleepers:
                self.wrong(f"{name} was done again by session {session}, although its result was written")


def _outside(step: dict[str, Any]) -> str:
    """The name by which the ledger knows what this step does outside."""
    return str(step["call"]["args"][0]) if step["name"] == "step" else ""


def _micros(stamp: str) -> int:
    moment = datetime.fromisoformat(stamp)
    return int(moment.timestamp()) * SECOND + moment.microsecond


def in_peace(stage: Stage, text: Script, wrong: Wrong) -> tuple[Any, ...] | None:
    run = Run(stage, text, 100, wrong)
    ledger = Ledger(f"{stage.folder}/ledger")
    while run.sessions < _ENOUGH:
        task = run.look()
        if task["state"] == "working":
            wrong(f"nobody disturbs it, and it was left 'working': {stage.ledger()[-1:]}")
            return None
        if run.person(task):
            continue
        if task["state"] != "ready":
            run.judge()
            return run.end()
        run.sessions += 1
        stage.clock.advance(1)  # the time changes even if no step waits
        Session(stage.worker, str(stage.folder), run.sessions, Reaper(ledger)).go()
    wrong("nobody disturbs it, and it comes to no end")
    return None


class Storm:
    """One run, by processes that die."""

    def __init__(self, stage: Stage, text: Script, processes: Processes, luck: random.Random, reach: int, wrong: Wrong) -> None:
        self.run = Run(stage, text, luck.choice([3, 100]), wrong)
        self.stage, self.processes, self.luck, self.wrong = stage, processes, luck, wrong
        self.reach = reach  #: so many points behind the last commit, at most, it is killed
        self.asleep: list[int] = []
        self.kills: Counter[str] = Counter()

    def end(self) -> tuple[Any, ...] | None:
        run, at, before = self.run, self._first(), None
        while run.sessions < _ENOUGH:
            task = run.look()
            if run.person(task):
                continue
            if task["state"] != "ready":
                break
            now = run.signature(task)
            at, before = (at, now) if now == before else (self._first(), now)
            run.sessions += 1
            self.stage.clock.advance(1)
            self._session(at)
            at += self.reach
        else:
            self.wrong("it comes to no end")
        for child in self.asleep:
            self._wake(child)
        run.look()
        run.judge()
        self.kills.update(line["at"] for line in self.stage.ledger() if line["what"] == "killed")
        return run.end()

    def _first(self) -> int:
        return self.luck.randint(1, self.reach)

    def _session(self, at: int) -> None:
        """At most so far; or, now and then, killed while it claims, stopped for a while, or told to go."""
        sign, early = signal.SIGKILL, False
        chance = self.luck.random()
        if chance < 0.08:
            at, early = self.luck.randint(1, 6), True
        elif chance < 0.12 and not self.asleep:
            sign = signal.SIGSTOP
        elif chance < 0.16:
            sign = signal.SIGTERM
        number = self.run.sessions
        where = self.stage.address, str(self.stage.folder)
        child = self.processes.start("script_sessions:session", *where, number, at, int(sign), early)
        if sign != signal.SIGSTOP:
            self.processes.wait(child)
        elif self.processes.rests(child):
            self.asleep.append(child)
            self.run.sleepers.add(number)
            return
        if self.asleep and self.luck.random() < 0.5:
            self._wake(self.asleep.pop())

    def _wake(self, child: int) -> None:
        """Its lease has expired, and the run may have ended: all its writes are refused."""
        self.stage.clock.advance(LEASE + 1)
        self.processes.signal(child, signal.SIGCONT)
        self.processes.wait(child)


def run(place: Place) -> Tally:
    tally, _ = explore(place)
    return tally


def explore(place: Place) -> tuple[Tally, Counter[str]]:
    """What was found, and at which points processes were killed."""
    tally, kills = Tally(), Counter[str]()
    luck = random.Random(f"programs {place.dialect} {place.seed}")
    numbers = range(max(1, round(PROGRAMS * place.scale)))
    with tempfile.TemporaryDirectory(prefix="yourturn-scripts-") as folder, Processes(Path(folder) / "processes") as processes:
        for first in numbers[::_DESK]:
            stage = Stage(place.new_db(), Path(folder) / str(first))
            for number in numbers[first : first + _DESK]:
                _one(stage, processes, number, luck, place, tally, kills)
            tally.violations += [f"{words} (programs {first}–, seed {place.seed})" for words in strict.examine(stage.ana)]
            stage.close()
        tally.violations += processes.troubles()
    if place.scale >= 0.5:
        missing = [f"{change}:{point}" for change in CHANGES for point in POINTS[:_COMMIT] if not kills[f"{change}:{point}"]]
        tally.violations += [f"nobody was killed at {point}: this run shows less than it should" for point in missing]
    tally.kills = kills.total()
    return tally, kills


def _one(
    stage: Stage, processes: Processes, number: int, luck: random.Random, place: Place, tally: Tally, kills: Counter[str]
) -> None:
    def wrong(words: str) -> None:
        tally.violations.append(f"program {place.seed}/{number}, {place.dialect}: {words}")

    long = place.scale >= 0.2
    text = script(f"{place.seed}/{number}", 4 if long else 2)
    tally.runs += 1
    try:
        peace = in_peace(stage, text, wrong)
    except Exception as error:
        wrong(f"nobody disturbs it, and the engine broke: {type(error).__name__}: {error}")
        _abandon(stage)
        return
    if peace is None:
        return
    storm = Storm(stage, text, processes, luck, 1 if long and not number % 4 else _COMMIT, wrong)
    end = storm.end()
    _abandon(stage)
    kills.update(storm.kills)
    if end is not None and end != peace:
        wrong(f"it should end as in peace: {_difference(peace, end)}")


def _abandon(stage: Stage) -> None:
    """Marks it, so that it is not confused with the next one."""
    for task in stage.ana.list(state="open", limit=10):
        stage.ana.cancel(task["key"])


def _difference(peace: Iterable[Any], storm: Iterable[Any]) -> str:
    for one, other in zip(peace, storm, strict=True):
        if one != other:
            pairs = enumerate(zip(one, other, strict=False))
            at = next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
            return f"…{one[max(0, at - 60) : at + 200]!r}, and now …{other[max(0, at - 60) : at + 200]!r}"
    return ""
