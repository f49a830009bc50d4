"""Out and in again: the same bytes, whichever databases are between; or a clear no, and nothing changed."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from tests.conftest import DIALECTS
from tests.core.states import everything
from yourturn.client import Client
from yourturn.config import connect
from yourturn.core.errors import ClaimLost, Invalid, NotAllowed, Precondition, StoreTrouble
from yourturn.core.model import Who
from yourturn.core.questions import allows
from yourturn.data import archive
from yourturn.db import dump, schema
from yourturn.health.audit import verify
from yourturn.health.doctor import examine

from .sample_desk import fill


@pytest.fixture
def opened(new_desk, clock):
    """opened('postgres'): a new desk of that dialect."""
    found: list[Client] = []

    def make(dialect: str) -> Client:
        found.append(connect(new_desk(dialect), as_="human:ana", clock=clock, env={}))
        return found[-1]

    yield make
    for client in found:
        client.close()


def text(desk: Client) -> str:
    out = io.StringIO()
    desk.export(out)
    return out.getvalue()


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")[:-1]]


def well(desk: Client) -> list[dict[str, str]]:
    found = examine(desk, strict=True)
    return [check for check in found if check["status"] != "ok" and check["check"] not in ("overdue", "readers")]


@pytest.mark.parametrize("there", DIALECTS)
@pytest.mark.parametrize("here", DIALECTS)
def test_a_round_trip_is_exact(opened, clock, tmp_path, here, there):
    source, target = opened(here), opened(there)
    fill(source, clock)
    before, file = text(source), str(tmp_path / "desk.jsonl")
    source.export(file)
    assert (tmp_path / "desk.jsonl").read_text() == before == text(source)
    shown = [source.show(task["key"]) for task in source.list()]
    told = [source.history(task["key"]) for task in source.list()]
    assert target.import_(file)["imported"] == len(shown)
    assert text(target) == before
    assert [target.show(task["key"]) for task in target.list()] == shown
    assert [target.history(task["key"]) for task in target.list()] == told
    assert verify(target) == verify(source) and verify(target)["ok"]
    assert well(target) == []
    again = target.import_(file)
    assert (again["imported"], again["unchanged"]) == (0, len(shown))
    assert text(target) == before
    new = target.create("Life goes on")
    asked = target.ask(new["key"], "Which?")
    assert int(asked["id"][1:]) > max(int(q["id"][1:]) for task in shown for q in task["questions"])
    assert new["key"] == source.create("Life goes on")["key"]
    target.create_token("new")
    assert well(target) == [] and verify(target)["ok"]
    assert target.import_(file)["unchanged"] == len(shown), "what has moved on since is still the same desk"


def test_an_export_holds_no_secret(desk, clock):
    claims = fill(desk, clock, held=True)
    desk.set_preferences(theme="dark")
    secrets = [desk.create_link()["link"], desk.use_link(desk.create_link()["link"])["session"]]
    with desk.desk.store.reading() as run:
        hashes = [
            row[0] for row in run("SELECT hash FROM tokens UNION ALL SELECT claim_hash FROM tasks WHERE holder IS NOT NULL")
        ]
    found = text(desk)
    assert len(hashes) == 3 and not any(secret in found for secret in [*hashes, *claims.values(), *secrets])
    shown = {json.loads(line).get("table") for line in _lines(found)}
    assert shown == {table.name for table in dump.TABLES if "*" not in table.secret} | {None}


def test_every_table_is_in_an_export(desk):
    with desk.desk.store.reading() as run:
        assert desk.desk.store.tables(run) == {table.name for table in dump.TABLES} | {"schema_version"}


def test_claims_are_void_where_they_are_imported(desk, clock, opened, dialect, tmp_path):
    claims, file = fill(desk, clock, held=True), str(tmp_path / "desk.jsonl.gz")
    desk.export(file)
    before = text(desk)
    target = opened(dialect)
    found = target.import_(file)
    assert found["fenced"] == 2
    coder = target.as_(Who("agent:coder", "agent", direct=True))
    for key, token in claims.items():
        with pytest.raises(ClaimLost):
            coder.complete(token)
        assert target.show(key)["claim"] is None
        assert target.show(key)["retry_count"] == desk.show(key)["retry_count"]
        assert target.history(key)[-1]["action"] == "fence" and target.history(key)[:-1] == desk.history(key)
    assert text(desk) == before, "the source is as it was"
    assert well(target) == [] and verify(target)["ok"]
    ours = [json.loads(line) for line in _lines(text(target))]
    theirs = [json.loads(line) for line in _lines(before)]
    kept = {line["key"]: line for line in theirs if line.get("table") == "tasks"}
    assert [line for line in ours if line.get("table") == "tasks" and line["key"] not in claims] == [
        line for line in kept.values() if line["key"] not in claims
    ]
    events = [line for line in ours if line.get("table") == "events"]
    assert events[:-3] == [line for line in theirs if line.get("table") == "events"]
    assert [line["action"] for line in events[-3:]] == ["fence", "fence", "restore"]
    assert target.import_(file)["unchanged"] == found["imported"]


def _row(desk, asked):
    return desk.desk.read_stored(lambda r: r.question(int(asked["id"][1:]))[0])


def test_an_approval_from_before_a_fence_does_not_count(desk, agent):
    key = desk.create("Deploy")["key"]
    asked = agent.ask(key, "May I?", kind="permission", action={"tool": "Bash"})
    desk.approve(asked["id"])
    question = _row(desk, asked)
    assert allows(question, None)
    desk.do("restore")
    fenced_at = desk.desk.read_stored(lambda r: r.rows("SELECT fenced_at FROM workspaces")[0][0])
    assert not allows(question, fenced_at)
    note = desk.show(key)["notes"][-1]
    assert note["author"] == "system" and asked["id"] in note["text"] and "ask again" in note["text"]
    later = agent.ask(key, "May I?", kind="permission", action={"tool": "Bash"})
    desk.approve(later["id"])
    assert allows(_row(desk, later), fenced_at), "the clock stood still, and yet it came after"
    no = agent.ask(key, "And that?", kind="permission", action={"tool": "Rm"})
    desk.reject(no["id"])
    assert not allows(_row(desk, no), None)
    work = agent.ask(key, "Which?")
    desk.answer(work["id"], "this")
    assert not allows(_row(desk, work), None)


def test_a_desk_with_other_work_is_left_alone(desk, clock, opened, dialect, tmp_path):
    fill(desk, clock)
    file = str(tmp_path / "desk.jsonl")
    desk.export(file)
    target = opened(dialect)
    target.create("Mine")
    before, shown = everything(target), text(target)
    with pytest.raises(Precondition, match="it holds 1 task, and project WEB is not among it") as error:
        target.import_(file)
    assert "turn restore" in error.value.hint
    assert everything(target) == before and text(target) == shown
    target.create_project("WEB")
    with pytest.raises(Precondition, match="PROJ-1 is not among it"):
        target.import_(file)
    with pytest.raises(Precondition):
        desk.import_(_other(opened, dialect, tmp_path))


def _other(opened, dialect, tmp_path) -> str:
    other = opened(dialect)
    other.create("The same key, another task")
    other.export(str(tmp_path / "other.jsonl"))
    return str(tmp_path / "other.jsonl")


def test_a_dry_run_changes_nothing(desk, clock, opened, dialect, tmp_path):
    fill(desk, clock)
    file = str(tmp_path / "desk.jsonl")
    desk.export(file)
    target = opened(dialect)
    before = text(target)
    assert target.import_(file, dry_run=True)["imported"] == 23
    assert text(target) == before


BROKEN = {
    "an edit": (lambda s: s.replace("Child 1", "Child X"), "was changed after it was written"),
    "a broken line": (lambda s: "".join([*_lines(s)[:4], "{" + _lines(s)[4], *_lines(s)[5:]]), "written: line 5 is not JSON"),
    "a line without a bottom": (lambda s: s.replace("\n", "\n" + "[" * 100_000 + "\n", 1), "written: line 2 is not JSON"),
    "a missing line": (lambda s: "".join(_lines(s)[:5] + _lines(s)[6:]), "was changed after it was written"),
    "a missing end": (lambda s: "".join(_lines(s)[:-1]), "was cut off"),
    "half a line": (lambda s: s[:-40], "was cut off"),
    "more lines": (lambda s: s + _lines(s)[3], "goes on after its end"),
    "a newer format": (lambda s: s.replace('"version":1', '"version":2', 1), "newer Yourturn"),
    "a newer schema": (lambda s: s.replace(f'"schema":{schema.VERSION}', '"schema":99', 1), "newer Yourturn"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_damaged_file_is_refused_whole(opened, clock, tmp_path, name):
    desk = opened("sqlite")
    fill(desk, clock)
    change, words = BROKEN[name]
    file = tmp_path / "desk.jsonl"
    file.write_text(change(text(desk)))
    target = opened("sqlite")
    before = everything(target)
    with pytest.raises(Invalid, match=words):
        target.import_(str(file))
    assert everything(target) == before


def test_a_cut_off_gzip_is_refused(opened, clock, tmp_path):
    desk = opened("sqlite")
    fill(desk, clock)
    file = tmp_path / "desk.jsonl.gz"
    desk.export(str(file))
    assert gzip.decompress(file.read_bytes()).decode() == text(desk)
    desk.export(str(tmp_path / "again.gz"))
    assert (tmp_path / "again.gz").read_bytes() == file.read_bytes()
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(Invalid, match="cannot be read"):
        opened("sqlite").import_(str(file))


def test_only_an_admin_moves_data(desk, agent, tmp_path):
    file = str(tmp_path / "x")
    for attempt in (
        lambda: agent.export(file),
        lambda: agent.backup(file),
        lambda: agent.import_(file),
        lambda: agent.do("restore"),
    ):
        with pytest.raises(NotAllowed):
            attempt()
    member = desk.as_(Who("human:bob", "member"))
    desk.export(file)
    for attempt in (lambda: member.export(file), lambda: member.backup(file), lambda: member.import_(file)):
        with pytest.raises(NotAllowed):
            attempt()


def test_a_file_that_is_something_else_is_not_overwritten(desk, tmp_path):
    mine = tmp_path / "thesis.txt"
    mine.write_text("years of work")
    for attempt in (desk.export, desk.backup):
        with pytest.raises(Invalid, match="neither a backup nor an export"):
            attempt(str(mine))
        with pytest.raises(Invalid, match="is a folder"):
            attempt(str(tmp_path))
        with pytest.raises(StoreTrouble, match="cannot be written"):
            attempt(str(tmp_path / "nowhere" / "x.jsonl"))
    assert mine.read_text() == "years of work"
    desk.export(str(tmp_path / "x.jsonl"))
    desk.export(str(tmp_path / "x.jsonl"))
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["thesis.txt", "x.jsonl"], "nothing else is left behind"


@pytest.mark.long
def test_memory_stays_bounded(opened, tmp_path):
    """Ten times as many rows take no more memory."""
    import tracemalloc

    desk = opened("sqlite")
    peaks = []
    for more in (200, 1800):
        for number in range(more):
            desk.create(f"Task {number}", description="x" * 2000)
        tracemalloc.start()
        archive.export(desk.desk.store, desk.who, None, str(tmp_path / "x.jsonl"))
        archive.check(str(tmp_path / "x.jsonl"))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 1_000_000
