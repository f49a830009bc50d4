"""Sample data: a ferry company with three projects, five agents, two weeks of work, and a dozen open questions.

The two weeks are generated with a settable clock: all moves are made on the desk, with the times of those days. The last hours
are written by hand, so that there is a question of each kind and a task in each lane.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

from ..client import Client
from ..config import connect
from ..core.model import DAY, HOUR, MINUTE, SECOND, Who

DAYS = 14
PROJECTS = {"BOOK": "Booking", "SITE": "Website", "OPS": "Operations"}
PEOPLE = {"ben": "approver", "chidi": "member"}

#: Work of the last weeks: agent, project, title.
ROUTINE = (
    ("coder", "BOOK", "Round fares to five cents"), ("coder", "SITE", "Timetable in large print"),
    ("tester", "BOOK", "Test bookings across midnight"), ("keeper", "OPS", "Renew the certificates"),
    ("coder", "BOOK", "Group tickets for schools"), ("writer", "SITE", "Explain the car deck"),
    ("keeper", "OPS", "Rotate the log files"), ("coder", "SITE", "Map of the piers"),
    ("tester", "SITE", "Forms without a mouse"), ("coder", "BOOK", "Refuse a second seat for one ticket"),
    ("keeper", "OPS", "Move the mail queue"), ("writer", "SITE", "Words for a storm"),
    ("coder", "BOOK", "Export of the day's sales"), ("tester", "BOOK", "Refunds in three currencies"),
)  # fmt: skip
ASKED = {
    "input": "The old rule and the new one differ for children under four. Which one counts?",
    "checkpoint": "The change is ready on staging. Go on?",
    "permission": "Install one more package?",
    "recovery": "The service answers too slowly. How should I go on?",
    "approval": "It is finished. Sign it off?",
    "escalation": "Two rules contradict each other and I cannot tell which is meant",
}
#: By kind: weight, median minutes until the answer, and share of timeouts.
HABITS = {
    "input": (5, 14, 0.1), "permission": (5, 4, 0.0), "checkpoint": (3, 22, 0.0), "recovery": (3, 8, 0.3),
    "approval": (4, 41, 0.0), "escalation": (1, 65, 0.1),
}  # fmt: skip

DIFF = """\
diff --git a/site/timetable.py b/site/timetable.py
index 5be1c02..b7790d4 100644
--- a/site/timetable.py
+++ b/site/timetable.py
@@ -12,7 +12,10 @@ def departures(day: date, pier: str) -> list[Departure]:
     found = timetable.at(pier, day)
-    return sorted(found, key=lambda d: d.time)
+    if day in holidays:
+        found = [d for d in found if d.holidays]
+    return sorted(found, key=lambda d: (d.time, d.pier))
"""
LOAD = """\
python -m fares.load prices-2026.csv \\
    --into "$STAGING_URL" --replace"""


class Clock:
    """A settable clock, in microseconds since 1970."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def fill(address: str, person: str, now: int, day: Callable[[], None] = lambda: None) -> dict[str, str]:
    """Fill a desk that `init` has created with project BOOK. Returns the keys of named tasks. `day` is called for each day."""
    clock = Clock(now - 15 * DAY)
    desk = connect(address, as_=f"human:{person}", project="BOOK", env={}, clock=clock)
    try:
        for key, name in PROJECTS.items():
            if key != "BOOK":
                desk.create_project(key, name)
        for name, role in {person: "admin", **PEOPLE}.items():
            desk.set_user(name, role)
        desk.set("review", "ask", "SITE")
        _weeks(desk, clock, now, day)
        return _today(desk, clock, now)
    finally:
        desk.close()


def agent(desk: Client, name: str) -> Client:
    return desk.as_(Who(f"agent:{name}", "agent"))


# --- two weeks --------------------------------------------------------------------------------------------------------


