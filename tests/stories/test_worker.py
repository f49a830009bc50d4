"""Stories of a worker: agents hand over in every way, a person answers, and the worker continues."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from tests.fixtures.worker import Crew
from yourturn.core.errors import Precondition
from yourturn.core.rules import KINDS, OUTCOMES

#: kind, what the agent says, what a yes says, what a no says
SCENES = [
    ("approval", "APPROVAL_NEEDED: The session table was migrated. Sign off?", "Fine.", "Keep the old column for a week."),
    ("input", "INPUT_NEEDED: Which currency do we bill in?", "Euro, always.", "Nobody knows yet."),
    ("review", "REVIEW_REQUESTED: https://example.com/pull/7", "Reads well.", "Split the second commit."),
    ("content", "CONTENT_REVIEW: New wording for the empty page.", "Lovely.", "Softer, please."),
    ("escalation", "ESCALATE: The parser has a hole that predates this task.", "Close it, too.", "Leave it alone."),
    ("checkpoint", "CHECKPOINT: Phase 1, 40,000 rows copied.", "Go on with phase 2.", "Copy them again, in order."),
    ("work", "EJECT: A hand has to plug the cable in.", "Plugged in.", "I cannot."),
]
STATES = {"done": "done", "cancelled": "cancelled", "back": "done", "refused": "human"}


def test_seven_scenes_with_a_worker_that_never_waits(crew: Crew) -> None:
    """Both branches of each, while one worker stays at work."""
    rows = [(row, verdict) for row in SCENES for verdict in ("approved", "rejected")]
    keys = crew.tasks(*(f"{row[0]}, to be {verdict}" for row, verdict in rows))
    for key, ((_, said, _, _), _) in zip(keys, rows, strict=True):
        crew.says(key, f"Some words first.\n\n<promise>{said}</promise>", "<promise>COMPLETE</promise>")
    last = crew.tasks("Something else to do", priority=4)[0]
    with crew.worker("--parallel", "3") as process:
        crew.until(lambda: crew.states(last) == {last: "done"})
        for key, ((kind, said, _, _), _) in zip(keys, rows, strict=True):
            asked = crew.waiting(key, kind)
            text = said.partition(": ")[2]
            assert (asked["text"], asked["asked_by"]) == (text, "agent:exec")
            assert [note["text"] for note in crew.desk.show(key)["notes"]] == [text]
        for key, ((kind, _, yes, no), verdict) in zip(keys, rows, strict=True):
            refused = OUTCOMES[kind, verdict] == "refused"
            verb, words = ("approve", yes) if verdict == "approved" else ("reject", no)
            if verb == "approve" and KINDS[kind].response_type == "text":
                verb = "respond"
            crew(verb, key, words, exit=4 if refused else 0)
        wanted = {key: STATES[OUTCOMES[row[0], verdict]] for key, (row, verdict) in zip(keys, rows, strict=True)}
        crew.until(lambda: crew.states(*keys) == wanted)
        told = crew.ended(process)
    assert (told["ended"], told["ended_code"]) == ("it was stopped", "stopped")
    for key, ((kind, _, yes, no), verdict) in zip(keys, rows, strict=True):
        again = OUTCOMES[kind, verdict] == "back"
        assert crew.turns(key) == (2 if again else 1), (kind, verdict)
        if again:
            brief = crew.told(key, 2)
            assert (yes if verdict == "approved" else no) in brief
            assert "human:ana" in brief
            assert ("## Human Feedback" in brief) == (verdict == "rejected")
            assert crew.desk.show(key)["retry_count"] == 0


def test_every_verdict_on_every_kind(crew: Crew) -> None:
    """The whole matrix of the rules: a task that goes back is worked on again, an ended one is not."""
    cells = list(OUTCOMES)
    keys = crew.tasks(*(f"{kind}, {verdict}" for kind, verdict in cells))
    for key, (kind, _) in zip(keys, cells, strict=True):
        if KINDS[kind].signals:
            crew.says(key, f"<promise>{KINDS[kind].signals[0]}: {kind}?</promise>")
        else:
            crew.says(key, f"$ turn ask $YOURTURN_TASK '{kind}?' --kind {kind} --json > /dev/null || echo refused")
    told = crew.work("--parallel", "4")
    assert {row["task"]: row["outcome"] for row in told["results"]} == dict.fromkeys(keys, "waiting")
    assert {t["key"]: (t["state"], t["awaiting"]) for t in crew.desk.list()} == {
        key: ("human", kind) for key, (kind, _) in zip(keys, cells, strict=True)
    }
    assert crew.work("--parallel", "4")["results"] == []
    for key, (kind, verdict) in zip(keys, cells, strict=True):
        with pytest.raises(Precondition) if OUTCOMES[kind, verdict] == "refused" else nullcontext():
            (crew.desk.approve if verdict == "approved" else crew.desk.reject)(key, "For a reason.")
    back = {key for key, cell in zip(keys, cells, strict=True) if OUTCOMES[cell] == "back"}
    told = crew.work("--parallel", "4")
    assert {row["task"]: row["outcome"] for row in told["results"]} == dict.fromkeys(back, "done")
    assert crew.states() == {key: STATES[OUTCOMES[cell]] for key, cell in zip(keys, cells, strict=True)}
    for key, (kind, verdict) in zip(keys, cells, strict=True):
        assert crew.turns(key) == (2 if key in back else 1)
        if key in back:
            brief = crew.told(key, 2)
            assert f"{kind}?" in brief and "For a reason." in brief
            assert (f"saying no to {crew.desk.show(key)['questions'][0]['id']}" in brief) == (verdict == "rejected")
