"""Tasks of ticks, beehive and beads: what they were there, they are here; and what is wrong is named, all of it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.states import everything
from yourturn.config import connect, init
from yourturn.core.errors import Invalid, NotAllowed, NotFound, Precondition, Usage
from yourturn.core.model import Who
from yourturn.core.references import TRACKERS
from yourturn.data import trackers
from yourturn.health.audit import verify
from yourturn.health.doctor import examine
from yourturn.testing import temporary_desk

MADE, ENDED = "2026-01-16T09:16:36.661848Z", "2026-01-16T16:21:25.435312+01:00"


def tick(id: str, status: str = "open", **fields: Any) -> dict[str, Any]:
    return {
        "id": id, "title": f"Tick {id}", "status": status, "priority": 2, "type": "task", "owner": "dev@example.org",
        "created_by": "dev@example.org", "created_at": MADE, "updated_at": MADE,
        **({"closed_at": ENDED} if status == "closed" else {}), **fields,
    }  # fmt: skip


def folder(tmp_path: Path, *ticks: dict[str, Any], name: str = "app") -> str:
    issues = tmp_path / name / ".tick" / "issues"
    issues.mkdir(parents=True, exist_ok=True)
    for one in ticks:
        (issues / f"{one['id']}.json").write_text(json.dumps(one, indent=2))
    return str(tmp_path / name)


NOTES = (
    "2026-01-14 22:03 - Work complete, awaiting approval\n"
    "2026-01-14 23:06 - [human] Please add timestamps\n\n- to every line\n- in UTC\n"
    "2026-01-14 23:10 - (from: Peter Engel) Looks right\n"
    "2026-01-14 23:11 - (from: human) Ship it\n"
    "2026-01-14 23:12 - Shipped"
)

#: One of each: what the tick says, and what the desk shows: state, awaiting, then (kind, status, verdict) of each question.
CASES: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "open": (tick("a01"), ("ready", None)),
    "busy": (tick("a02", "in_progress", started_at=MADE), ("ready", None)),
    "closed": (tick("a03", "closed", closed_reason="Done in 3 files"), ("done", None)),
    "bug": (tick("a04", type="bug", priority=0), ("ready", None)),
    "feature": (tick("a05", "closed", type="feature", priority=4), ("done", None)),
    "chore": (tick("a06", "closed", type="chore", priority=3), ("done", None)),
    "requires approval": (tick("b01", requires="approval"), ("ready", None)),
    "required review, closed": (tick("b02", "closed", requires="review"), ("done", None)),
    "required content, approved": (
        tick("b03", "closed", requires="content", verdict="approved", notes="2026-01-16 20:37 - (from: Ana Bo) Approved"),
        ("done", None, ("content", "answered", "approved")),
    ),
    "required and awaited content, closed": (
        tick("b04", "closed", requires="content", awaiting="content"),
        ("done", None, ("content", "cancelled", None)),
    ),
    "approved without a gate": (tick("b05", "closed", verdict="approved"), ("done", None, ("approval", "answered", "approved"))),
    "rejected and open": (
        tick("b06", requires="review", verdict="rejected"), ("ready", None, ("review", "answered", "rejected")),
    ),
    "declined": (
        tick("b07", "closed", awaiting="input", verdict="rejected"), ("cancelled", None, ("input", "answered", "rejected")),
    ),
    "work, rejected": (tick("b08", "closed", awaiting="work", verdict="rejected"), ("done", None, ("work", "cancelled", None))),
    "manual": (tick("c00", manual=True), ("human", "work", ("work", "pending", None))),
    "not manual": (tick("c0x", manual=False), ("ready", None)),
    "unprocessed": (tick("c0y", awaiting="approval", verdict="approved"), ("human", "approval", ("approval", "pending", None))),
    **{
        f"awaiting {kind}": (tick(f"c{n}1", awaiting=kind), ("human", kind, (kind, "pending", None)))
        for n, kind in enumerate(("work", "approval", "input", "review", "content", "escalation", "checkpoint"))
    },
    **{
        f"awaited {kind}": (
            tick(f"d{n}1", "closed", awaiting=kind, verdict="approved"), ("done", None, (kind, "answered", "approved")),
        )
        for n, kind in enumerate(("work", "approval", "review", "content", "checkpoint"))
    },
    "closed while awaited": (tick("d91", "closed", awaiting="work"), ("done", None, ("work", "cancelled", None))),
    "deferred": (tick("e01", defer_until="2096-01-01T00:00:00Z"), ("deferred", None)),
    "deferred before": (tick("e02", defer_until="2026-01-17T00:00:00Z"), ("ready", None)),
}  # fmt: skip


def test_every_combination_of_a_tick(desk, tmp_path, clock):
    source = folder(tmp_path, *[case[0] for case in CASES.values()])
    found = desk.import_(source)
    assert found["imported"] == len(CASES) and found["format"] == "ticks"
    for name, (said, (state, awaiting, *questions)) in CASES.items():
        task = desk.show(said["id"])
        assert (task["state"], task["awaiting"]) == (state, awaiting), name
        asked = [(q["kind"], q["status"], (q["response"] or {}).get("verdict")) for q in task["questions"]]
        assert asked == questions, name
        assert (task["priority"], task["type"], task["requires"]) == (said["priority"], said["type"], said.get("requires")), name
        assert task["created_at"] == MADE and task["created_by"] == "human:dev@example.org"
        assert task["ended_at"] == ("2026-01-16T15:21:25.435312Z" if said["status"] == "closed" else None), name
        assert task["reason"] == said.get("closed_reason", "")
        assert task["external_id"] == said["id"] and task["extra"]["source"] == "ticks"
        assert task["extra"]["fields"]["owner"] == "dev@example.org"
    assert desk.show("a02")["extra"]["fields"]["status"] == "in_progress"
    assert desk.show("b03")["questions"][0]["responded_by"] == "human:Ana-Bo"
    assert desk.show("e01")["wake_at"] == "2096-01-01T00:00:00.000000Z"
    assert [w["id"] for w in found["warnings"]] == ["c0y"]
    before = everything(desk)
    again = desk.import_(source)
    assert (again["imported"], again["unchanged"], again["differ"]) == (0, len(CASES), [])
    assert everything(desk) == before
    assert [check for check in examine(desk, strict=True) if check["status"] == "bad"] == [] and verify(desk)["ok"]
    desk.approve("c11")
    assert desk.show("c11")["state"] == "done"
    assert desk.claim("a01", "w1")["task"]["key"] == desk.show("a01")["key"]


def test_what_was_imported_goes_on_elsewhere_as_it_is(desk, tmp_path, new_db, dialect):
    source = folder(tmp_path, *[case[0] for case in CASES.values()], tick("n01", notes=NOTES, blocked_by=["a01"], parent="zzz"))
    desk.import_(source)
    file = str(tmp_path / "x.jsonl")
    desk.export(file)
    other = new_db("postgres" if dialect == "sqlite" else "sqlite")
    init(other, "XX", None, {"USER": "ana"})[0].close()
    with connect(other, as_="human:ana", env={}) as target:
        target.import_(file)
        out = io.StringIO()
        target.export(out)
        assert out.getvalue() == Path(file).read_text()
        assert target.show("n01") == desk.show("n01") == target.show("ticks:n01")
        assert target.import_(source, project="PROJ")["unchanged"] == len(CASES) + 1


def test_notes_are_their_authors(desk, tmp_path):
    desk.import_(folder(tmp_path, tick("a01", notes=NOTES), tick("a02", notes="no date\n[human] a person's\nand more")))
    notes = [(n["author"], n["text"], n["at"][:16]) for n in desk.show("a01")["notes"]]
    assert notes == [
        ("agent:ticks", "Work complete, awaiting approval", "2026-01-14T22:03"),
        ("human:ticks", "Please add timestamps\n\n- to every line\n- in UTC", "2026-01-14T23:06"),
        ("human:Peter-Engel", "Looks right", "2026-01-14T23:10"),
        ("human:ticks", "Ship it", "2026-01-14T23:11"),
        ("agent:ticks", "Shipped", "2026-01-14T23:12"),
    ]
    assert [(n["author"], n["text"]) for n in desk.show("a02")["notes"]] == [
        ("agent:ticks", "no date"),
        ("human:ticks", "a person's\nand more"),
    ]
    asked = folder(tmp_path, tick("q01", awaiting="input", notes="2026-01-15 08:00 - JWT or sessions?"), name="b")
    desk.import_(asked)
    (question,) = desk.show("q01")["questions"]
    assert (question["text"], question["asked_by"], question["asked_at"][:16]) == (
        "JWT or sessions?",
        "agent:ticks",
        "2026-01-15T08:00",
    )


def test_parents_and_blockers(desk, tmp_path):
    ticks = [
        tick("epc", type="epic"), tick("kid", parent="epc", blocked_by=["pre"]), tick("pre", created_at=ENDED),
        tick("old", "closed", parent="epc"), tick("dun", "closed", type="epic"), tick("was", "closed", parent="dun"),
        tick("odd", parent="dun"), tick("far", blocked_by=["gone", "old"]), tick("top", type="epic", blocked_by=["sub"]),
        tick("sub", parent="top"), tick("hal", type="epic"), tick("fin", "closed", parent="hal"),
        # waits for what comes later, and its own child is needed on the way
        tick("p01", blocked_by=["x01"]), tick("x01", blocked_by=["y01"]), tick("y01", parent="p01"),
    ]  # fmt: skip
    found = desk.import_(folder(tmp_path, *ticks))
    key = {task["id"]: task["key"] for task in found["tasks"]}
    state = {task["id"]: task["state"] for task in found["tasks"]}
    assert state == {
        "epc": "blocked", "kid": "blocked", "pre": "ready", "old": "done", "dun": "done", "was": "done", "odd": "ready",
        "far": "ready", "top": "blocked", "sub": "ready", "hal": "ready", "fin": "done", "p01": "blocked", "x01": "blocked",
        "y01": "ready",
    }  # fmt: skip
    assert desk.show("kid")["parent"] == key["epc"] and desk.show("kid")["blocked_by"] == [key["pre"]]
    assert desk.show("was")["parent"] == key["dun"]
    assert set(desk.show("epc")["depends_on"]) == {key["kid"], key["old"]}
    assert desk.show("odd")["parent"] is None and desk.show("odd")["extra"]["fields"]["parent"] == "dun"
    assert desk.show("far")["depends_on"] == [key["old"]] and desk.show("far")["extra"]["fields"]["blocked_by"] == ["gone"]
    assert {w["id"]: w["what"] for w in found["warnings"]} == {
        "odd": "its parent dun has ended: it has none here",
        "far": "waited for gone, not in this import: counts as closed",
    }
    assert all(len(desk.history(k)) == 1 for k in key.values()), "each came in with one move"
    assert set(desk.show("x01")["depends_on"]) == {key["y01"]} and set(desk.show("p01")["depends_on"]) == {key["x01"], key["y01"]}
    for name in ("y01", "x01", "p01", "pre"):
        desk.close(name)
    assert desk.show("kid")["state"] == "ready" and desk.show("epc")["state"] == "blocked"
    assert [check for check in examine(desk, strict=True) if check["status"] == "bad"] == []


def test_keys_and_the_order_of_work_follow_age(desk, tmp_path):
    ticks = [tick("new", created_at="2026-03-01T00:00:00Z"), tick("old", created_at="2026-01-01T00:00:00Z", parent="mid")]
    ticks.append(tick("mid", type="epic", created_at="2026-02-01T00:00:00.123456789Z"))
    assert [task["id"] for task in desk.import_(folder(tmp_path, *ticks))["tasks"]] == ["mid", "old", "new"]
    assert [task["external_id"] for task in desk.ready()] == ["old", "new"]


def test_imported_again_with_more_and_with_changes(desk, tmp_path):
    source = folder(tmp_path, tick("epc", type="epic"), tick("a01"))
    desk.import_(source)
    before = desk.show("a01")
    folder(tmp_path, tick("a01", title="Another title"), tick("kid", parent="epc", blocked_by=["a01"]))
    found = desk.import_(source)
    assert (found["imported"], found["unchanged"]) == (1, 1)
    assert found["differ"] == [{"id": "a01", "key": before["key"]}]
    assert {**desk.show("a01"), "version": before["version"]} == before, "its new neighbour raises only the version"
    assert desk.show("kid")["parent"] == desk.show("epc")["key"] and desk.show("kid")["state"] == "blocked"
    assert desk.show("epc")["state"] == "blocked"
    desk.close("a01")
    desk.close("kid")
    folder(tmp_path, tick("kd2", parent="epc"))
    assert "its parent epc has ended" in desk.import_(source)["warnings"][0]["what"]


def test_a_circle_through_what_is_here_already_is_refused(desk, tmp_path):
    source = folder(tmp_path, tick("epc", type="epic"), tick("a01"))
    desk.import_(source)
    desk.depend("a01", "epc")
    folder(tmp_path, tick("kid", parent="epc", blocked_by=["a01"]))
    before = everything(desk)
    with pytest.raises(Precondition, match="that would be a circle"):
        desk.import_(source)
    assert everything(desk) == before


def test_old_ids_work_wherever_a_task_is_named(desk, agent, tmp_path):
    desk.import_(folder(tmp_path, tick("297"), tick("0a1"), tick("9e9", type="epic"), tick("k1", parent="9e9")))
    key = desk.show("297")["key"]
    assert desk.show(297)["key"] == key and desk.note("297", "Hello")["key"] == key
    claim = agent.claim("297", "w1")
    assert agent.complete(claim["claim"])["state"] == "done"
    assert desk.depend("0a1", "k1")["blocked_by"] == [desk.show("k1")["key"]]
    assert [t["external_id"] for t in desk.list(epic="9e9")] == ["k1"]
    desk.import_(folder(tmp_path, tick("q12"), tick("q02"), name="questions"))
    assert desk.show("q12")["external_id"] == "q12" and desk.note("q02", "Hello")["external_id"] == "q02"
    assert desk.history("q12")[0]["action"] == "import"
    with pytest.raises(NotFound, match="There is no question Q13"):
        desk.show("q13")
    with pytest.raises(NotFound, match="There is no task PROJ-999"):
        desk.show("999")
    desk.create("Mine", key=None)
    assert desk.show("1")["key"] == "PROJ-1", "a key of the desk goes first"


def test_only_an_admin_imports(desk, agent, tmp_path):
    source = folder(tmp_path, tick("a01"))
    before = everything(desk)
    for who in (Who("human:bob", "approver", direct=True), Who("human:eve", "viewer"), Who("agent:x", "agent")):
        with pytest.raises(NotAllowed):
            desk.as_(who).import_(source)
        with pytest.raises(NotAllowed):
            desk.as_(who).do("import", title="T", external_id="x", state="done", project="PROJ")
    assert everything(desk) == before


def test_a_dry_run_and_a_desk_with_vetting(desk, tmp_path):
    source = folder(tmp_path, tick("a01"), tick("a02", "closed"), tick("a03", defer_until="2096-01-01"))
    before = everything(desk)
    found = desk.import_(source, dry_run=True)
    assert found["dry_run"] and [t["key"] for t in found["tasks"]] == ["PROJ-1", "PROJ-2", "PROJ-3"]
    assert everything(desk) == before
    desk.set("vetting", True)
    desk.import_(source)
    assert [desk.show(name)["state"] for name in ("a01", "a02", "a03")] == ["created", "done", "deferred"]
    assert desk.wake("a03")["state"] == "created"


# --- the others -------------------------------------------------------------------------------------------------------


def lines(path: Path, *records: dict[str, Any]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def test_a_beehive(desk, tmp_path):
    def task(id: str, state: str, **fields: Any) -> dict[str, Any]:
        times = {"createdAt": "2026-02-05T10:00:00Z", "updatedAt": "2026-02-06T12:00:00Z"}
        return {
            "id": id,
            "title": f"Task {id}",
            "state": state,
            "priority": 1,
            "role": "code",
            "size": "small",
            **times,
            **fields,
        }

    lines(
        tmp_path / "hive" / ".bh" / "backlog.json",
        task("tm-a", "awaiting_input", question="JWT or cookies?", questionContext="APIs like JWT", sessionId="7f1c"),
        task("tm-b", "open", dependencies=["tm-a"]),
        task("tm-c", "closed", summary="Added tests", details="All 12 pass", dependencies=["tm-b", "tm-x"]),
        task("tm-d", "deferred", question="Which draft?", humanResponse="The second", humanRespondedAt="2026-02-06T11:00:00Z"),
        task("tm-e", "failed", summary="No key"),
        task("tm-f", "open", dependencies=["tm-e"], size="huge"),
        task("tm-g", "blocked"),
        task("tm-h", "in_progress", question="Still?"),
        task("tm-i", "awaiting_input", humanResponse="yes"),
    )
    found = desk.import_(str(tmp_path / "hive"))
    assert found["format"] == "beehive"
    assert {t["id"]: t["state"] for t in found["tasks"]} == {
        "tm-a": "human", "tm-b": "blocked", "tm-c": "done", "tm-d": "deferred", "tm-e": "failed", "tm-f": "human",
        "tm-g": "human", "tm-h": "ready", "tm-i": "human",
    }  # fmt: skip
    a, c, d = desk.show("tm-a"), desk.show("tm-c"), desk.show("tm-d")
    assert a["questions"][0]["text"] == "JWT or cookies?" and a["questions"][0]["context"] == {"text": "APIs like JWT"}
    assert (a["awaiting"], a["session_id"], a["role"], a["complexity"]) == ("input", "7f1c", "code", "small")
    assert (c["summary"], c["ended_at"][:10], c["notes"][0]["text"]) == ("Added tests", "2026-02-06", "All 12 pass")
    assert d["questions"][0]["response"]["value"] == "The second" and d["questions"][0]["responded_by"] == "human:beehive"
    assert desk.show("tm-e")["failure"] == "error" and desk.show("tm-e")["reason"] == "No key"
    assert (
        desk.show("tm-f")["questions"][0]["reason"] == "dependency_failed"
        and desk.show("tm-f")["extra"]["fields"]["size"] == "huge"
    )
    assert desk.show("tm-g")["questions"][0]["reason"] == "blocked_external"
    assert desk.show("tm-h")["questions"][0]["status"] == "cancelled"
    assert desk.answer("tm-a", "JWT")["response"]["value"] == "JWT"
    assert desk.import_(str(tmp_path / "hive" / ".bh" / "backlog.json"))["unchanged"] == 9
    assert [check for check in examine(desk, strict=True) if check["status"] == "bad"] == []


def test_beads(desk, tmp_path):
    def issue(id: str, status: str, **fields: Any) -> dict[str, Any]:
        return {
            "id": id,
            "title": f"Issue {id}",
            "status": status,
            "priority": 1,
            "issue_type": "task",
            "created_at": MADE,
            **fields,
        }

    def tie(one: str, other: str, sort: str) -> dict[str, str]:
        return {"issue_id": one, "depends_on_id": other, "type": sort}

    lines(
        tmp_path / ".beads" / "issues.jsonl",
        issue("bd-1", "open", issue_type="epic", assignee="ana", labels=["two words", "ok"]),
        issue("bd-2", "in_progress", dependencies=[tie("bd-2", "bd-1", "parent-child"), tie("bd-2", "bd-9", "related")]),
        issue("bd-3", "blocked", dependencies=[tie("bd-3", "bd-2", "blocks")]),
        issue("bd-4", "blocked"),
        issue("bd-5", "deferred", defer_until="2096-05-01T00:00:00Z"),
        issue(
            "bd-6",
            "closed",
            closed_at=ENDED,
            close_reason="Merged",
            comments=[{"author": "bo", "text": "Nice", "created_at": MADE}],
        ),
        issue("bd-7", "tombstone", issue_type="molecule"),
    )
    found = desk.import_(str(tmp_path))
    assert found["format"] == "beads"
    assert {t["id"]: t["state"] for t in found["tasks"]} == {
        "bd-1": "blocked", "bd-2": "ready", "bd-3": "blocked", "bd-4": "human", "bd-5": "deferred", "bd-6": "done",
        "bd-7": "cancelled",
    }  # fmt: skip
    one, two, six = desk.show("bd-1"), desk.show("bd-2"), desk.show("bd-6")
    assert one["labels"] == ["two-words", "ok"] and one["extra"]["fields"]["assignee"] == "ana"
    assert one["extra"]["fields"]["labels"] == ["two words", "ok"]
    assert two["parent"] == one["key"] and two["extra"]["fields"]["dependencies"] == [tie("bd-2", "bd-9", "related")]
    assert (six["reason"], six["notes"][0]["author"]) == ("Merged", "human:bo")
    assert desk.show("bd-7")["type"] == "task" and desk.show("bd-7")["extra"]["fields"]["issue_type"] == "molecule"
    assert [check for check in examine(desk, strict=True) if check["status"] == "bad"] == []


# --- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.fixture
def small():
    with temporary_desk() as found:
        yield found


def refused(desk, source: str, **how: Any) -> list[str]:
    before = everything(desk)
    with pytest.raises(Invalid) as error:
        desk.import_(source, **how)
    assert everything(desk) == before, "half an import"
    return str(error.value.reason).splitlines()[1:]


def test_all_that_is_wrong_is_named_with_its_line(small, tmp_path):
    good = {"id": "bd-1", "title": "T", "status": "open", "issue_type": "task"}
    raw = [
        json.dumps(good).encode(),
        b'{"id": "bd-2", "title": "cut',
        b"",
        b'{"id": "bd-3", "title": "T", "status": "lost", "issue_type": "task", "priority": 9}',
        b"[1]",
        b'{"id": "bd-4", "title": "\xff\xfe", "status": "open"}',
        b'{"id": 5, "status": "open", "created_at": "yesterday"}',
        json.dumps(good).encode(),
        b'{"id": "x", "id": "y", "title": "T", "status": "open"}',
        b"[" * 100_000,
        b'{"id": "n", "title": "T", "status": "open", "priority": NaN}',
        b'{"id": "l", "title": "T", "status": "open", "labels": "no list", "dependencies": [7], "comments": [7]}',
        b'{"id": "deep", "title": "T", "status": "open", "x": ' + b"[" * 40 + b"]" * 40 + b"}",
        b'{"id": "nul", "title": "T", "status": "open", "description": "\\u0000"}',
    ]
    file = tmp_path / "issues.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(raw))
    found = refused(small, str(file), from_="beads")
    numbers = [int(line.split(f"{file}:")[1].split(":")[0]) for line in found]
    assert sorted(set(numbers)) == [2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
    assert numbers.count(4) == 2 and numbers.count(7) == 3 and numbers.count(12) == 3
    assert any("the id bd-1 stands in" in line for line in found)
    file.write_bytes(b"\xef\xbb\xbf" + raw[0] + b"\r\n\r\n")
    assert small.import_(str(file))["imported"] == 1


def test_circles_are_refused_by_name(small, tmp_path):
    source = folder(
        tmp_path, tick("a", blocked_by=["b"]), tick("b", blocked_by=["c"]), tick("c", blocked_by=["a"]),
        tick("s", blocked_by=["s"]),
        tick("p", parent="q"), tick("q", parent="p"), tick("own", parent="own"), tick("e", type="epic"),
        tick("k", parent="e", blocked_by=["e"]), tick("fine", blocked_by=["a"]),
    )  # fmt: skip
    found = sorted(line.partition("a circle: ")[2] for line in refused(small, source))
    assert found == [
        "a waits for b waits for c waits for a",
        "e waits for k waits for e",
        "own waits for own",
        "p waits for q waits for p",
        "s waits for s",
    ]


def test_names_of_trackers():
    assert tuple(trackers.TRACKERS) == TRACKERS


def test_files_that_are_no_tracker(small, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "nothing.jsonl").write_text("")
    (tmp_path / "blank.jsonl").write_text("\n\n")
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "list.json").write_text("[]")
    for name in ("empty", "nothing.jsonl", "blank.jsonl", "other.jsonl", "list.json", "missing"):
        with pytest.raises(Invalid) as error:
            small.import_(str(tmp_path / name))
        assert name in str(error.value)
    for name in ("nothing.jsonl", "blank.jsonl"):
        with pytest.raises(Invalid, match="holds no tasks"):
            small.import_(str(tmp_path / name), from_="beads")
    with pytest.raises(Usage):
        small.import_(str(tmp_path / "empty"), from_="jira")
    folder(tmp_path, tick("a01"))
    lines(tmp_path / "app" / ".bh" / "backlog.json", {"id": "b", "title": "B", "state": "open"})
    with pytest.raises(Usage, match="ticks and of beehive"):
        small.import_(str(tmp_path / "app"))
    assert small.import_(str(tmp_path / "app"), from_="beehive")["imported"] == 1
    assert small.import_(str(tmp_path / "app" / ".tick"))["imported"] == 1
    assert small.import_(str(tmp_path / "app" / ".tick" / "issues" / "a01.json"))["unchanged"] == 1
    assert small.import_(str(tmp_path / "app" / ".tick" / "issues"))["unchanged"] == 1
    with pytest.raises(NotFound, match="There is no project NONE"):
        small.import_(str(tmp_path / "app"), from_="ticks", project="NONE")


def test_odd_titles_and_times_are_kept(small, tmp_path):
    long = "x" * 400
    source = folder(
        tmp_path, tick("a01", title="two\nlines\tand \x1b[31mcolour"), tick("a02", title=long, role="Lead Engineer"),
        tick("a03", "closed", created_at="2096-01-01T00:00:00Z", closed_at="2096-01-02T00:00:00Z"),
        tick("a04", created_at="0001-01-01T00:00:00Z", owner={"deep": [1, {"x": None}]}),
    )  # fmt: skip
    small.import_(source)
    assert small.show("a01")["title"] == "two lines and [31mcolour"
    assert small.show("a02")["title"] == "x" * 299 + "…" and small.show("a02")["extra"]["fields"]["title"] == long
    assert small.show("a02")["role"] == "Lead-Engineer" and small.show("a02")["extra"]["fields"]["role"] == "Lead Engineer"
    now = small.show("a03")["updated_at"]
    assert small.show("a03")["created_at"] == small.show("a03")["ended_at"] == now, "nothing here is from the future"
    assert small.show("a04")["extra"]["fields"]["owner"] == {"deep": [1, {"x": None}]}
    assert small.claim("a04", "w1")["task"]["state"] == "working"


def test_several_lines_are_no_tick(desk, tmp_path):
    """Without a type, a line of beads looks like a tick; but a tick has a file of its own."""
    source = tmp_path / "issues.jsonl"
    source.write_text('{"id": "bd-1", "title": "A", "status": "open"}\nno JSON\n{"id": "bd-2", "status": "open"}\n')
    with pytest.raises(Invalid) as error:
        desk.import_(str(source))
    assert "issues.jsonl:2: the record is not JSON" in error.value.reason
    assert "issues.jsonl:3: title is missing" in error.value.reason
    source.write_text('{"id": "bd-1", "title": "A", "status": "open"}\n')
    assert desk.import_(str(source))["imported"] == 1 and desk.show("bd-1")["extra"]["source"] == "beads"


def test_preferred_order_is_reported_stored_and_blocks_nothing(desk, tmp_path):
    """ticks: "soft ordering: prefer after these ticks, but do not block on them"."""
    found = desk.import_(folder(tmp_path, tick("one"), tick("two", after=["one", "gone"]), tick("old", "closed", after=["one"])))
    assert [(w["id"], w["what"].partition(",")[0]) for w in found["warnings"]] == [("two", "should come after one")]
    task = desk.show("two")
    assert (task["state"], task["depends_on"], task["extra"]["fields"]["after"]) == ("ready", [], ["one", "gone"])
    assert desk.show("old")["extra"]["fields"]["after"] == ["one"]
