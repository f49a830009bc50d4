"""What a name means: exactly one thing, or an error that lists everything that it could mean."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from tests.core.states import everything
from tests.data.test_trackers import folder, lines, tick
from tests.db.test_statements import Counted
from yourturn.core.errors import Invalid, NotFound

#: Ids of other trackers that look like something else here, and some that do not.
OLD = (
    *map(str, range(1, 15)), *(f"q{n}" for n in range(1, 8)), *(f"bd-{n}" for n in range(1, 8)), "Q3", "Q99", "q99", "007",
    "tck-3", "PROJ-2", "proj-2", "BD-04", "k7q", "ticks:3", "ticks:k7q", "beads:bd-2", "a:b", "bd-a3f8.1", "Bd-5", "99", "nope-1",
)  # fmt: skip
TRACKERS = ("ticks", "beads", "")


def brought(desk, project: str, old: str, tracker: str = "") -> str:
    """A task with an old id, of a tracker or of none."""
    extra = {"source": tracker, "digest": "", "fields": {}} if tracker else None
    done = desk.do("import", title=f"Was {old}", external_id=old, state="ready", project=project, extra=extra)
    return str(desk.desk.read(lambda r: r.task(done.task).key))


def possible(name: str, tasks: list[dict[str, Any]], asked: set[str]) -> set[str]:
    """The rule of docs/data.md, said once more: the keys and question ids that a name can mean."""
    keys = {t["key"] for t in tasks}
    if name in keys | asked:
        return {name}
    old = {t["key"] for t in tasks if t["external_id"] == name}
    if name.isdigit():
        number = {f"PROJ-{int(name)}"} & keys
        return number | {key for key in old if key.startswith("PROJ-")} or old
    spelled = re.fullmatch(r"(\w+)-(\d+)", name)
    here = {f"{spelled[1].upper()}-{int(spelled[2])}"} & keys if spelled else {name.upper()} & asked
    tracked = {t["key"] for t in tasks if f"{(t['extra'] or {}).get('source')}:{t['external_id']}" == name}
    return here | old | tracked


@pytest.mark.parametrize("seed", range(4))
def test_a_name_means_one_thing_or_is_refused_with_all_its_readings(desk, seed):
    luck = random.Random(seed)
    for project in ("BD", "TCK"):
        desk.create_project(project)
    for project in ("PROJ", "BD", "TCK"):
        old = luck.sample(OLD, luck.randint(2, 16))
        for n in range(luck.randint(3, 14)):
            if n < len(old) and luck.random() < 0.7:
                brought(desk, project, old[n], luck.choice(TRACKERS))
            else:
                desk.create(f"{project} {n}", project=project)
    tasks = [task for project in ("PROJ", "BD", "TCK") for task in desk.list(project=project)]
    asked = {desk.ask(luck.choice(tasks), f"Question {n}?")["id"] for n in range(luck.randint(0, 6))}
    keys = [t["key"] for t in tasks]
    names = {*OLD, *keys, *map(str.lower, keys), *asked, *map(str.lower, asked), "PROJ-99", "Q98", "0"}
    names |= {f"{tracker}:{old}" for tracker in TRACKERS if tracker for old in OLD}
    before, seen = everything(desk), {0: 0, 1: 0, 2: 0}
    for name in sorted(names):
        means = possible(name, tasks, asked)
        seen[min(len(means), 2)] += 1
        if len(means) == 1:
            found = desk.show(name)
            assert {found["id"] if "status" in found else found["key"]} == means, name
        elif not means:
            with pytest.raises(NotFound):
                desk.show(name)
        else:
            for say in (desk.show, desk.history, desk.cancel, desk.approve, lambda n: desk.create("X", depends_on=[n])):
                with pytest.raises(Invalid, match=f"has {len(means)} readings") as error:
                    say(name)
            assert all(re.search(rf"\b{thing}\b", error.value.reason) for thing in means), error.value
            exact = error.value.hint.removeprefix("Say which: ").removesuffix(".").split(" or ")
            told = [desk.show(way) for way in exact]
            assert {one["id"] if "status" in one else one["key"] for one in told} == means, error.value
    assert everything(desk) == before and all(seen.values()), seen


def test_old_number_never_names_another_task(desk, tmp_path):
    """Bare digits: a number here, and another task's old id in the same project."""
    desk.import_(folder(tmp_path, tick("2"), tick("1", title="Herd dashboard"), tick("77")))
    one, two = desk.show("ticks:1"), desk.show("ticks:2")
    assert (one["key"], two["key"]) == ("PROJ-1", "PROJ-2"), "the same number is no trouble"
    assert desk.show("1") == one and desk.show(2) == two
    assert desk.show("77")["key"] == desk.show("PROJ-3")["key"] == "PROJ-3"
    desk.import_(folder(tmp_path, tick("3", title="Tick three"), name="more"))
    before = everything(desk)
    for say in (desk.show, lambda name: desk.update(name, priority=0), desk.close, desk.claim_is_for):
        with pytest.raises(Invalid) as error:
            say("3") if say != desk.claim_is_for else desk.claim_is_for("PROJ-3.1.abc", "3")
        assert str(error.value) == '3 has 2 readings: 3 is PROJ-3 "Tick 77" here, and ticks:3 is PROJ-4 "Tick three"'
        assert error.value.hint == "Say which: PROJ-3 or ticks:3." and error.value.exit_code == 6
    assert everything(desk) == before
    assert desk.update("ticks:3", priority=0)["key"] == "PROJ-4" and desk.update("PROJ-3", priority=1)["key"] == "PROJ-3"
    assert desk.show("4")["key"] == "PROJ-4"
    with pytest.raises(Invalid, match="3 has 2 readings"):
        desk.show("3")  # also when this process has just changed one of them


