"""What other trackers keep beside plain work: records that are none, ties of several sorts, circles, ids that are keys here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.core.states import everything
from tests.data.test_trackers import MADE, folder, lines, tick
from yourturn.core.errors import Invalid, YourturnError
from yourturn.health.doctor import examine
from yourturn.worker.prompt.brief import brief, informed

LATER = "2026-03-01T10:00:00.000000Z"


def issue(id: str, status: str = "open", **fields: Any) -> dict[str, Any]:
    return {"id": id, "title": f"Issue {id}", "status": status, "issue_type": "task", "created_at": MADE, **fields}


def tied(one: str, *others: tuple[str, str], **fields: Any) -> dict[str, Any]:
    ties = [{"issue_id": one, "depends_on_id": other, "type": sort} for other, sort in others]
    return issue(one, dependencies=ties, **fields)


def sound(desk) -> bool:
    return [check for check in examine(desk, strict=True) if check["status"] == "bad"] == []


# --- beads ------------------------------------------------------------------------------------------------------------

ASIDE = {
    "bd-agent": issue("bd-agent", issue_type="agent"), "bd-convoy": issue("bd-convoy", "in_progress", issue_type="convoy"),
    "bd-mail": issue("bd-mail", issue_type="message"), "bd-role": issue("bd-role", "blocked", issue_type="role"),
    "bd-rig": issue("bd-rig", "hooked", issue_type="rig"), "bd-gate": issue("bd-gate", issue_type="gate"),
    "bd-mr": issue("bd-mr", issue_type="merge-request"), "bd-w1": issue("bd-w1", ephemeral=True),
    "bd-w2": issue("bd-w2", wisp=True, defer_until="2026-01-01"), "bd-wisp-9x": issue("bd-wisp-9x"),
    "bd-form": issue("bd-form", is_template=True),
}  # fmt: skip


def test_what_is_no_work_is_offered_to_no_agent(desk, agent, tmp_path):
    work = [issue("bd-1"), tied("bd-2", ("bd-gate", "blocks")), issue("bd-3", ephemeral=False)]
    ended = [issue("bd-old", "closed", issue_type="message"), issue("bd-gone", "tombstone", ephemeral=True)]
    source = lines(tmp_path / "issues.jsonl", *work, *ASIDE.values(), *ended)
    found = desk.import_(source)
    states = {t["id"]: t["state"] for t in found["tasks"]}
    assert {states[name] for name in ASIDE} == {"deferred"}, states
    assert (states["bd-1"], states["bd-2"], states["bd-old"], states["bd-gone"]) == ("ready", "blocked", "done", "cancelled")
    assert found["aside"] == {
        "agent": 1, "convoy": 1, "message": 1, "role": 1, "rig": 1, "gate": 1, "merge-request": 1, "wisp": 3, "template": 1,
    }  # fmt: skip
    assert [t["external_id"] for t in desk.ready()] == ["bd-1", "bd-3"] and desk.inbox() == []
    with pytest.raises(YourturnError):
        agent.claim("bd-agent", "w1")
    shown = desk.show("bd-agent")
    assert shown["reason"] == "a record of beads (agent), not work" and shown["extra"]["fields"]["issue_type"] == "agent"
    assert desk.close("bd-gate")["state"] == "done" and desk.show("bd-2")["state"] == "ready"
    assert desk.wake("bd-w1")["state"] == "ready", "a person can make work of it"
    assert desk.import_(source)["unchanged"] == len(work) + len(ASIDE) + len(ended) and sound(desk)


def test_work_does_not_wait_for_a_wisp(desk, tmp_path):
    """The run that would have closed it there is over, and here no agent is offered it."""
    waits = tied("bd-1", ("bd-w1", "waits-for"), ("bd-2", "blocks"), ("bd-form", "blocks"))
    found = desk.import_(lines(tmp_path / "issues.jsonl", waits, issue("bd-2"), ASIDE["bd-w1"], ASIDE["bd-form"]))
    assert desk.show("bd-1")["blocked_by"] == [desk.show("bd-2")["key"]]
    told = [w["what"] for w in found["warnings"] if w["id"] == "bd-1"]
    assert told == ["waited for bd-w1 (wisp), bd-form (template), not work: comes without waiting for that"]
    assert desk.show("bd-1")["extra"]["fields"]["blocked_by"] == ["bd-w1", "bd-2", "bd-form"], "as it was"
    desk.close("bd-2")
    assert desk.show("bd-1")["state"] == "ready" and sound(desk)


def test_a_molecule_holds_its_steps(desk, agent, tmp_path):
    molecule, step = issue("bd-m", issue_type="molecule"), tied("bd-s", ("bd-m", "parent-child"))
    desk.import_(lines(tmp_path / "issues.jsonl", molecule, step))
    assert desk.show("bd-m")["type"] == "epic" and [t["external_id"] for t in desk.ready()] == ["bd-s"]
    agent.complete(agent.claim("bd-s", "w1")["claim"])
    assert desk.show("bd-m")["state"] == "done" and desk.ready() == []


@pytest.mark.parametrize("sort", ["blocks", "conditional-blocks", "waits-for"])
def test_ties_that_hold_work_up_there_do_here(desk, agent, tmp_path, sort):
    desk.import_(lines(tmp_path / "issues.jsonl", issue("bd-1"), tied("bd-2", ("bd-1", sort), ("bd-1", "related"))))
    assert desk.show("bd-2")["state"] == "blocked" and desk.show("bd-2")["blocked_by"] == [desk.show("bd-1")["key"]]
    kept = [tie["type"] for tie in desk.show("bd-2")["extra"]["fields"]["dependencies"]]
    assert kept == ([sort] if sort != "blocks" else []) + ["related"], "what it was called there is kept"
    agent.complete(agent.claim("bd-1", "w1")["claim"])
    assert desk.show("bd-2")["state"] == "ready"


def test_the_design_is_in_the_brief(desk, tmp_path):
    desk.import_(
        lines(
            tmp_path / "issues.jsonl", issue("bd-1", description="Add login.", design="Use JWT, in a cookie."),
            issue("bd-2", design="Only a design."), issue("bd-3", description="x" * 999_990, design="y" * 100),
        )
    )  # fmt: skip
    assert desk.show("bd-1")["description"] == "Add login.\n\n## Design\n\nUse JWT, in a cookie."
    assert desk.show("bd-2")["description"] == "## Design\n\nOnly a design."
    assert "Use JWT, in a cookie." in brief(informed(desk.show("bd-1"), desk.show), agent="coder")
    assert desk.show("bd-3")["extra"]["fields"]["design"] == "y" * 100, "what does not fit is kept"


# --- when a question was asked ----------------------------------------------------------------------------------------


def test_question_without_a_note_is_dated_by_the_last_change_of_its_task(desk, tmp_path):
    desk.import_(folder(tmp_path, tick("a01", awaiting="input", updated_at=LATER), tick("a02", manual=True, updated_at=LATER)))
    note = "2026-02-03 10:00 - Which one?"
    desk.import_(folder(tmp_path, tick("a03", awaiting="input", updated_at=LATER, notes=note), name="noted"))
    hive = {"title": "T", "state": "awaiting_input", "createdAt": MADE, "updatedAt": LATER, "question": "Which?"}
    desk.import_(lines(tmp_path / "hive" / ".bh" / "backlog.json", {"id": "tm-a", **hive}))
    asked = {name: desk.show(name)["questions"][0]["asked_at"] for name in ("a01", "a02", "a03", "tm-a")}
    assert asked == {"a01": LATER, "a02": LATER, "a03": "2026-02-03T10:00:00.000000Z", "tm-a": LATER}


# --- circles ----------------------------------------------------------------------------------------------------------


def test_a_circle_of_closed_tasks_does_not_keep_the_others_out(desk, tmp_path):
    found = desk.import_(
        folder(
            tmp_path, tick("a", "closed", blocked_by=["b"]), tick("b", "closed", blocked_by=["c", "x", "zz9"]),
            tick("c", "closed", blocked_by=["a"]), tick("s", "closed", blocked_by=["s"]), tick("x"),
            tick("p", "closed", parent="q"), tick("q", "closed", parent="p"), tick("own", "closed", parent="own"),
            tick("e", "closed", type="epic"), tick("k", parent="e", blocked_by=["e"]), tick("half", blocked_by=["shut"]),
            tick("shut", "closed", blocked_by=["half"]),
        )
    )  # fmt: skip
    assert found["imported"] == 12 and sound(desk)
    assert {desk.show(name)["state"] for name in ("k", "x", "half")} == {"ready"}, "what is closed holds nothing up"
    told = {w["id"] for w in found["warnings"] if "is part of a circle (" in w["what"]}
    assert {"s", "own"} < told and told & {"a", "b", "c"} and told & {"p", "q"} and told & {"half", "shut"}
    lost = next(w for w in found["warnings"] if w["id"] == "s")
    assert lost["what"] == "is part of a circle (s waits for s): comes without waiting for s"
    assert desk.show("s")["extra"]["fields"]["blocked_by"] == ["s"], "and it is kept"


def test_one_open_circle_beside_a_closed_one_is_refused(desk, tmp_path):
    before = everything(desk)
    ticks = [tick("a", "closed", blocked_by=["b"]), tick("b", "closed", blocked_by=["a"])]
    with pytest.raises(Invalid) as error:
        desk.import_(folder(tmp_path, *ticks, tick("c", blocked_by=["d"]), tick("d", blocked_by=["c"])))
    assert "c waits for d waits for c" in error.value.reason and "a waits" not in error.value.reason
    assert everything(desk) == before


# --- ids that are names of something else here ------------------------------------------------------------------------


def test_ids_that_are_keys_to_the_letter_go_into_another_project(desk, tmp_path):
    source = lines(tmp_path / "issues.jsonl", issue("PROJ-2"), issue("PROJ-7"), issue("Q3"))
    before = everything(desk)
    with pytest.raises(Invalid) as error:
        desk.import_(source)
    assert "the id PROJ-2 would be the key of another task here, and so would 1 more" in error.value.reason
    assert "--project OLD" in error.value.hint and everything(desk) == before
    lines(tmp_path / "issues.jsonl", issue("proj-2"), issue("Q3"))
    assert [w["what"] for w in desk.import_(source)["warnings"]] == ["can mean something else here: say beads:Q3"]
    lines(tmp_path / "issues.jsonl", issue("proj-2"), issue("PROJ-2"))
    again = desk.import_(source)
    assert again["imported"] == 1, "what was begun goes on"
    assert [w["what"] for w in again["warnings"]] == ["can mean something else here: say beads:PROJ-2"]
    assert desk.show("PROJ-2")["external_id"] == "proj-2" and desk.show("beads:PROJ-2")["key"] == "PROJ-3"


# --- what a task waits for --------------------------------------------------------------------------------------------


def test_what_has_ended_waits_for_nothing(desk):
    first, second, third = (desk.create(title)["key"] for title in ("A", "B", "C"))
    for key in (second, third):
        desk.depend(key, first)
    assert desk.show(second)["blocked_by"] == [first]
    for key, end in ((second, desk.close), (third, desk.cancel)):
        assert end(key)["blocked_by"] == [] and desk.show(key)["depends_on"] == [first]
    assert [t["blocked_by"] for t in desk.list()] == [[], [], []] and sound(desk)


def test_children_and_dependencies_are_separate_lists(desk, agent):
    first = desk.create("A")["key"]
    epic = desk.create("E", type="epic", depends_on=[first])["key"]
    child = desk.create("K", parent=epic)["key"]
    found = desk.show(epic)
    assert (found["depends_on"], found["children"]) == ([first, child], [child])
    assert desk.show(child)["children"] == [] == desk.show(first)["children"]
    assert {t["key"]: t["children"] for t in desk.list()}[epic] == [child]
    json.dumps(found)
