"""Stories with Claude Code: a session asks, waits without a process, and continues with a person's answer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worker.workshop import DONE, TINY, Doubles, until
from yourturn.core.canonical_json import digest

WHICH = {
    "question": "Which database?", "header": "Database", "multiSelect": False,
    "options": [{"label": "Postgres", "description": "a server"}, {"label": "SQLite", "description": "a file"}],
}  # fmt: skip
EXTRAS = {"question": "Which extras?", "header": "Extras", "multiSelect": True, "options": [{"label": "Logs"}, {"label": "Mail"}]}
END = {"text": DONE}


@pytest.fixture
def shop(address: str, tmp_path: Path) -> Iterator[Doubles]:
    found = Doubles(tmp_path, address)
    yield found
    found.close()


def bash(command: str) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command}}


# --- questions --------------------------------------------------------------------------------------------------------


def test_question_parks_the_session_and_the_call_gets_the_answer(shop: Doubles) -> None:
    shop.repository()
    agent = shop.plays("claude", bash("echo half > half.txt"), {"ask": [WHICH, EXTRAS]}, bash("cat half.txt"), END)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    parked = shop.show(key)
    assert (parked["state"], parked["claim"], parked["retry_count"]) == ("human", None, 0)
    assert parked["session_id"] and parked["seat"]["parked"]
    one, many = parked["questions"]
    assert (one["text"], one["multi"], many["multi"], one["group"] == many["group"]) == ("Which database?", False, True, True)
    shop.desk.answer(one["id"], "SQLite")
    assert shop.show(key)["state"] == "human", "the other one is still open"
    shop.desk.answer(many["id"], ["Logs", "Mail"])
    assert shop.drain(agent) == [(key, "done")]
    brief, nothing = shop.prompts()
    assert brief and key in brief and nothing is None, "a parked session is woken without a prompt"
    log = shop.log(key)
    assert '\\"Which database?\\"=\\"SQLite\\"' in log and "Logs, Mail" in log
    task = shop.show(key)
    assert (task["session_id"], task["retry_count"]) == (parked["session_id"], 0)
    assert shop.git("show", f"{task['branch']}:half.txt") == "half\n"


def test_quick_answer_arrives_inside_the_session(shop: Doubles) -> None:
    shop.env["YOURTURN_ASK_WAIT"] = "25"
    agent = shop.plays("claude", {"ask": [WHICH]}, END)
    key = shop.task()
    with shop.draining(agent):
        shop.desk.answer(shop.asked(key)["id"], "SQLite")
    assert shop.show(key)["state"] == "done" and len(shop.prompts()) == 1
    assert [e["action"] for e in shop.desk.history(key)].count("claim") == 1


def test_answer_before_the_parked_process_ends_resumes_at_once(shop: Doubles) -> None:
    """The hook has stopped waiting, the session reports the park and lingers: the answer comes in between."""
    agent = shop.plays("claude", {"tools": [["AskUserQuestion", {"questions": [WHICH]}], ["Bash", {"command": "touch $SHOP/end; "
                       "until [ -e $SHOP/go ]; do sleep 0.02; done"}]]}, END)  # fmt: skip
    key = shop.task()
    with shop.draining(agent):
        until(lambda: (shop.folder / "end").exists(), "the hook's end")
        shop.desk.answer(shop.asked(key)["id"], "SQLite")
        shop.go()
    assert shop.show(key)["state"] == "done" and [p is None for p in shop.prompts()] == [False, True]
    assert [e["action"] for e in shop.desk.history(key)].count("claim") == 1


def test_own_tool_parks_and_returns_the_answer(shop: Doubles) -> None:
    asks: dict[str, Any] = {"question": "Which database?", "type": "blocking", "responseType": "choice"}
    asks["options"] = [{"id": "pg", "label": "Postgres"}, {"id": "lite", "label": "SQLite"}]
    agent = shop.plays("claude", {"tool": "mcp__yourturn__ask_question", "input": asks}, END)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    shop.desk.answer(shop.question(key)["id"], "lite", "It is small")
    assert shop.drain(agent) == [(key, "done")]
    assert len(shop.show(key)["questions"]) == 1, "hook and tool are one question"
    assert shop.prompts()[1] is None and "It is small" in shop.log(key)


@pytest.mark.parametrize("yes", [True, False])
def test_plan_is_approved_or_rejected(shop: Doubles, yes: bool) -> None:
    agent = shop.plays("claude", {"tool": "ExitPlanMode", "input": {"plan": "1. Read\n2. Write"}}, END)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    asked = shop.question(key)
    assert (asked["kind"], asked["context"]["plan"]) == ("checkpoint", "1. Read\n2. Write")
    shop.desk.approve(asked["id"], "Good") if yes else shop.desk.reject(asked["id"], "Tests come first")
    assert shop.drain(agent) == [(key, "done")]
    assert ("Tests come first" in shop.log(key)) is not yes and shop.prompts()[1] is None


# --- permissions ------------------------------------------------------------------------------------------------------

PUSH = 'echo pushed >> "$LEDGER"'
GATE = ("Bash(echo pushed*)",)


def test_allowed_command_runs_once(shop: Doubles) -> None:
    agent = shop.plays("claude", bash(PUSH), END, gate=GATE)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    asked, folder = shop.question(key), shop.show(key)["seat"]["folder"]
    action = {"tool": "Bash", "input": {"command": PUSH}, "folder": folder}
    assert (asked["kind"], asked["action"], asked["digest"]) == ("permission", action, digest(action))
    assert shop.done() == []
    shop.desk.approve(asked["id"])
    assert shop.drain(agent) == [(key, "done")]
    assert shop.done() == ["pushed"]
    (used,) = [e for e in shop.desk.history(key) if e["action"] == "use"]
    call = asked["metadata"]
    assert used["data"]["digest"] == asked["digest"] and f"{call['session']}/{call['call']}" in json.dumps(used["data"])


def test_repeated_command_asks_again(shop: Doubles) -> None:
    agent = shop.plays("claude", bash(PUSH), bash(PUSH), END, gate=GATE)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    shop.desk.approve(shop.question(key)["id"])
    assert shop.drain(agent) == [(key, "waiting")]
    assert shop.done() == ["pushed"], "one permission, one execution"
    shop.desk.reject(shop.question(key)["id"], "Once is enough")
    assert shop.drain(agent) == [(key, "done")] and shop.done() == ["pushed"]


def test_refused_command_does_not_run_and_has_a_reason(shop: Doubles) -> None:
    agent = shop.plays("claude", bash(PUSH), END, gate=GATE)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    shop.desk.reject(shop.question(key)["id"], "Not on a Friday")
    assert shop.drain(agent) == [(key, "done")]
    assert shop.done() == [] and "Not on a Friday" in shop.log(key)


def test_edited_input_runs_instead(shop: Doubles) -> None:
    agent = shop.plays("claude", bash(PUSH), END, gate=GATE)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    asked = shop.question(key)
    edited = {**asked["action"], "input": {"command": 'echo dry >> "$LEDGER"'}}
    shop.desk.approve(asked["id"], value=edited)
    assert shop.drain(agent) == [(key, "done")]
    assert shop.done() == ["dry"]


def test_superseded_call_is_withdrawn_with_a_reason(shop: Doubles) -> None:
    first, second = {"command": PUSH}, {"command": 'echo pushed-too >> "$LEDGER"'}
    agent = shop.plays("claude", {"tools": [["Bash", first], ["Bash", second]]}, END, gate=GATE)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    dropped, kept = shop.show(key)["questions"]
    assert (dropped["status"], kept["status"]) == ("cancelled", "pending")
    assert "several" in dropped["close_reason"]
    shop.desk.approve(kept["id"])
    assert shop.drain(agent) == [(key, "done")] and shop.done() == ["pushed-too"]


# --- trouble ----------------------------------------------------------------------------------------------------------


def test_lost_session_restarts_with_the_whole_history(shop: Doubles) -> None:
    agent = shop.plays("claude", {"ask": [WHICH]}, END)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    before = shop.show(key)["session_id"]
    shop.forget("claude")
    shop.steps(END)
    shop.desk.answer(shop.question(key)["id"], "SQLite")
    assert shop.drain(agent) == [(key, "done")]
    _, woken, brief = shop.prompts()
    assert woken is None and brief is not None
    assert "session that worked on this before is gone" in brief and "Which database?" in brief and "SQLite" in brief
    after = shop.show(key)
    assert after["session_id"] != before and after["retry_count"] == 0


def test_deleted_folder_keeps_the_session(shop: Doubles) -> None:
    shop.repository()
    agent = shop.plays("claude", bash("echo half > half.txt"), {"ask": [WHICH]}, bash("cat half.txt"), END)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    shutil.rmtree(shop.show(key)["seat"]["folder"])
    shop.desk.answer(shop.question(key)["id"], "SQLite")
    assert shop.drain(agent) == [(key, "done")]
    assert shop.prompts()[1:] == [None], "the same session went on"
    assert shop.git("show", f"{shop.show(key)['branch']}:half.txt") == "half\n"


def test_session_id_in_use_is_replaced(shop: Doubles) -> None:
    taken = 'if ! [ -e "$SHOP/once" ]; then touch "$SHOP/once"; echo "Error: Session ID x is already in use." >&2; exit 1; fi'
    agent = shop.plays("claude", END, before=taken)
    key = shop.task()
    assert shop.drain(agent) == [(key, "done")]
    assert len(shop.prompts()) == 1 and shop.show(key)["retry_count"] == 0


def test_crash_costs_a_retry_and_keeps_the_session(shop: Doubles) -> None:
    agent = shop.plays("claude", {"crash": "SIGKILL"}, {"crash": 3}, END)
    key = shop.task()
    assert shop.drain(agent) == [(key, "released"), (key, "released"), (key, "done")]
    assert shop.show(key)["retry_count"] == 2 and len(list((shop.folder / "claude").rglob("*.jsonl"))) == 1


def test_missing_login_asks_a_person(shop: Doubles) -> None:
    agent = shop.plays("claude", {"api_error": 401}, END)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    asked, task = shop.question(key), shop.show(key)
    assert (asked["kind"], asked["reason"], task["retry_count"]) == ("escalation", "access_required", 0)
    assert "Invalid API key" in asked["text"]
    shop.desk.approve(asked["id"], "I have logged in")
    assert shop.drain(agent) == [(key, "done")]


@pytest.mark.parametrize("status", [429, 529])
def test_overloaded_service_costs_a_retry(shop: Doubles, status: int) -> None:
    agent = shop.plays("claude", {"api_error": status}, END)
    key = shop.task()
    assert shop.drain(agent) == [(key, "released"), (key, "done")]
    assert shop.show(key)["retry_count"] == 1


def test_missing_mcp_server_keeps_the_parked_call(shop: Doubles) -> None:
    """Its tool is missing when the session is resumed; when it is back, the call continues."""
    config = shop.folder / "servers.json"
    program, *words = TINY.split()
    answers = json.dumps({"send": "The mail was sent"})
    config.write_text(json.dumps({"mcpServers": {"mail": {"command": program, "args": [*words, answers]}}}))
    agent = shop.plays(
        "claude", {"tool": "mcp__mail__send", "input": {"to": "bob"}}, END, gate=("mcp__mail__*",),
        before='[ -e "$SHOP/there" ] || { touch "$SHOP/there"; exec "%s" "$@"; }' % (shop.bin / "claude"),
        after=f'--mcp-config "{config}"',
    )  # fmt: skip
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    shop.desk.approve(shop.question(key)["id"])
    (shop.folder / "there").unlink()
    assert shop.drain(agent) == [(key, "released"), (key, "done")]
    assert shop.prompts()[1:] == [None, None] and "The mail was sent" in shop.log(key)


def test_mcp_server_that_stays_away_asks_a_person(shop: Doubles) -> None:
    agent = shop.plays("claude", {"tool": "mcp__mail__send", "input": {"to": "bob"}}, END, gate=("mcp__mail__*",))
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    shop.desk.approve(shop.question(key)["id"])
    assert shop.drain(agent) == [(key, "released")] * 3
    asked, task = shop.question(key), shop.show(key)
    assert (asked["reason"], task["seat"]["parked"]) == ("retry_exhausted", True)


def test_hooks_use_the_worker_on_postgres(shop: Doubles, dialect: str) -> None:
    """The hook cannot reach the database: on PostgreSQL it uses the worker, elsewhere it denies."""
    agent = shop.plays("claude", bash(PUSH), END, gate=GATE, before="export YOURTURN_DB=/nowhere/at/all.db")
    key = shop.task()
    if dialect == "sqlite":
        assert shop.drain(agent) == [(key, "done")]
        assert "no person could be asked" in shop.log(key)
    else:
        assert shop.drain(agent) == [(key, "waiting")]
        shop.desk.approve(shop.question(key)["id"])
        assert shop.drain(agent) == [(key, "done")]
    assert shop.done() == ["pushed"] * (dialect == "postgres")
