"""The permission gate: which questions tool calls ask, and that only an approval allows a call."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TURN
from yourturn import strict
from yourturn.client import Client
from yourturn.config import connect, init
from yourturn.core.canonical_json import digest
from yourturn.core.errors import Invalid, StoreTrouble
from yourturn.core.model import Who
from yourturn.worker.claude import hook_question, hook_socket, permission_gate
from yourturn.worker.claude.patterns import concerns, gated, matches

SESSION = "7b1c0f6e-5a34-4a53-8f5e-0d9a3a1f2c11"
GATED = json.dumps(["Bash(git push*)", "Write", "mcp__github__*"])


def payload(name: str, given: dict[str, Any], call: str = "toolu_01", **more: Any) -> dict[str, Any]:
    return {
        "session_id": SESSION, "transcript_path": "/t.jsonl", "cwd": "/home/ana/shop", "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": name, "tool_input": given, "tool_use_id": call, **more,
    }  # fmt: skip


PUSH = payload("Bash", {"command": "git push origin main", "description": "Publish"})
PLAN = payload("ExitPlanMode", {"plan": "1. Write it\n2. Test it"})
WHICH = {
    "question": "Which database?", "header": "Database", "multiSelect": False,
    "options": [{"label": "Postgres", "description": "a server"}, {"label": "SQLite", "description": "a file"}],
}  # fmt: skip
WHAT = {
    "question": "Which extras?", "header": "Extras", "multiSelect": True,
    "options": [{"label": "Search", "description": ""}, {"label": "Mail", "description": ""}],
}  # fmt: skip
ASKED = payload("AskUserQuestion", {"questions": [WHICH, WHAT]})
TOLD = payload("mcp__yourturn__ask_question", {"question": "JWT or sessions?", "type": "blocking", "responseType": "text"})


class Gate:
    """A task that an agent holds, and the gate for its calls."""

    def __init__(self, desk: Client, agent: Client) -> None:
        self.desk, self.agent = desk, agent
        self.task = desk.create("Ship it")["key"]
        self.env = {"YOURTURN_TASK": self.task, "YOURTURN_AGENT": "coder", "YOURTURN_GATED": GATED, "YOURTURN_ASK_WAIT": "0"}
        self.claim()

    def claim(self) -> None:
        self.env["YOURTURN_CLAIM"] = self.agent.claim(self.task, "w1")["claim"]["token"]

    def park(self) -> None:
        self.agent.park(self.env["YOURTURN_CLAIM"])

    def __call__(self, said: dict[str, Any], **env: str) -> tuple[str, str, Any]:
        """decision, reason, updated input; ("", "", None) leaves it to Claude Code."""
        found = permission_gate.hook(self.agent, said, {**self.env, **env})
        if found is None:
            return "", "", None
        inside = found["hookSpecificOutput"]
        assert set(found) == {"hookSpecificOutput"} and inside["hookEventName"] == "PreToolUse"
        return inside["permissionDecision"], inside["permissionDecisionReason"], inside.get("updatedInput")

    def questions(self) -> list[dict[str, Any]]:
        return list(self.desk.show(self.task)["questions"])


@pytest.fixture
def at(desk: Client, agent: Client) -> Gate:
    return Gate(desk, agent)


@contextmanager
def meanwhile(
    open_desk: Callable[..., Client], move: Callable[[Client, list[dict[str, Any]]], None], n: int = 1
) -> Iterator[None]:
    """A person who acts as soon as n questions are on the desk."""
    person, wrong = open_desk("human:bob"), []

    def act() -> None:
        try:
            for _ in range(1000):
                found = person.inbox()
                if len(found) >= n:
                    return move(person, sorted(found, key=lambda q: int(q["id"][1:])))
                person.desk.wait(0.05)
        except BaseException as trouble:
            wrong.append(trouble)

    thread = threading.Thread(target=act)
    thread.start()
    yield
    thread.join(20)
    assert not thread.is_alive() and wrong == []


# --- news ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("yes", [True, False])
def test_news_comes_with_the_parked_call_only(at: Gate, yes: bool) -> None:
    assert at(PUSH)[0] == "defer"
    (q,) = at.questions()
    news = json.dumps([["", "", "ana said: use TLS"], [q["id"], "toolu_01", "Answer to Q1: Yes"], ["Q9", "", "Answer to Q9: No"]])

    def context(said: dict[str, Any], given: str = news) -> Any:
        found = permission_gate.hook(at.agent, said, {**at.env, "YOURTURN_NEWS": given})
        return found and found["hookSpecificOutput"].get("additionalContext")

    assert context(PUSH) is None, "it is parked again, and reads nothing"
    at.desk.approve(q["id"]) if yes else at.desk.reject(q["id"], "Not on a Friday")
    other = payload(
        "mcp__yourturn__ask_question", {"question": "Loud?", "type": "non_blocking", "defaultResponse": True}, "toolu_02"
    )
    assert context(other) is None, "that is another call"
    assert context(PUSH, "[1]") is None and context(PUSH, "{") is None
    assert context(PUSH) == "While you waited, people said:\n\nana said: use TLS\n\nAnswer to Q9: No"
    changed = {**PUSH, "tool_input": {"command": "git push --force"}}
    assert "Answer to Q1: Yes" in context(changed), "the call was refused as another one: so its answer is told, too"


def test_text_of_an_approval_is_reported(at: Gate) -> None:
    """Claude Code does not show the model the reason of an allowed call."""
    at(PUSH)
    (q,) = at.questions()
    at.desk.approve(q["id"], "but slowly")
    news = json.dumps([[q["id"], "toolu_01", "Answer to Q1: Yes. but slowly"]])
    found = permission_gate.hook(at.agent, PUSH, {**at.env, "YOURTURN_NEWS": news})
    assert found and "Yes. but slowly" in found["hookSpecificOutput"]["additionalContext"]


# --- permissions ------------------------------------------------------------------------------------------------------


def test_a_gated_call_parks_and_the_answer_lets_it_run(at: Gate) -> None:
    decision, reason, _ = at(PUSH)
    assert decision == "defer" and "Q1" in reason
    (q,) = at.questions()
    assert (q["kind"], q["blocking"], q["asked_by"], q["metadata"]) == (
        "permission", True, "agent:coder", {"session": SESSION, "call": "toolu_01"},
    )  # fmt: skip
    assert q["action"] == {"tool": "Bash", "input": PUSH["tool_input"], "folder": "/home/ana/shop"}
    assert "git push origin main" in q["text"] and "/home/ana/shop" in q["text"]
    assert at(PUSH)[0] == "defer" and len(at.questions()) == 1, "asked again it is the same question"
    at.park()
    at.desk.approve("Q1", "go on")
    at.claim()
    assert at(PUSH) == ("allow", "ana said yes to Q1: go on", None)
    assert at.questions()[0]["used_by"] == f"{SESSION}/toolu_01"
    assert at(PUSH)[0] == "allow", "a crash before it ran can ask again for the same call"
    assert strict.examine(at.desk) == []


def test_each_call_is_a_question_of_its_own(at: Gate) -> None:
    at(PUSH)
    at.desk.approve("Q1")
    assert at(PUSH)[0] == "allow"
    assert at({**PUSH, "tool_use_id": "toolu_02"})[0] == "defer"
    assert at({**PUSH, "session_id": "another"})[0] == "defer"
    assert [q["status"] for q in at.questions()] == ["answered", "pending", "pending"]


def test_other_input_with_the_same_ids_is_refused(at: Gate) -> None:
    at(PUSH)
    at.desk.approve("Q1")
    for other in (
        {**PUSH, "tool_input": {"command": "git push --force", "description": "Publish"}},
        {**PUSH, "cwd": "/elsewhere"},
        {**PUSH, "tool_name": "Write"},
        {**PUSH, "tool_input": {**PUSH["tool_input"], "timeout": 1}},
    ):
        decision, reason, _ = at(other)
        assert decision == "deny" and "already put to a person" in reason
    assert at.questions()[0]["used_by"] is None
    assert at(PUSH)[0] == "allow"


def test_rejection_has_the_persons_reason(at: Gate) -> None:
    at(PUSH)
    at.desk.reject("Q1", "not on a Friday")
    assert at(PUSH) == ("deny", "ana said no to Q1: not on a Friday", None)
    assert at(PUSH)[0] == "deny"


def test_edited_input_runs_instead(at: Gate) -> None:
    at(PUSH)
    dry = {"command": "git push --dry-run"}
    at.desk.approve("Q1", value={"tool": "Bash", "input": dry, "folder": "/home/ana/shop"})
    decision, reason, updated = at(PUSH)
    assert (decision, updated) == ("allow", dry) and "changed" in reason
    used = at.desk.history(at.task)[-1]
    changed = digest({"tool": "Bash", "input": dry, "folder": "/home/ana/shop"})
    assert used["data"]["digest"] == changed != at.questions()[0]["digest"]
    assert at(PUSH)[2] == dry


def test_timeout_is_reported_and_allows_nothing(at: Gate, clock: Any) -> None:
    at(PUSH)
    clock.advance(minutes=16)
    decision, reason, _ = at(PUSH)
    assert decision == "deny" and "Nobody answered Q1" in reason and "said no" not in reason
    assert at.questions()[0]["status"] == "timeout"


def test_question_withdrawn_by_a_person_allows_nothing(at: Gate) -> None:
    at(PUSH)
    at.desk.withdraw("Q1", "wrong branch")
    decision, reason, _ = at(PUSH)
    assert decision == "deny" and "wrong branch" in reason


def test_hook_waits_for_a_quick_answer(at: Gate, open_desk: Callable[..., Client]) -> None:
    started = time.monotonic()
    with meanwhile(open_desk, lambda bob, found: bob.approve(found[0]["id"]) and None):
        assert at(PUSH, YOURTURN_ASK_WAIT="30")[0] == "allow"
    assert time.monotonic() - started < 15


def test_restore_voids_earlier_permissions(at: Gate) -> None:
    at(PUSH)
    at.desk.approve("Q1")
    at.desk.do("restore")
    at.claim()
    decision, reason, _ = at(PUSH)
    assert decision == "deny" and "restored" in reason
    assert at.questions()[0]["used_by"] is None


def test_lost_claim_allows_nothing(at: Gate, clock: Any) -> None:
    at(PUSH)
    at.desk.approve("Q1")
    clock.advance(hours=2)
    at.agent.claim(at.task, "w2")
    decision, reason, _ = at(PUSH)
    assert decision == "deny" and "claim" in reason
    decision, reason, _ = at({**PUSH, "tool_use_id": "toolu_02"})
    assert decision == "deny" and "claim" in reason
    assert len(at.questions()) == 1 and at.questions()[0]["used_by"] is None


def test_ended_task_asks_and_allows_nothing(at: Gate) -> None:
    at(PUSH)
    at.desk.approve("Q1")
    at.desk.cancel(at.task)
    assert at(PUSH)[0] == "deny"
    decision, reason, _ = at({**PUSH, "tool_use_id": "toolu_02"})
    assert decision == "deny" and "no person could be asked" in reason


def test_eight_hooks_for_one_call_ask_one_question(at: Gate) -> None:
    found: list[str] = []
    crowd = [threading.Thread(target=lambda: found.append(at(PUSH)[0])) for _ in range(8)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join(30)
    assert found == ["defer"] * 8 and len(at.questions()) == 1


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("Write", {"file_path": "/a.py", "content": "x" * 12}, "Write /a.py (12 characters)?"),
        ("Edit", {"file_path": "/a.py", "old_string": "a", "new_string": "b"}, "Change /a.py?"),
        ("WebFetch", {"url": "https://example.org"}, "Let WebFetch go to https://example.org?"),
        ("mcp__github__merge", {"number": 7}, "Let mcp__github__merge run with this input?"),
    ],
)
def test_question_describes_the_call(at: Gate, name: str, given: dict[str, Any], words: str) -> None:
    at(payload(name, given), YOURTURN_GATED='["*"]')
    assert at.questions()[0]["text"] == words


# --- questions of the agent -------------------------------------------------------------------------------------------


def test_ask_user_question_is_one_group(at: Gate) -> None:
    assert at(ASKED)[0] == "defer"
    first, second = at.questions()
    assert (first["kind"], first["response_type"], first["multi"], first["allow_other"]) == ("input", "choice", False, True)
    assert second["multi"] and first["group"] == second["group"] == "hook/toolu_01"
    assert first["context"] == {"header": "Database"}
    assert [(o["label"], o["description"]) for o in first["options"]] == [("Postgres", "a server"), ("SQLite", "a file")]
    at.desk.answer("Q1", "sqlite")
    assert at(ASKED)[0] == "defer", "one of two"
    at.desk.answer("Q2", ["Mail", "A calendar"])
    decision, _, updated = at(ASKED)
    assert decision == "allow"
    assert updated == {
        "questions": [WHICH, WHAT],
        "answers": {"Which database?": "SQLite", "Which extras?": "Mail, A calendar"},
    }
    assert len(at.questions()) == 2 and strict.examine(at.desk) == []


def test_quick_answers_to_a_group_continue_the_session(at: Gate, open_desk: Callable[..., Client]) -> None:
    def answer(bob: Client, found: list[dict[str, Any]]) -> None:
        bob.answer(found[1]["id"], "Search")
        bob.answer(found[0]["id"], "Neither: use files", "for now")

    with meanwhile(open_desk, answer, 2):
        decision, _, updated = at(ASKED, YOURTURN_ASK_WAIT="30")
    assert decision == "allow"
    assert updated["answers"] == {"Which database?": "Neither: use files (for now)", "Which extras?": "Search"}
    assert at.desk.show(at.task)["state"] == "working", "straight on under the same claim"


def test_rejection_of_one_question_in_a_group_has_its_reason(at: Gate) -> None:
    at(ASKED)
    at.desk.reject("Q2", "Stop this")
    decision, reason, _ = at(ASKED)
    assert decision == "deny" and reason == "ana said no to Q2: Stop this"


def test_unusual_labels_keep_their_value(at: Gate) -> None:
    long = "x" * 200
    odd = {**WHICH, "options": [{"label": long}, {"label": "two\nlines"}, {"label": "two lines"}, {"nolabel": 1}]}
    said = payload("AskUserQuestion", {"questions": [odd]})
    assert at(said)[0] == "defer"
    assert [o["id"] for o in at.questions()[0]["options"]] == ["1", "2", "3"]
    at.desk.answer("Q1", "2")
    assert at(said)[2]["answers"] == {"Which database?": "two\nlines"}


@pytest.mark.parametrize(
    "given", [{}, {"questions": []}, {"questions": "?"}, {"questions": [{}]}, {"questions": [{"question": " "}]}]
)
def test_malformed_questions_are_denied_with_a_reason(at: Gate, given: dict[str, Any]) -> None:
    decision, reason, _ = at(payload("AskUserQuestion", given))
    assert decision == "deny" and reason and at.questions() == []


def test_a_plan_is_a_checkpoint(at: Gate) -> None:
    assert at(PLAN)[0] == "defer"
    (q,) = at.questions()
    assert (q["kind"], q["context"]) == ("checkpoint", {"plan": "1. Write it\n2. Test it"})
    at.desk.approve("Q1")
    assert at(PLAN)[0] == "allow"
    again = {**PLAN, "tool_use_id": "toolu_02"}
    at(again)
    at.desk.reject("Q2", "test first")
    assert at(again)[:2] == ("deny", "ana said no to Q2: test first")


def test_hook_and_tool_share_one_question(at: Gate) -> None:
    assert at(TOLD)[0] == "defer"
    at.desk.answer("Q1", "JWT")
    assert at(TOLD)[0] == "allow"
    fields = {**hook_question.question_fields(TOLD["tool_input"]), **hook_question.identity_of(SESSION, "toolu_01")}
    found = at.agent.ask(at.task, claim=at.env["YOURTURN_CLAIM"], **fields)
    assert (found["id"], found["response"]["value"]) == ("Q1", "JWT")


def test_own_tool_is_allowed_if_nothing_blocks(at: Gate) -> None:
    quiet = {"question": "Verbose?", "type": "non_blocking", "responseType": "boolean", "defaultResponse": {"value": False}}
    assert at(payload("mcp__yourturn__ask_question", quiet))[0] == "allow"
    assert at(TOLD, YOURTURN_TASK="")[0] == "allow"
    assert at.questions() == []


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"type": "blocking", "responseType": "text"}, {"kind": "input", "blocking": True, "response_type": "text"}),
        ({"type": "non_blocking", "responseType": "boolean", "defaultResponse": {"type": "boolean", "value": True}},
         {"kind": "input", "blocking": False, "default": True}),
        ({"type": "approval", "responseType": "approval", "timeoutMinutes": 20}, {"kind": "permission", "urgency": "high"}),
        ({"type": "error_recovery", "responseType": "choice", "options": [{"label": "Try again", "value": "retry"}]},
         {"kind": "recovery", "response_type": "choice"}),
        ({"context": {"currentStep": "login"}}, {"kind": "input", "context": {"currentStep": "login"}}),
    ],
    ids=["blocking", "non_blocking", "approval", "error_recovery", "context"],
)  # fmt: skip
@pytest.mark.parametrize("dialect", ["sqlite"])
def test_the_arguments_of_ask_question(at: Gate, arguments: dict[str, Any], wanted: dict[str, Any]) -> None:
    q = at.agent.ask(at.task, **hook_question.question_fields({"question": "Well?", **arguments}))
    assert {name: q[name] for name in wanted} == wanted
    if "timeoutMinutes" in arguments:
        assert q["timeout_at"] is not None


# --- parallel calls ---------------------------------------------------------------------------------------------------


def test_questions_of_dropped_calls_are_withdrawn(at: Gate) -> None:
    write = payload("Write", {"file_path": "/a", "content": "b"}, "toolu_02")
    for said in (PUSH, write, {**PLAN, "tool_use_id": "toolu_03"}):
        assert at(said)[0] == "defer"
    lost = permission_gate.questions_of_calls(at.agent, at.task, SESSION, ["toolu_01", "toolu_03"])
    assert [q["id"] for q in lost] == ["Q1", "Q3"]
    gone = permission_gate.withdraw_superseded(at.agent, lost, "superseded by toolu_02", claim=at.env["YOURTURN_CLAIM"])
    assert [q["id"] for q in gone] == ["Q1"]
    task = at.desk.show(at.task)
    assert [q["status"] for q in task["questions"]] == ["cancelled", "pending", "pending"]
    assert [note["text"] for note in task["notes"]] == ["Q3 is not needed any more: superseded by toolu_02"]
    assert permission_gate.withdraw_superseded(at.agent, lost[:1], "again", claim=at.env["YOURTURN_CLAIM"]) == []


# --- who is asking ----------------------------------------------------------------------------------------------------


def test_without_a_worker_each_session_has_a_draft_task(at: Gate, desk: Client) -> None:
    outside = {"YOURTURN_TASK": "", "YOURTURN_CLAIM": ""}
    assert at(PUSH, **outside)[0] == "defer"
    assert at(PLAN | {"tool_use_id": "toolu_02"}, **outside)[0] == "defer"
    first, second = (q["task"] for q in desk.inbox())
    assert first == second != at.task
    made = desk.show(first)
    assert made["title"] == f"Claude Code in shop, session {SESSION[:8]}"
    desk.approve("Q1")
    desk.approve("Q2")
    assert desk.ready() == [] and at(PUSH, **outside)[0] == "allow"


def test_hook_always_acts_as_an_agent(address: str, desk: Client) -> None:
    with permission_gate.connect_as_agent({"YOURTURN_DB": address, "USER": "ana"}) as found:
        assert (found.who.name, found.who.role) == ("agent:claude", "agent")
    with permission_gate.connect_as_agent({"YOURTURN_DB": address, "YOURTURN_AGENT": "coder"}) as found:
        assert found.who.name == "agent:coder"
    desk.set_user("bob", "admin")
    token = desk.create_token("bob", "admin", actor="human:bob")["token"]
    with permission_gate.connect_as_agent({"YOURTURN_DB": address, "YOURTURN_TOKEN": token}) as found:
        assert (found.who.name, found.who.role) == ("agent:bob", "agent")
    assert permission_gate.as_agent(desk).who == Who("agent:ana", "agent", direct=True)


# --- patterns ---------------------------------------------------------------------------------------------------------

RUNS = (
    "git push", "git push origin main", "cd /x && git push", "git  push -f", "sudo git push", "FOO=1 git push", "(git push)",
    "echo hi; git push", "true || git push", "x=$(git push)", "`git push`", "git commit\ngit push", "/usr/bin/git push",
    "bash -c 'git push'", "g'i't push", "git \\\n push", "echo git push",
)  # fmt: skip


@pytest.mark.parametrize("command", RUNS)
def test_pattern_matches_anywhere_in_a_command(command: str) -> None:
    assert matches("Bash", {"command": command}, ["Bash(git push*)"])


@pytest.mark.parametrize(
    "command", ["git pull", "git pushups" * 0 + "git status", "ls push", "legit push" * 0 + "digit push", ""]
)
def test_pattern_does_not_match_other_commands(command: str) -> None:
    assert not matches("Bash", {"command": command}, ["Bash(git push*)"])


@pytest.mark.parametrize(
    ("pattern", "name", "given", "found"),
    [
        ("Write", "Write", {"file_path": "/a"}, True),
        ("Write", "WriteMore", {}, False),
        ("Write", "write", {}, False),
        ("mcp__*", "mcp__github__merge", {}, True),
        ("mcp__*", "Bash", {"command": "mcp__"}, False),
        ("*", "Anything", {}, True),
        ("Bash", "Bash", {"command": "ls"}, True),
        ("Bash()", "Bash", {"command": "ls"}, True),
        ("Bash(*)", "Bash", {"command": "ls"}, True),
        ("Bash(rm:*)", "Bash", {"command": "rm -rf /"}, True),
        ("Bash(make deploy)", "Bash", {"command": "make deploy && date"}, True),
        ("Bash(make deploy)", "Bash", {"command": "make deploy-docs"}, False),
        ("Bash(*prod*)", "Bash", {"command": "kubectl -n prod get pods"}, True),
        ("Bash(git push*)", "Bash", {"command": "x " * 60_000 + "&& git push"}, True),
        ("Bash(git push*)", "Bash", {"command": "x " * 60_000}, False),
        ("Edit(/etc/*)", "Edit", {"file_path": "/etc/hosts"}, True),
        ("Edit(/etc/*)", "Edit", {"file_path": "/home/etc/hosts"}, False),
        ("WebFetch(https://*.example.org/*)", "WebFetch", {"url": "https://a.example.org/x"}, True),
        ("mcp__github__merge(*7*)", "mcp__github__merge", {"number": 7}, True),
        ("mcp__github__merge(*8*)", "mcp__github__merge", {"number": 7}, False),
    ],
)
def test_patterns(pattern: str, name: str, given: dict[str, Any], found: bool) -> None:
    assert matches(name, given, [pattern]) is found


def test_unreadable_patterns_gate_everything(at: Gate) -> None:
    assert gated(None) == gated("") == gated("[]") == ()
    for broken in ("{", "7", '["Bash(", 3]', "[" * 100_000, '[""]'):
        assert gated(broken) is None and concerns("Read", {}, gated(broken))
    decision, reason, _ = at(payload("Read", {"file_path": "/a"}), YOURTURN_GATED="{")
    assert decision == "deny" and "YOURTURN_GATED" in reason


def test_a_long_command_is_searched_in_time() -> None:
    started = time.monotonic()
    long = {"command": "git pus " * 50_000}
    assert not matches("Bash", long, ["Bash(git push*)", "Bash(*a*b*c*)"])
    assert matches("Bash", long, ["Bash(git p*s*h*x)"]), "too much to look at: a person does"
    assert time.monotonic() - started < 5


def test_calls_that_are_not_gated_get_no_decision(at: Gate) -> None:
    assert at(payload("Read", {"file_path": "/a"})) == ("", "", None)
    assert at(payload("Bash", {"command": "ls"})) == ("", "", None)
    assert at({"tool_name": "Read"}) == ("", "", None)
    assert at(PUSH | {"hook_event_name": "PostToolUse"}) == ("", "", None)
    assert at.questions() == []


@pytest.mark.parametrize(
    "bad",
    [
        {"session_id": None}, {"session_id": "a b"}, {"session_id": "x" * 100}, {"tool_use_id": ""}, {"tool_use_id": 7},
        {"tool_input": "git push"},
    ],
    ids=str,
)  # fmt: skip
def test_gated_call_without_ids_is_denied(at: Gate, bad: dict[str, Any]) -> None:
    decision, reason, _ = at({**PUSH, **bad}, YOURTURN_GATED='["Bash"]')
    assert decision == "deny" and reason and at.questions() == []


@pytest.mark.parametrize(
    ("said", "wanted"), [(None, 45), ("", 45), ("0", 0), ("7.5", 7.5), ("900", 240), ("-3", 0), ("soon", 45), ("nan", 45)]
)
def test_ask_wait_is_parsed_and_limited(said: str | None, wanted: float) -> None:
    assert hook_question.ask_wait({} if said is None else {"YOURTURN_ASK_WAIT": said}) == wanted


# --- the socket -------------------------------------------------------------------------------------------------------


def test_hook_socket_is_private_to_its_user(at: Gate, tmp_path: Path) -> None:
    path = tmp_path / "gate"
    with permission_gate.serve(path, permission_gate.handler(at.desk, at.env)) as name:
        assert stat.S_IMODE(os.stat(name).st_mode) == 0o600 and os.listdir(tmp_path).count("gate") == 1
        assert hook_socket.call(name, PUSH, 20)["hookSpecificOutput"]["permissionDecision"] == "defer"  # type: ignore[index]
        assert hook_socket.call(name, payload("Read", {}), 20) is None
        assert at.questions()[0]["asked_by"] == "agent:ana", "never a person, whoever runs the worker"
        with pytest.raises(StoreTrouble):
            hook_socket.call(name, "x" * (hook_socket.LIMIT + 10), 20)  # type: ignore[arg-type]
        with pytest.raises(StoreTrouble, match="not a hook's request"):
            hook_socket.call(name, ["no object"], 20)  # type: ignore[arg-type]
    assert not path.exists()
    with pytest.raises(OSError):
        hook_socket.call(str(path), PUSH, 1)


def test_requests_on_the_socket_do_not_wait_for_each_other(tmp_path: Path) -> None:
    first, second = threading.Event(), threading.Event()

    def handle(said: dict[str, Any]) -> dict[str, Any] | None:
        if said["n"] == 1:
            first.set()
            assert second.wait(20)
        return {"n": said["n"]}

    found: list[Any] = []
    with permission_gate.serve(tmp_path / "g", handle) as name:
        slow = threading.Thread(target=lambda: found.append(hook_socket.call(name, {"n": 1}, 20)))
        slow.start()
        assert first.wait(20)
        assert hook_socket.call(name, {"n": 2}, 20) == {"n": 2}
        second.set()
        slow.join(20)
    assert found == [{"n": 1}]


def test_socket_path_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="must be short"), permission_gate.serve(tmp_path / ("x" * 120), lambda _: None):
        pass


# --- the command ------------------------------------------------------------------------------------------------------


def run(said: Any, env: dict[str, str], *more: str) -> tuple[int, Any, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
    given = said if isinstance(said, bytes) else json.dumps(said).encode()
    done = subprocess.run(
        [TURN, "hook", "claude", *more], input=given, env=clean | {"USER": "ana"} | env, capture_output=True, timeout=60
    )
    assert b"Traceback" not in done.stderr, done.stderr
    out = json.loads(done.stdout)["hookSpecificOutput"] if done.stdout.strip() else None
    return done.returncode, out, done.stderr.decode()


def test_hook_command_parks_and_allows(address: str, dialect: str) -> None:
    with connect(address, as_="human:ana", env={}) as desk:
        task = desk.create("Ship it")["key"]
        env = {
            "YOURTURN_DB": address,
            "YOURTURN_TASK": task,
            "YOURTURN_AGENT": "coder",
            "YOURTURN_GATED": GATED,
            "YOURTURN_ASK_WAIT": "0",
        }
        assert run(PUSH, env)[:2] == (0, {
            "hookEventName": "PreToolUse", "permissionDecision": "defer",
            "permissionDecisionReason": "A person was asked (Q1).",
        })  # fmt: skip
        desk.approve("Q1")
        assert run(PUSH, env)[1]["permissionDecision"] == "allow"
        assert run(PUSH | {"tool_use_id": "t2"}, env)[1]["permissionDecision"] == "defer"
        if dialect == "sqlite":
            assert run(PUSH | {"tool_use_id": "t3"}, env, "--as", "human:ana")[1]["permissionDecision"] == "deny"
            assert {q["asked_by"] for q in desk.show(task)["questions"]} == {"agent:coder"}


def test_hook_command_uses_the_workers_socket(at: Gate, tmp_path: Path) -> None:
    """The environment names no desk: only the worker has one."""
    with permission_gate.serve(tmp_path / "g", permission_gate.handler(at.agent, at.env)) as name:
        code, out, _ = run(PUSH, {"YOURTURN_GATE": name, "YOURTURN_GATED": GATED, "YOURTURN_DB": str(tmp_path / "none.db")})
    assert (code, out["permissionDecision"]) == (0, "defer") and len(at.questions()) == 1


@pytest.mark.parametrize(
    ("said", "env"),
    [
        (b"{not json", {}),
        (b"", {}),
        (b"[]", {}),
        (b"\xff\xfe", {}),
        (b"[" * 100_000, {}),
        (PUSH, {"YOURTURN_DB": "/nowhere/at/all.db"}),
        (PUSH, {"YOURTURN_DB": "postgresql://127.0.0.1:1/none"}),
        (PUSH, {"YOURTURN_DB": "/dev/null"}),
        (PUSH, {"YOURTURN_TOKEN": "made up"}),
        (PUSH, {"YOURTURN_TASK": "PROJ-99"}),
        (PUSH, {"YOURTURN_AGENT": "human:ana"}),
        (PUSH, {"YOURTURN_GATED": "{"}),
        (PUSH, {"YOURTURN_GATE": "/nowhere", "YOURTURN_DB": "/nowhere/at/all.db"}),
        (PLAN, {"YOURTURN_DB": "/nowhere/at/all.db"}),
    ],
    ids=[
        "json", "nothing", "list", "bytes", "deep", "no desk", "no server", "no database", "token", "task", "name", "gated",
        "gate", "plan",
    ],
)  # fmt: skip
@pytest.mark.parametrize("dialect", ["sqlite"])
def test_errors_deny_with_a_reason(address: str, said: Any, env: dict[str, str]) -> None:
    code, out, _ = run(said, {"YOURTURN_DB": address, "YOURTURN_GATED": GATED, "YOURTURN_ASK_WAIT": "0", **env})
    assert (code, out["permissionDecision"]) == (0, "deny")
    assert out["permissionDecisionReason"].startswith("This was not allowed, because no person could be asked: ")
    assert re.search(r"[a-z]{3}", out["permissionDecisionReason"][60:])


def test_errors_do_not_matter_for_calls_that_are_not_gated() -> None:
    code, out, errors = run(payload("Read", {"file_path": "/a"}), {"YOURTURN_DB": "/nowhere/at/all.db", "YOURTURN_GATED": GATED})
    assert (code, out, errors) == (0, None, "")


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_locked_desk_denies_with_a_reason(address: str) -> None:
    with connect(address, as_="human:ana", env={}) as desk:
        desk.create("Ship it")
        with desk.desk.store.begin() as lock:
            lock("UPDATE workspaces SET next_question = next_question")
            env = {"YOURTURN_DB": address, "YOURTURN_TASK": "PROJ-1", "YOURTURN_GATED": GATED, "YOURTURN_BUSY": "0.1"}
            code, out, _ = run(PUSH, env)
    assert (code, out["permissionDecision"]) == (0, "deny")


def test_hook_command_imports_few_modules(tmp_path: Path) -> None:
    """Imports dominate its run time: a call that is not gated, or that the worker answers, opens no desk."""
    script = (
        "import sys, io, os; from yourturn.cli.main import main\n"
        "sys.stdin = io.TextIOWrapper(io.BytesIO(sys.argv[1].encode()))\n"
        "assert main(['hook', 'claude']) == 0\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")} | {"YOURTURN_GATED": GATED}
    db = str(tmp_path / "yourturn.db")
    init(db, "PROJ", None, {"USER": "ana"})[0].close()
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(PUSH)], env=env | {"YOURTURN_DB": db, "YOURTURN_ASK_WAIT": "0"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "defer" in done.stdout, done.stderr
    assert not set(done.stderr.split()) & {
        "dataclasses",
        "inspect",
        "socket",
        "subprocess",
        "asyncio",
        "tomllib",
        "pathlib",
        "psycopg",
        "mcp",
    }
    with permission_gate.serve(tmp_path / "g", lambda said: None) as name:
        for said in (payload("Read", {}), PUSH):
            done = subprocess.run(
                [sys.executable, "-c", script, json.dumps(said)],
                env=env | {"YOURTURN_GATE": name},
                capture_output=True,
                text=True,
                timeout=60,
            )
            loaded = set(done.stderr.split())
            assert done.stdout == "" and "yourturn.worker.claude.patterns" in loaded, done.stderr
            assert not loaded & {
                "yourturn.client",
                "dataclasses",
                "yourturn.db.backend",
                "yourturn.core.rules",
                "sqlite3",
                "psycopg",
                "asyncio",
                "mcp",
            }
