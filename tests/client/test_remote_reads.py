"""A network that loses replies: reads are repeated; waiting, watching and working continue."""

from __future__ import annotations

import inspect
import json
import os
import select
import threading

import anyio
import pytest
from mcp import Client as Caller
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

from tests import forked_commands
from tests.conftest import TURN
from tests.fixtures.lossy_proxy import EVERY
from tests.fixtures.server import elsewhere
from tests.mcp.conftest import ask, data_of
from tests.surfaces.argument_values import Scene
from tests.worker.workshop import until
from yourturn.api.rpc import methods
from yourturn.client import Client
from yourturn.client.refs import key_name
from yourturn.core import permissions
from yourturn.core.errors import StillWaiting, StoreTrouble
from yourturn.db.dump import TABLES

# --- which methods only look ------------------------------------------------------------------------------------------------


def test_every_method_reads_or_takes_a_key_or_is_idempotent():
    """One table says which methods look; there is no list beside it that could forget one."""
    for name in methods():
        sorts = [permissions.reads(name), bool(key_name(getattr(Client, name))), name in permissions.SAME_TWICE, name == "write_output"]
        assert sorts.count(True) == 1, f"{name}: looks, key, same twice, at most once: {sorts}"


def test_reading_methods_change_nothing(site):
    """Each is called, and every row of the database stays as it is."""
    scene = Scene(site.desk).asked_by_holder()
    given = {
        "named": scene.key, "task": scene.key, "run": scene.key, "question": scene.question, "seconds": 0, "token": scene.claim,
        "text": "Which?",
    }  # fmt: skip

    def rows():
        with site.desk.desk.store.reading() as run:
            return {table.name: sorted(map(repr, run(f"SELECT * FROM {table.name}").fetchall())) for table in TABLES}

    before, called = rows(), []
    for name in methods():
        if permissions.reads(name):
            wanted = inspect.signature(getattr(Client, name)).parameters.values()
            args = [given[p.name] for p in wanted if p.name in given and p.default is p.empty]
            getattr(site.desk, name)(*args)
            called.append(name)
    assert rows() == before and {"list", "show", "inbox", "history", "wait_for", "check_question", "claim_is_for"} <= set(called)


def test_keep_register_and_reconcile_are_idempotent(site, far, between):
    scene = Scene(site.desk).held()
    between.then("lose", *permissions.SAME_TWICE)
    agent, name = far("agent"), f"w-{scene.key}"
    agent.keep_patch(scene.claim, "abc", "the work")
    assert site.desk.patch(scene.key)["body"] == "the work" and agent.reconcile()["failed"] == 0
    agent.register_worker(name, agents=["coder"])
    assert agent.renew_worker(name) and [w["agents"] for w in site.desk.workers() if w["name"] == name] == [["coder"]]
    agent.remove_worker(name)
    assert name not in [w["name"] for w in site.desk.workers()]
    fates = [fate for method, fate in between.heard if method in permissions.SAME_TWICE]
    assert fates == ["lose", ""] * len(permissions.SAME_TWICE)


@pytest.mark.parametrize("fault", ["drop", "lose", "cut", 502, 503, 504, "502"])
def test_read_is_repeated_after_a_lost_reply(site, between, through, job, fault):
    between.then(fault, "show", "list", "inbox")
    assert json.loads(through("show", job, "--json"))["key"] == job
    assert through("list") and through("inbox", "--json")
    assert between.count("show") == 2


def test_a_connection_that_was_closed_meanwhile_is_opened_again(site, between, far, job):
    """As a server does with one that says nothing for half a minute. Also for what takes no key."""
    scene = Scene(site.desk).held()
    desk = far("agent")
    desk.list(limit=1)
    for say in (lambda: desk.list(limit=1), lambda: desk.write_output(scene.claim, [("said", "Here.")])):
        between.end()
        assert select.select([desk._transport._local.connection.sock], [], [], 10)[0], "it has heard of that"
        assert desk._transport._connection().sock is None, "nothing is written into it"
        say()
    assert [line["text"] for line in site.desk.output(scene.key)] == ["Here."]


# --- waiting ----------------------------------------------------------------------------------------------------------------


def test_a_waiting_client_that_loses_the_server_knows_its_question(site, between, through, far, job):
    between.then("drop", "wait_for", "changes", times=EVERY)
    done = through("ask", job, "Which?", "--wait", "0.5", role="agent", ok=7)
    (asked,) = site.desk.show(job)["questions"]
    assert f"Asked {asked['id']} about {job}" in done and f"turn show {asked['id']}" in done
    found = json.loads(through("ask", job, "And then?", "--wait", "0.5", "--json", role="agent", ok=7))
    assert found["status"] == "pending" and found["id"] == site.desk.show(job)["questions"][1]["id"]
    with pytest.raises(StillWaiting, match="cannot be reached") as error:
        far("agent").ask(job, "Really?", wait=0.2)
    third = site.desk.show(job)["questions"][2]["id"]
    assert error.value.question == third and error.value.hint == f"Read it with: turn show {third}"
    with pytest.raises(StillWaiting) as error:
        anyio.run(lambda: far("agent").aio.ask(job, "Really really?", wait=0.2))
    assert error.value.question == site.desk.show(job)["questions"][3]["id"]