def _weeks(desk: Client, clock: Clock, now: int, day: Callable[[], None]) -> None:
    """Work begins in the morning; questions of the evening wait until the next morning."""
    dice = random.Random(11)
    queue: list[tuple[int, int, Callable[[], None]]] = []
    kinds, shares = list(HABITS), [HABITS[kind][0] for kind in HABITS]
    number, days_reported = 0, 0
    for back in range(DAYS, 0, -1):
        for _ in range(7 + dice.randrange(4) - 4 * (back % 7 in (2, 3))):
            who, project, title = ROUTINE[number % len(ROUTINE)]
            at = now - back * DAY + dice.randrange(12 * HOUR)  # of half a day; the other half is night
            plan = _Job(desk, clock, queue, dice, now, who, project, title, dice.choices(kinds, shares)[0])
            heapq.heappush(queue, (at, number, plan.begin))
            number += 1
    while queue:
        at, _, action = heapq.heappop(queue)
        while days_reported < min(DAYS, (at - now) // DAY + DAYS + 1):
            days_reported += 1
            day()
        if at >= now - 6 * HOUR:
            continue
        clock.now = max(clock.now, at)
        desk.reconcile()
        action()


class _Job:
    """One task of those weeks: claimed, asked about, answered or not, completed."""

    count = 0

    def __init__(self, desk: Client, clock: Clock, queue: list[Any], dice: random.Random, start: int, who: str, project: str,
                 title: str, kind: str) -> None:  # fmt: skip
        self.desk, self.clock, self.waiting, self.dice = desk, clock, queue, dice
        self.agent, self.project, self.title, self.kind = agent(desk, who), project, title, kind
        self.start, self.worker, self.key, self.asked = start, who, "", 0
        self.claim: dict[str, Any] = {}

    def _later(self, minutes: float, action: Callable[[], None]) -> None:
        _Job.count += 1
        heapq.heappush(self.waiting, (self.clock.now + round(minutes * MINUTE), 1000 + _Job.count, action))

    def begin(self) -> None:
        self.key = self.desk.create(self.title, project=self.project, priority=1 + self.dice.randrange(3))["key"]
        self.claim = self.agent.claim(self.key, self.worker)["claim"]
        self._later(3 + self.dice.random() * 12, self.ask)

    def ask(self) -> None:
        _, minutes, silence = HABITS[self.kind]
        action = {"tool": "Bash", "input": {"command": "pip install tzdata"}} if self.kind == "permission" else None
        silent = self.dice.random() < silence
        more: dict[str, Any] = {"timeout": "30m", "default": "As it was"} if silent else {"on_timeout": "keep"}
        asked = self.agent.ask(self.key, ASKED[self.kind], self.kind, claim=self.claim, action=action, **more)
        self.asked += 1
        self.agent.park(self.claim)
        if silent:
            self._later(45, self.give_up)
            return
        took = minutes * self.dice.lognormvariate(0, 0.8)
        since = (self.clock.now - self.start) % DAY  # of the day: late questions wait until the next morning
        if since > 9 * HOUR and self.dice.random() < 0.6:
            took += (DAY - since) / MINUTE + self.dice.random() * 90
        self._later(took, lambda: self.answer(asked["id"]))

    def answer(self, number: str) -> None:
        name, role = self.dice.choice([("ben", "approver"), ("chidi", "member"), (self.desk.who.name.partition(":")[2], "admin")])
        value: Any = "As it was" if self.kind in ("input", "recovery", "escalation") else True
        self.desk.as_(Who(f"human:{name}", role)).answer(number, value)
        self._later(1 + self.dice.random() * 4, self.go_on)

    def go_on(self) -> None:
        if self.desk.show(self.key)["state"] != "ready":
            return
        self.claim = self.agent.claim(self.key, self.worker)["claim"]
        self._later(5 + self.dice.random() * 20, self.ask if self.dice.random() < 0.2 and self.asked < 4 else self.finish)

    def finish(self) -> None:
        self.agent.complete(self.claim, f"{self.title}: done, with tests.")
        if self.desk.show(self.key)["state"] == "review":
            self._later(self.dice.random() * 90, self.accept)

    def accept(self) -> None:
        self.desk.accept(self.key)

    def give_up(self) -> None:
        state = self.desk.show(self.key)["state"]
        if state == "human":  # the question was escalated to a person, who did the work by hand
            self.desk.close(self.key, "settled by hand")
        elif state == "ready":
            self.go_on()


# --- today ------------------------------------------------------------------------------------------------------------


def _today(desk: Client, clock: Clock, now: int) -> dict[str, str]:
    """Tasks of each state, and the questions that are open now."""
    coder, tester, keeper, writer, architect = (
        agent(desk, name) for name in ("coder", "tester", "keeper", "writer", "architect")
    )
    keys: dict[str, str] = {}

    def task(name: str, project: str, title: str, *needs: str, **more: Any) -> str:
        keys[name] = desk.create(title, project=project, depends_on=[keys[one] for one in needs], **more)["key"]
        return keys[name]

    def hold(who: Client, name: str, *output: tuple[str, str], lease: str | None = None) -> dict[str, Any]:
        claim: dict[str, Any] = who.claim(keys[name], who.who.name.partition(":")[2], lease=lease)["claim"]
        for line in output:
            clock.now += 7 * SECOND + len(line[1]) * SECOND // 5
            who.write_output(claim, [line])
        clock.now += 5 * SECOND
        return claim

    def ask(who: Client, name: str, text: str, kind: str = "input", *log: tuple[str, str], patch: str = "", **more: Any) -> None:
        claim = hold(who, name, *log, lease="6h")
        if patch:
            who.keep_patch(claim, "5be1c02a9f34", patch)
        given: dict[str, Any] = more if "timeout" in more else {"on_timeout": "keep", **more}
        keys[f"{name}?"] = who.ask(keys[name], text, kind, claim=claim, **given)["id"]
        if more.get("blocking", True):
            who.park(claim)

    def at(minutes: float) -> None:
        """So many minutes ago."""
        clock.now = max(clock.now, now - round(minutes * MINUTE))

    # fmt: off
    at(330)
    task("fares", "BOOK", "Fares as rows, not as code", priority=1, acceptance="Every fare of last year comes out the same.",
         description="Fares are a thousand lines of ifs. Put them into a table that the office can read and change.")
    coder.complete(hold(coder, "fares"), "A table, an importer, and 214 tests against last year's tickets.")
    task("discounts", "BOOK", "Discounts on top of fares", "fares", priority=1)
    task("prices", "BOOK", "Move the prices of 2026 into the new table", "fares", priority=0,
         description="The importer is there. Staging first, then a Sunday night.")
    task("refund", "BOOK", "Refunds when a crossing is cancelled", "fares", priority=1)
    task("voucher", "BOOK", "Vouchers that can be used twice", "refund", priority=3)
    task("checkout", "BOOK", "Show the fare while one chooses", "prices", "discounts", priority=1)
    task("receipt", "BOOK", "A receipt that says what was paid for", "checkout")
    task("office", "BOOK", "A page on which the office changes fares", "prices")
    task("audit", "BOOK", "Who changed which fare, and when", "office", priority=3)
    task("old", "BOOK", "Throw the old fares away", "checkout", "office", priority=3)
    task("mobile", "BOOK", "Tickets in the phone's wallet", "receipt", priority=3)
    task("report", "BOOK", "Sales by fare", "old", priority=4)
    at(290)
    task("timetable", "SITE", "Holidays in the timetable", requires="approval")
    task("names", "SITE", "Name the evening crossing", type="chore")
    task("style", "SITE", "One spelling for all pages", priority=3)
    task("photos", "SITE", "Photographs of the new ticket machines", priority=3)
    task("news", "SITE", "News about the third ship")
    task("merge", "BOOK", "Bring the two branches of the seat map together", priority=2)
    task("backup", "OPS", "Nightly backup to the second site", priority=1)
    task("keys", "OPS", "Rotate the read-only keys")
    task("alarm", "OPS", "Wake nobody for a full disk that empties itself", priority=3)
    task("storm", "SITE", "A banner for storms that somebody on a pier with one bar of reception can read and close again")
    task("search", "SITE", "Find a crossing by the name of a village", priority=3)
    task("winch", "OPS", "Read the sensors of the winches", priority=2, role="keeper")
    task("bikes", "BOOK", "Bicycles as a ticket of their own", priority=2)
    task("fog", "SITE", "What to do in fog: a page for the crew", priority=3)
    task("speech", "BOOK", "Book by voice", priority=4, draft=True)
    task("winter", "OPS", "Winter timetable in the displays", priority=3)
    desk.defer(keys["winter"], "30d")
    desk.note(keys["prices"], "Staging has a copy of last week. Please leave the replica alone.")
    at(260)
    ask(coder, "merge", "Both branches number the seats, and not in the same way. I cannot merge them", "escalation",
        ("said", "Merging seats/upper-deck into seats/lower-deck"), ("error", "CONFLICT (content): seats/number.py"),
        reason="irreconcilable_conflict",
        context={"text": "Upper deck counts from the bow, lower deck from the stern."})
    at(190)
    ask(coder, "timetable", "Holidays are in the timetable. Sign it off?", "approval",
        ("said", "Reading the holidays of both countries"), ("tool", "pytest -q: 96 passed in 4.1 s"), patch=DIFF,
        context={"text": "Both countries' holidays, checked against the printed timetable.", "current_step": "finished"})
    at(150)
    ask(writer, "style", "British spelling everywhere?", options=["British", "American"], default="British", blocking=False)
    at(95)
    ask(writer, "names", "What do we call the evening crossing in public?", context={
        "text": "The crew says “the late one”, the contract says “service 7”. People would look for “sunset”."})
    keys["photos?"] = desk.await_person(keys["photos"], "work", "Photograph the new machines in daylight")["questions"][-1]["id"]
    at(70)
    news = hold(writer, "news", ("said", "Reading the captain's letter"), ("said", "240 words, one picture"))
    writer.complete(news, "A short text about the third ship, with a picture.")
    at(62)
    ask(keeper, "keys", "Rotate the keys of the displays as well?", response_type="boolean")
    at(58)
    hold(tester, "search", ("said", "Listing the villages"), ("tool", "618 villages, 41 with two names"), lease="6h")
    at(40)
    hold(keeper, "alarm", ("said", "Reading a month of alarms"), ("tool", "212 alarms, 180 ended by themselves"), lease="6h")
    at(26)
    ask(architect, "refund", "Back to the card, or as a voucher?", timeout="90m", default="card",
        reason="decision_needed", confidence=0.6,
        options=[{"id": "card", "label": "To the card", "description": "What people expect. The bank takes 30 cents for each."},
                 {"id": "voucher", "label": "As a voucher", "description": "No fee. One in three is never used."},
                 {"id": "both", "label": "Let them choose", "description": "One more page, and about a day of work."}],
        allow_other=True,
        context={"text": "Last year 1,940 crossings were cancelled; 61,000 tickets.", "suggestion": "both"})
    at(9)
    ask(keeper, "backup", "The copy broke off twice. How should I go on?", "recovery",
        ("said", "Copying 41 GB to the second site"), ("stderr", "rsync: connection unexpectedly closed (18.2 GB received)"),
        timeout="20m", default="wait",
        options=[{"id": "wait", "label": "Try again at three", "description": "The line is quiet then; keeps what is there."},
                 {"id": "slow", "label": "Go on at half speed", "description": "About two hours; the office will not notice."},
                 {"id": "skip", "label": "Leave it for tonight", "description": "Yesterday's copy stays the newest."}],
        context={"error": "rsync: connection unexpectedly closed\n  attempt 2 of 2, 18.2 of 41.0 GB", "suggestion": "slow"})
    at(4)
    ask(coder, "prices", "Write the new prices into the staging database?", "permission",
        ("said", "Reading prices-2026.csv"), ("tool", "1,204 rows, 3 without a pier"),
        ("said", "Dry run: 1,201 rows, 0 conflicts"),
        ("stderr", "WARNING 3 rows have no pier and are left out"), ("said", "Next: the same on staging"),
        timeout="30m", on_timeout="escalate", metadata={"rule": "anything that writes to staging"},
        action={"tool": "Bash", "input": {"command": LOAD, "timeout": 300}, "folder": "worktrees/prices"},
        context={"text": "The dry run had no conflicts. It can be undone with --restore within a day."})
    # fmt: on
    clock.now = now
    return keys