def test_a_bare_number_keeps_its_meaning_beside_other_projects(desk):
    desk.create_project("OLD")
    brought(desk, "OLD", "1", "ticks")
    brought(desk, "OLD", "9", "ticks")
    desk.create("Mine")
    assert desk.show("1")["key"] == "PROJ-1" and desk.show("ticks:1")["key"] == "OLD-1"
    assert desk.show("9")["key"] == "OLD-2", "no task has this number here"


def test_keys_and_questions_in_other_spellings(desk, tmp_path):
    desk.create_project("BD")
    made = [{"id": f"bd-{n}", "title": f"Issue {n}", "status": "open", "created_at": f"2026-01-{n:02}"} for n in (2, 1, 3)]
    made[1]["created_at"] = "2026-02-01"
    desk.import_(lines(tmp_path / "issues.jsonl", *made), project="BD")
    assert desk.show("beads:bd-3")["key"] == "BD-2"
    with pytest.raises(Invalid, match='bd-3 is BD-3 "Issue 1" here, and beads:bd-3 is BD-2 "Issue 3"'):
        desk.close("bd-3")
    assert desk.show("BD-3")["title"] == "Issue 1", "as the desk prints it: nothing else is meant"
    desk.import_(folder(tmp_path, tick("q1"), tick("q2")))
    assert desk.note("q1", "no question has that number yet")["external_id"] == "q1"
    with pytest.raises(NotFound, match="There is no question Q1"):
        desk.show("Q1")
    asked = desk.ask("ticks:q2", "Which one?")
    for say in (desk.show, desk.approve, desk.withdraw, desk.history, lambda name: desk.wait_for(name, 0)):
        with pytest.raises(Invalid) as error:
            say("q1")
        assert error.value.reason == 'q1 is question Q1 "Which one?" here, and ticks:q1 is PROJ-1 "Tick q1"'
        assert error.value.hint == "Say which: Q1 or ticks:q1."
    assert desk.show("Q1") == asked == desk.wait_for("Q1", 0)
    with pytest.raises(NotFound, match="There is no task Q1") as lost:
        desk.claim("Q1", "w1")
    assert "Q1 is a question" in lost.value.hint


def test_what_the_desk_prints_is_exact(desk, open_desk):
    """Programs hold keys and question ids: an old id that is the same to the letter takes nothing away from them."""
    other = open_desk("human:bob")
    brought(desk, "PROJ", "PROJ-2", "beads")
    asked = desk.ask(desk.create("Second"), "Which?")["id"]
    brought(desk, "PROJ", asked, "beads")
    assert (other.show("PROJ-2")["title"], other.show("beads:PROJ-2")["key"]) == ("Second", "PROJ-1")
    assert (other.show(asked)["text"], other.show(f"beads:{asked}")["key"]) == ("Which?", "PROJ-3")
    assert other.desk.find(asked) == desk.desk.find(asked)


def test_the_same_old_id_in_two_projects(desk, tmp_path):
    source = folder(tmp_path, tick("k7q"))
    desk.create_project("ALT")
    desk.import_(source)
    desk.import_(source, project="ALT")
    for name in ("k7q", "ticks:k7q"):
        with pytest.raises(Invalid, match=r'the old id of PROJ-1 "Tick k7q", and .* the old id of ALT-1') as error:
            desk.show(name)
        assert error.value.hint == "Say which: PROJ-1 or ALT-1."


def test_old_ids_are_searched(desk, tmp_path):
    desk.import_(folder(tmp_path, tick("297", awaiting="input", title="A"), tick("k7q", title="B")))
    desk.create("Something else")
    assert [t["external_id"] for t in desk.list(search="297")] == ["297"]
    assert [t["external_id"] for t in desk.list(search="K7")] == ["k7q"]
    assert [q["id"] for q in desk.waiting(search="297")] == ["Q1"] and desk.waiting(search="k7q") == []


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_name_costs_one_statement(desk, open_desk, dialect):
    key = desk.create("A")["key"]
    asked = desk.ask(key, "Which?")["id"]
    other = open_desk("human:bob")
    assert other.project == "PROJ"
    for name in (key, asked, key.lower(), asked.lower(), "1", "ticks:1"):
        with Counted(other) as said:
            try:
                other.desk.find(name, lambda: "PROJ")
            except NotFound:
                assert name == "ticks:1"
        assert len([sql for sql in said if sql.startswith(("SELECT", "--"))]) == 1, (name, said)