def test_a_server_that_is_away_for_a_moment_does_not_end_the_wait(site, between, far, job):
    agent = far("agent")
    asked = agent.ask(job, "Which?")
    between.then("drop", "wait_for", "changes", times=4)
    threading.Timer(0.3, lambda: site.desk.answer(asked["id"], "that")).start()
    assert agent.wait_for(asked, 20)["response"]["value"] == "that"


@pytest.mark.parametrize(
    "words", [("log", "--follow", "--limit", "1"), ("log", "KEY", "--follow"), ("watch",), ("watch", "KEY", "--only-look")]
)
def test_a_watcher_survives_a_reset(site, between, tmp_path, job, words):
    words = [job if word == "KEY" else word for word in words]
    child = forked_commands.command([*words, "--json"], tmp_path, elsewhere(between.url, site.token("admin"), tmp_path))
    try:
        until(lambda: between.count("events") or between.count("changes"))
        between.then("drop", "events", "changes", "show", "output")
        for word in ("first", "second"):  # the first may be among what it was just about to read
            site.desk.note(job, f"the {word} note")
            if not any(f"the {word} note" in line for line in child.stdout):
                pytest.fail(child.stderr.read())
        assert ("events", "drop") in between.heard
    finally:
        child.kill()


# --- workers and agents -------------------------------------------------------------------------------------------------------


def test_a_worker_loses_replies_and_works_on(site, between, tmp_path):
    project = "LOSSY"
    if project not in {p["key"] for p in site.desk.projects()}:
        site.desk.create_project(project)
    (tmp_path / "agent.sh").write_text("#!/bin/sh\ncat >/dev/null\necho '<promise>COMPLETE</promise>'\n")
    (tmp_path / "agent.sh").chmod(0o755)
    keys = [site.desk.create(title, project=project)["key"] for title in ("One", "Two")]
    name = f"w-{os.urandom(4).hex()}"
    worker = site.desk.create_token(name, scopes=["run"])["token"]
    between.then("lose", "claim_next", "create_token", "complete", "heartbeat", "revoke_token", "keep_patch", "show", "list")
    between.then("drop", "changes", "projects", "history")
    env = elsewhere(between.url, worker, tmp_path, YOURTURN_PROJECT=project)
    done = forked_commands.turn(["work", "--exec", "./agent.sh", "--in-place", "--drain"], tmp_path, env)
    assert done.returncode == 0, done.stdout + done.stderr
    for key in keys:
        assert [e["action"] for e in site.desk.history(key)][:3] == ["create", "claim", "complete"]
    made = [t for t in site.desk.tokens() if t["created_by"] == f"agent:{name}"]
    assert made and all(t["revoked_at"] for t in made)


def test_the_tools_of_an_agent_lose_replies(site, between, tmp_path):
    """`turn mcp`, with its desk behind a server: one loss is not noticed; and what may have been done counts once when it is
    called again, though it is another call."""
    key = site.desk.create("Over there")["key"]
    env = elsewhere(between.url, site.token("agent"), tmp_path, YOURTURN_ASK_WAIT="0", YOURTURN_TASK=key)

    async def main() -> None:
        with (tmp_path / "stderr").open("w") as log:
            server = StdioServerParameters(command=TURN, args=["mcp"], cwd=tmp_path, env=env)
            async with Caller(stdio_client(server, log)) as agent:
                between.then("lose", "ask", "note", "show")
                asked = data_of(await agent.call_tool("ask_question", ask()))
                assert site.desk.show(asked["question_id"])["task"] == key
                assert data_of(await agent.call_tool("get_task", {}))["task"]["key"] == key
                await agent.call_tool("add_note", {"text": "once"})
                between.then("lose", "note", times=EVERY)
                lost = await agent.call_tool("add_note", {"text": "twice?"})
                assert lost.is_error and "Call this tool again with the same arguments" in lost.content[0].text
                between.clear()
                await agent.call_tool("add_note", {"text": "twice?"})
                await agent.call_tool("add_note", {"text": "twice?"})

    anyio.run(main)
    assert [note["text"] for note in site.desk.show(key)["notes"]] == ["once", "twice?", "twice?"]
    assert len(site.desk.show(key)["questions"]) == 1


def test_the_open_question_of_a_call_is_named_when_the_server_is_gone(site, between, far):
    from yourturn.approval.decorator import approved

    agent = far("agent")
    between.then("drop", "wait_for", "changes", times=EVERY)
    with pytest.raises(StillWaiting, match="deploy has not run") as error:
        approved(agent, "deploy", {"to": "staging"}, wait=0.2)
    between.clear()
    assert site.desk.show(error.value.question)["status"] == "pending"


def test_permanent_error_is_raised_at_once(site, between, far):
    desk = far()
    between.then(404, "list")
    with pytest.raises(StoreTrouble, match=r"Not a Yourturn server \(HTTP 404\)"):
        desk.list()
    assert between.count("list") == 1
