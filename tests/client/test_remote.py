"""The desk over HTTP: the same methods, values, errors and exit codes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading

import pytest

from tests.conftest import TURN
from yourturn.client import Client
from yourturn.config import connect
from yourturn.core import permissions
from yourturn.core.errors import AlreadyClosed, Changed, ClaimLost, Invalid, NotAllowed, NotFound, NotKnown, StoreTrouble, Usage
from yourturn.core.model import Who


@pytest.fixture
def reach(site):
    opened = []

    def make(role: str = "admin", **env: str) -> Client:
        opened.append(connect(site.url, project="PROJ", env={"YOURTURN_TOKEN": site.token(role), **env}))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


@pytest.fixture
def turn(site, tmp_path):
    """turn('show', key, role='viewer'): the command, speaking to the server."""

    def say(*words: str, role: str = "admin", ok: int = 0, **env: str):
        base = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
        known = {"YOURTURN_URL": site.url, "YOURTURN_TOKEN": site.token(role), "YOURTURN_PROJECT": "PROJ", **env}
        done = subprocess.run(
            [TURN, *words, "--json"], env=base | known, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == ok, done.stderr
        return json.loads(done.stdout if ok in (0, 7) else done.stderr)

    return say


def test_values_are_the_same(site, reach):
    desk, here = reach(), site.desk
    task = desk.create("Add login", description="E-mail", priority=1, labels=["web"])
    assert task == here.show(task["key"]) and task["created_by"].startswith("human:admin")
    assert desk.show(task["key"]) == here.show(task) and desk.show(task) == task
    asked = desk.ask(task, "JWT or sessions?", options=["jwt", "sessions"], timeout="10m")
    assert asked == here.show(asked["id"])
    assert desk.inbox(task=task) == here.inbox(task=task["key"])
    assert desk.answer(asked, "jwt")["response"] == here.show(asked["id"])["response"]
    assert desk.history(task) == here.history(task["key"])
    assert desk.counts() == here.counts() and desk.projects() == here.projects() and desk.users() == here.users()
    assert desk.tree(task) == here.tree(task["key"])
    assert desk.who == Who(task["created_by"], "admin") and desk.project == "PROJ"


def test_errors_are_the_same(site, reach, job):
    desk, agent = reach(), reach("agent")
    with pytest.raises(NotFound, match="There is no task PROJ-99999"):
        desk.show("PROJ-99999")
    with pytest.raises(NotAllowed, match="cannot") as error:
        agent.approve(job)
    assert error.value.exit_code == 5
    question = agent.ask(job, "Which?", options=["a"])
    with pytest.raises(Invalid, match="takes one of"):
        desk.answer(question, "z")
    desk.answer(question, "a")
    with pytest.raises(AlreadyClosed, match="human:admin"):
        desk.answer(question, "a")
    with pytest.raises(Changed):
        desk.at_version(0).cancel(job)
    with pytest.raises(ClaimLost):
        agent.complete("PROJ-1.1.abc", "done")
    for wrong in (lambda: desk.create("A", nonsense=1), lambda: desk.list(limit="many"), lambda: desk.show()):
        with pytest.raises((Invalid, TypeError)):
            wrong()
    for elsewhere in (lambda: desk.backup("/tmp/x"), lambda: desk.export("x"), lambda: desk.do("note"), lambda: desk.desk.store):
        with pytest.raises(Usage):
            elsewhere()


def test_the_identity_comes_from_the_credential(site, reach):
    with pytest.raises(NotKnown):
        connect(site.url, env={"YOURTURN_TOKEN": "yt_wrong"})
    with pytest.raises(NotKnown):
        connect(site.url, env={})
    with pytest.raises(NotAllowed, match="the credential decides"):
        connect(site.url, as_="human:somebody", env={"YOURTURN_TOKEN": site.token("admin")})
    worker = reach(YOURTURN_AGENT="coder")
    assert worker.who == Who("agent:coder", "agent")
    assert reach().as_(Who("agent:coder", "agent", direct=True)).who.name == "agent:coder"
    assert reach("agent", YOURTURN_AGENT="other").who.name.startswith("agent:agent-")
    with pytest.raises(NotAllowed, match="only people answer"):
        worker.answer("Q1", "x")
    with pytest.raises(NotAllowed, match="the credential decides"):
        reach("agent").as_(Who("human:ana", "admin"))


def test_an_agent_works(site, reach):
    site.desk.create_project("WORK") if "WORK" not in {p["key"] for p in site.desk.projects()} else None
    agent, person = reach("agent"), reach("member")
    task = person.create("Do it", project="WORK")
    got = agent.claim_next("w1", project="WORK")
    assert got["task"]["key"] == task["key"]
    agent.heartbeat(got["claim"])
    agent.write_output(got["claim"], [("said", "Reading the code"), ("tool", "grep")])
    assert [line["text"] for line in person.output(task)] == ["Reading the code", "grep"]
    agent.keep_patch(got["claim"], "abc", "x" * 1_500_000)
    assert len(person.patch(task)["body"]) == 1_500_000
    asked = agent.ask(task, "Which?", claim=got["claim"])
    threading.Timer(0.3, lambda: person.answer(asked, "that")).start()
    assert agent.wait_for(asked, 20)["response"]["value"] == "that"
    assert agent.complete(got["claim"], "Done.")["state"] == "done"
    with pytest.raises(NotAllowed, match="a worker's name is no proof here"):
        agent.release(person.create("Other", project="WORK")["key"], worker="w1")


def test_watching(site, reach, job):
    desk = reach()
    cursor = desk.desk_cursor()
    desk.note(job, "one")
    desk.note(job, "two")
    found = [e for e in desk.watch(cursor, 0.2) if e["task"] == job]
    assert [e["data"]["notes"][0]["text"] for e in found] == ["one", "two"]
    stream = desk.watch(found[-1]["cursor"])
    threading.Timer(0.2, lambda: site.desk.note(job, "three")).start()
    assert next(e for e in stream if e["task"] == job)["data"]["notes"][0]["text"] == "three"
    followed = desk.follow(job, cursor)
    assert [next(followed)["action"] for _ in range(3)] == ["note"] * 3


def test_awaiting(site, reach, job):
    async def both():
        desk, person = reach("agent"), reach()
        asked = await desk.aio.ask(job, "Which?")
        waiting = asyncio.create_task(desk.aio.wait_for(asked, 20))
        await asyncio.sleep(0)
        await person.aio.answer(asked, "that")
        return (await waiting)["response"]["value"]

    assert asyncio.run(both()) == "that"


def test_the_command_speaks_to_a_server(site, turn):
    key = turn("create", "From afar")["key"]
    assert turn("show", key, role="viewer")["title"] == "From afar"
    question = turn("ask", key, "Which?", "--option", "a", "--option", "b", role="agent")
    assert turn("approve", key, role="agent", ok=5)["error"]["code"] == "not_allowed"
    assert turn("show", "PROJ-99999", ok=3)["error"]["code"] == "not_found"
    assert turn("respond", question["id"], "z", ok=6)["error"]["code"] == "invalid"
    assert turn("respond", question["id"], "a")["status"] == "answered"
    assert turn("respond", question["id"], "b", ok=4)["error"]["code"] == "already_answered"
    assert turn("ask", key, "Again?", "--wait", "0.1", role="agent", ok=7)["status"] == "pending"
    claim = turn("create", "Claim me", "--priority", "0")["key"]
    got = turn("claim", claim, "--worker-id", "w1", role="agent")
    assert turn("complete", claim, "--claim", got["claim"]["token"], role="agent")["state"] == "done"
    assert [e["action"] for e in turn("log", claim)][:3] == ["create", "claim", "complete"]
    assert turn("inbox", YOURTURN_TOKEN="yt_wrong", ok=5)["error"]["code"] == "not_known"
    assert turn("doctor", ok=2)["error"]["code"] == "usage"
    assert turn("show", key, "--as", "human:ben", ok=5)["error"]["code"] == "not_allowed"


def test_the_server_is_not_reachable(tmp_path):
    with pytest.raises(StoreTrouble, match="cannot be reached"):
        connect("http://127.0.0.1:1", env={"YOURTURN_TOKEN": "x"})
    with pytest.raises(Usage, match="Invalid server address"):
        connect("http://", env={})


def test_a_lost_answer_is_asked_for_again(site, reach, job):
    """The connection breaks after the server did it: the same key makes it once."""
    desk = reach()
    real, broken = desk._transport._connection, []

    def connection():
        found = real()
        if not broken:
            broken.append(found)
            answer = found.getresponse

            def lose(*a, **k):
                found.getresponse = answer
                answer().read()
                raise ConnectionResetError("lost")

            found.getresponse = lose
        return found

    desk._transport._connection = connection
    desk.note(job, "said once")
    assert [n["text"] for n in site.desk.show(job)["notes"]] == ["said once"]


def test_every_method_is_there():
    from yourturn.client.remote import RemoteClient
    from yourturn.client.verbs import Verbs

    public = {name for name in dir(Client) if not name.startswith("_") and callable(getattr(Client, name))}
    inherited = {name for name in public - vars(Verbs).keys() if getattr(RemoteClient, name) is getattr(Client, name)}
    assert inherited == {"at_version", "follow"}, "they only use the others"
    assert {permissions.operation(name) for name in public - {"as_", "at_version", "do"}} <= set(permissions.NEEDS)


def test_every_filter_crosses_the_wire():
    """The typed filters of a list are those that its query takes: none is left out over HTTP."""
    from inspect import signature

    from yourturn.client.filters import EventFilters, QuestionFilters, TaskFilters
    from yourturn.db.event_log import EventLog
    from yourturn.db.reads import Reader

    own = {
        "self",
        "states",
        "kinds",
        "task",
        "ids",
        "only",
        "mine",
        *signature(Client.list).parameters,
        *signature(Client.inbox).parameters,
    }
    for filters, read in ((TaskFilters, Reader.tasks), (QuestionFilters, Reader.inbox), (EventFilters, EventLog.events)):
        assert set(signature(read).parameters) - own - {"limit", "after"} == set(filters.__annotations__) - own, filters


def test_a_handoff_arrives_whole_over_http(site, reach, turn):
    desk = reach()
    kept = "JWT\n\nIssues:\n- one flaky test"
    key = desk.create("Log in", requires="approval")["key"]
    claim = desk.claim(key, "w1")["claim"]
    task = desk.complete(claim, "It works", details="JWT", issues=["one flaky test"])
    assert task["questions"][0]["context"] == {"details": "JWT", "issues": ["one flaky test"]}
    assert [note["text"] for note in task["notes"]] == [kept]
    for verb, words in (("complete", "summary"), ("fail", "reason")):
        key = desk.create("Log out")["key"]
        token = desk.claim(key, "w1")["claim"]["token"]
        body = {"claim": token, words: "so", "details": "JWT", "issues": ["one flaky test"]}
        assert site.call("POST", f"/api/tasks/{key}/{verb}", {**body, "issues": "one"}).status == 422
        assert site.call("POST", f"/api/tasks/{key}/{verb}", body).status == 200
        assert [note["text"] for note in site.desk.show(key)["notes"]] == [kept]
    key = desk.create("By command")["key"]
    token = desk.claim(key, "w1")["claim"]["token"]
    turn("complete", key, "--claim", token, "--details", "JWT", "--issue", "one flaky test")
    assert [note["text"] for note in site.desk.show(key)["notes"]] == [kept]
    key = desk.create("Ask")["key"]
    also = [{"text": "Where?", "options": ["eu", "us"]}]
    found = site.call("POST", f"/api/tasks/{key}/flag", {"text": "Which port?", "kind": "input", "also": also})
    assert [q["text"] for q in found.json["questions"]] == ["Which port?", "Where?"]
    assert [q["text"] for q in desk.flag(key, "A?", None, "input", also=also)["questions"]][2:] == ["A?", "Where?"]


def test_a_reply_is_as_short_after_many_notes(site, reach, turn):
    """Over HTTP, from Python and from the command; the history is in what `show` gives."""
    key = site.desk.create("Add login")["key"]
    far = reach()
    ways = {
        "http": lambda: site.post(f"/api/tasks/{key}/note", {"text": "Hm"}).json,
        "python": lambda: far.note(key, "Hm"),
        "command": lambda: turn("note", key, "Hm"),
        "update": lambda: site.post(f"/api/tasks/{key}/update", {"priority": 1}).json,
    }
    before = {name: move() for name, move in ways.items()}
    for _ in range(100):
        site.desk.note(key, "More")
        site.desk.answer(site.desk.ask(key, "Which?", default="that", blocking=False), "this")
    after = {name: move() for name, move in ways.items()}
    for name, reply in after.items():
        assert abs(len(json.dumps(reply)) - len(json.dumps(before[name]))) < 50, name
        assert reply["questions"] == [] and len(reply["notes"]) == (name != "update"), name
    for shown in (site.get(f"/api/tasks/{key}").json, far.show(key), turn("show", key)):
        assert len(shown["notes"]) == 106 and len(shown["questions"]) == 100
