"""docs/data.md happens as it is written; and data in and out on the command line."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.command import Turn

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")


def app(folder: Path) -> None:
    """The folder that the page imports."""
    issues = folder / "app" / ".tick" / "issues"
    issues.mkdir(parents=True)
    for at, more in enumerate(
        (
            {"id": "e1a", "type": "epic"},
            {"id": "k7q", "title": "Reset a password", "parent": "e1a", "awaiting": "approval"},
            {"id": "w02", "status": "closed", "blocked_by": ["zz9"], "verdict": "approved"},
        )
    ):
        tick: dict[str, Any] = {
            "title": "T",
            "status": "open",
            "priority": 2,
            "type": "task",
            "created_at": f"2026-01-0{at + 1}T00:00:00Z",
        }
        (issues / f"{more['id']}.json").write_text(json.dumps(tick | more))


def _plain(text: str) -> str:
    text = re.sub(r"\([\d,…]+ bytes\)", "(BYTES)", text)
    return re.sub(r"(?<=into )\S*yourturn\.db\.|(?<=into )…|(?<=kept in ).*", "PLACE", text).strip()


def test_the_page(tmp_path: Path) -> None:
    turn = Turn(tmp_path)
    turn("init", "--key", "PROJ")
    app(tmp_path)
    shown = [
        part for block in re.findall(r"```console\n(.*?)```", PAGE, re.S) for part in re.split(r"^\$ ", block, flags=re.M)[1:]
    ]
    assert len(shown) == 15
    for part in shown:
        line, _, expected = part.partition("\n")
        done = turn.run(*shlex.split(line)[1:])
        assert done.returncode == 0, (line, done.stderr)
        assert _plain(done.stdout) == _plain(expected), line
    assert (tmp_path / "desk.jsonl").read_bytes() == (tmp_path / "again.jsonl").read_bytes()
    assert turn("doctor", "--db", "copy.db") and turn("audit", "verify", "--db", "restored.db")["ok"]


def test_the_python_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    turn = Turn(tmp_path)
    turn("init", "--key", "PROJ")
    app(tmp_path)
    turn("create", "Add login")
    turn("import", "app")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("USER", "ana")
    (source,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(source, "data.md", "exec"), {})
    assert capsys.readouterr().out.split() == re.findall(r"# (\d+)$", source, re.M)


def test_invalid_input_is_reported_and_changes_nothing(here: Turn) -> None:
    here("create", "Mine")
    before = here("list")
    (here.folder / "bad.jsonl").write_text('{"id": "a"}\nnope\n')
    error = here("import", "bad.jsonl", "--from", "beads", exit=6)
    assert error["code"] == "invalid" and "bad.jsonl:1" in error["message"] and "bad.jsonl:2" in error["message"]
    assert "bad.jsonl:2: the record is not JSON" in here.text("import", "bad.jsonl", "--from", "beads", exit=6)
    assert here("import", "nowhere", exit=6)["code"] == "invalid"
    assert here("import", ".", exit=6)["hint"].startswith("Looked for:")
    assert here("import", "bad.jsonl", "--from", "jira", exit=2)["code"] == "usage"
    assert here("export", exit=2)["code"] == "usage"
    assert here("restore", "bad.jsonl", exit=6)["code"] == "invalid"
    assert here("backup", "bad.jsonl", exit=6)["code"] == "invalid"
    assert here("export", "no/such/folder.jsonl", exit=1)["code"] == "store"
    here("backup", "b")
    assert here("restore", "b", exit=4)["code"] == "precondition"
    for words in (("export", "x"), ("import", "bad.jsonl"), ("backup", "x"), ("restore", "b", "--force")):
        assert here.as_agent(*words, exit=5)["code"] == "not_allowed"
    assert here("list") == before and not (here.folder / "x").exists()


def test_an_export_to_a_pipe_is_the_file(here: Turn) -> None:
    here("create", "Umlaute: “ü”")
    here("export", "x.jsonl")
    assert here.run("export").stdout == (here.folder / "x.jsonl").read_text()


def test_a_worker_is_refused_after_a_restore(here: Turn) -> None:
    here("create", "Work")
    here("backup", "b")
    token = here.as_agent("next", "--claim", "--worker-id", "w1")["claim"]["token"]
    here("restore", "b", "--force")
    for verb in ("complete", "heartbeat", "release", "park"):
        assert here.as_agent(verb, "PROJ-1", "--claim", token, exit=4)["code"] == "claim_lost"
    assert here.state("PROJ-1") == "ready"


def test_an_imported_question_names_no_tracker_as_the_agent_that_continues(turn: Turn, tmp_path: Path) -> None:
    folder = tmp_path / ".tick" / "issues"
    folder.mkdir(parents=True)
    tick = {"id": "k7q", "title": "Reset", "status": "open", "awaiting": "approval", "created_at": "2026-01-01T00:00:00Z"}
    (folder / "k7q.json").write_text(json.dumps(tick))
    turn("import", str(tmp_path))
    shown = turn.text("show", "k7q")
    question, _, hints = shown.partition("Next:")
    assert "asked by ticks" in question
    assert "an agent" in hints and "ticks" not in hints
