"""A network that loses replies: what was said counts once, looks are looked at again, and what cannot be known is told."""

from __future__ import annotations

import inspect
import json
import os
import select
import threading
import time

import anyio
import pytest
from mcp import Client as Caller
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

from tests import forks
from tests.api import surfaces
from tests.api.between import EVERY, Between
from tests.api.said import CASES, Scene
from tests.api.test_arguments import _without
from tests.conftest import TURN
from tests.mcp.conftest import ask, told
from yourturn.api.desk import methods
from yourturn.client import Client
from yourturn.client.names import key_name
from yourturn.config import connect
from yourturn.core import access
from yourturn.core.errors import KeyReused, MaybeDone, StillWaiting, StoreTrouble, TooMany
from yourturn.store.rows import TABLES

CHANGES = [name for name in methods() if not access.looks(name)]


@pytest.fixture
def between(site):
    found = Between(site.port)
    yield found
    found.close()


@pytest.fixture
def turn(site, between, tmp_path):
    """turn('show', key, ok=3): the command, with the proxy between it and the server; its standard output and error."""

    def say(*words: str, role: str = "admin", ok: int = 0, **more: str):
        done = forks.turn(words, tmp_path, environment(site, between, tmp_path, role, **more))
        assert done.returncode == ok, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout if ok in (0, 7) else done.stderr

    return say


def environment(site, between, folder, role="admin", **more):
    base = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
    token = site.token(role)
    return base | {"YOURTURN_URL": between.url, "YOURTURN_TOKEN": token, "YOURTURN_PROJECT": "PROJ", "HOME": str(folder), **more}


@pytest.fixture
def reach(site, between):
    opened = []

    def make(role: str = "admin") -> Client:
        opened.append(connect(between.url, project="PROJ", env={"YOURTURN_TOKEN": site.token(role)}))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


# --- every verb of the command ------------------------------------------------------------------------------------------

_VERBS = sorted(surfaces.SURFACES["command"][1])


def _events(site):
    """How much has ever happened, also what concerns no task."""
    with site.desk.desk.store.reading() as run:
        return run("SELECT count(*) FROM events").fetchone()[0]


def _said(verb):
    """A saying of this verb that is not refused, and that the command can say."""
    for case in CASES:
        if case.verb == verb and not case.refused and case.seen.keys() - surfaces.lacks("command", verb).keys():
            return case
    return None


def _line(site, verb):
    """A desk on which this verb can be said, and the words of the command."""
    case, scene = _said(verb), Scene(site.desk)
    (case.stage if case else _STAGES[verb])(scene)
    args = _without(verb, case.args(scene), surfaces.lacks("command", verb)) if case else {}
    return surfaces._words(scene, verb, {"claim": scene.claim} if verb == "heartbeat" else args)


_WHERE = [("sqlite", verb) for verb in _VERBS] + [("postgres", v) for v in ("answer", "ask", "claim", "create", "note", "token_create")]


@pytest.mark.parametrize(("site", "verb"), _WHERE, indirect=["site"])
def test_a_verb_whose_reply_is_lost_counts_once(site, between, turn, verb):
    told = []
    turn("project", "list")
    for lost in (False, True):
        words = _line(site, verb)
        before = _events(site)
        if lost:
            between.then("lose", *CHANGES)
        said = json.loads(turn(*words, "--json"))
        told.append((_events(site) - before, sorted(said)))
    assert [fate for name, fate in between.heard if name in CHANGES] == ["", "lose", ""], between.heard
    assert told[0] == told[1], "as much happened, and as much was told, as without a loss"


def _user(s: Scene) -> str:
    s.desk.set_user(name := f"u{os.urandom(4).hex()}", "member")
    return name


def _run(s: Scene) -> str:
    """One that was stopped."""
    s.desk.stop(s.stepped().key)
    return s.key


#: Other words for a verb, and commands that say one beside what they look at.
_OTHER = {
    "next": lambda s: ["next", s.task(type="epic").key, "--claim", *_nothing(s.desk.create("Part", parent=s.key))],
    "hand-back": lambda s: ["hand-back", s.asked().key],
    "update": lambda s: ["update", s.task().key, "--awaiting=null", "--title", "Said"],
    "verdict": lambda s: ["update", s.asked("approval").key, "--verdict", "approved"],
    "awaiting": lambda s: ["update", s.task().key, "--awaiting", "review"],
    "respond": lambda s: ["respond", s.asked().question, "left"],
    "respond to a task": lambda s: ["respond", s.asked().key, "left", "--restart"],
    "inbox": lambda s: ["inbox", "respond", s.asked().question[1:], "left"],
    "send": lambda s: ["inbox", "send", s.task().key, "Which?"],
    "send a note": lambda s: ["inbox", "send", s.task().key, "So.", "--type", "info"],
    "note": lambda s: ["note", s.task().key, "So.", "--from", "agent"],
    "reclaim": lambda s: ["reclaim", s.held().key, "--claim", s.claim, "--reason", "no luck"],
    "signal": lambda s: ["signal", s.asked("checkpoint").key, "--status", "CONTINUE"],
    "signal a step": lambda s: ["signal", s.asking_step().key, "--status", "DONE", "--message", "By hand."],
    "stop a run": lambda s: ["signal", s.asking_step().key, "--status", "STOP"],
    "resume": lambda s: ["resume", _run(s), "--detach"],
    "resume from": lambda s: ["resume", _run(s), "--from", "2", "--detach"],
    "link": lambda s: ["user", "link", _user(s)],
    "password": lambda s: ["user", "password", _user(s)],
}  # fmt: skip


def _nothing(_: object) -> list[str]:
    return []


@pytest.mark.parametrize("name", _OTHER)
def test_a_command_whose_reply_is_lost_counts_once(sqlite_site, tmp_path, name):
    between = Between(sqlite_site.port)
    env = environment(sqlite_site, between, tmp_path)
    told = []
    try:
        for lost in (False, True):
            words = _OTHER[name](Scene(sqlite_site.desk))
            before = _events(sqlite_site)
            if lost:
                between.then("lose", *CHANGES)
            done = forks.turn([*words, "--json"], tmp_path, env, "a long password\n")
            assert done.returncode == 0, (words, done.stderr)
            told.append((_events(sqlite_site) - before, sorted(json.loads(done.stdout))))
    finally:
        between.close()
    assert ("lose" in [fate for _, fate in between.heard]) and told[0] == told[1]
    assert told[0][0] > 0


@pytest.mark.parametrize("verb", _VERBS)
def test_a_verb_takes_the_key_that_is_named_for_it(sqlite_site, tmp_path, verb):
    """`It may have been done. Say it again with --idempotency-key …`"""
    words = [*_line(sqlite_site, verb), "--idempotency-key", f"{verb}-{os.urandom(4).hex()}"]
    env = environment(sqlite_site, sqlite_site, tmp_path)
    assert (done := forks.turn(words, tmp_path, env)).returncode == 0, done.stderr
    before = _events(sqlite_site)
    done = forks.turn(words, tmp_path, env)
    assert done.returncode == (4 if verb == "token_create" else 0), done.stderr  # its secret was shown
    assert _events(sqlite_site) == before


#: For verbs without arguments of their own.
_STAGES = {
    "heartbeat": Scene.held,
    "vet": lambda s: s.task(draft=True),
    "wake": lambda s: s.desk.defer(s.task().key),
}


@pytest.mark.parametrize("words", [("defer", "--until", "2d"), ("park", "--until", "2d")])
def test_a_date_that_is_counted_from_now_is_the_same_when_it_is_said_again(sqlite_site, tmp_path, words):
    site = sqlite_site
    between = Between(site.port)
    try:
        scene = Scene(site.desk).held() if words[0] == "park" else Scene(site.desk).task()
        more = ["--claim", scene.claim] if words[0] == "park" else []
        between.then("lose", words[0])
        done = forks.turn([words[0], scene.key, *words[1:], *more], tmp_path, environment(site, between, tmp_path))
        assert done.returncode == 0, done.stderr
        assert site.desk.show(scene.key)["state"] == "deferred"
    finally:
        between.close()


def test_the_next_task_is_taken_once_and_the_last_one_completed_once(site, reach, between):
    desk, project = reach(), f"N{os.urandom(3).hex()}".upper()
    between.then("lose", "create_project", "claim_next", "create")
    desk.create_project(project)
    desk.create("One", project=project)
    got = desk.claim_next("w1", project=project)
    assert got["claim"]["epoch"] == 1 and desk.heartbeat(got["claim"])["claim"]["worker"] == "w1"
    between.then("lose", "claim_next")
    assert desk.claim_next("w1", project=project, completing=got["claim"], summary="Said.") is None
    assert (desk.show(got["task"]["key"])["state"], desk.show(got["task"]["key"])["summary"]) == ("done", "Said.")


def test_a_token_and_a_link_whose_reply_is_lost_are_good(site, reach, between, turn):
    between.then("lose", "create_token", "create_link")
    name = f"t{os.urandom(4).hex()}"
    made = json.loads(turn("token", "create", name, "--json"))
    assert site.call("GET", "/api/me", token=made["token"]).json["actor"] == f"agent:{name}"
    site.desk.set_user(name, "member")
    assert site.desk.whose_link(json.loads(turn("user", "link", name, "--json"))["link"]) == f"human:{name}"
    with pytest.raises(KeyReused, match="shown once") as again:
        desk = reach()
        desk.create_token(f"{name}2", key=name)
        desk.create_token(f"{name}2", key=name)
    assert f"turn token revoke {name}2" in again.value.hint
    assert site.post("/api/desk/create_token", {"args": [f"{name}3"], "fields": {"secret": "yt_short"}}).status == 422


def test_a_key_that_is_said_as_null_is_not_said(site, job):
    """Whoever sends the header has a key, whatever the fields say."""
    for _ in range(2):
        body = {"args": [job, "once"], "fields": {"key": None}}
        assert site.post("/api/desk/note", body, headers={"Idempotency-Key": f"null-{job}"}).status == 200
    assert [note["text"] for note in site.desk.show(job)["notes"]] == ["once"]


# --- which methods only look ------------------------------------------------------------------------------------------------


def test_every_method_looks_or_takes_a_key_or_leaves_the_same_twice():
    """One table says which methods look; there is no list beside it that could forget one."""
    for name in methods():
        sorts = [access.looks(name), bool(key_name(getattr(Client, name))), name in access.SAME_TWICE, name == "write_output"]
        assert sorts.count(True) == 1, f"{name}: looks, key, same twice, at most once: {sorts}"


def test_methods_that_look_change_nothing(site):
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
        if access.looks(name):
            wanted = inspect.signature(getattr(Client, name)).parameters.values()
            args = [given[p.name] for p in wanted if p.name in given and p.default is p.empty]
            getattr(site.desk, name)(*args)
            called.append(name)
    assert rows() == before and {"list", "show", "inbox", "history", "wait_for", "check_question", "claim_is_for"} <= set(called)


def test_what_is_kept_and_reconciled_twice_is_as_once(site, reach, between):
    scene = Scene(site.desk).held()
    between.then("lose", *access.SAME_TWICE)
    agent = reach("agent")
    agent.keep_patch(scene.claim, "abc", "the work")
    assert site.desk.patch(scene.key)["body"] == "the work" and agent.reconcile()["failed"] == 0
    assert [fate for name, fate in between.heard if name in access.SAME_TWICE] == ["lose", "", "lose", ""]


@pytest.mark.parametrize("fault", ["drop", "lose", "cut", 502, 503, 504, "502"])
def test_a_look_is_looked_at_again(site, between, turn, job, fault):
    between.then(fault, "show", "list", "inbox")
    assert json.loads(turn("show", job, "--json"))["key"] == job
    assert turn("list") and turn("inbox", "--json")
    assert between.count("show") == 2


def test_a_connection_that_was_closed_meanwhile_is_opened_again(site, between, reach, job):
    """As a server does with one that says nothing for half a minute. Also for what takes no key."""
    scene = Scene(site.desk).held()
    desk = reach("agent")
    desk.list(limit=1)
    for say in (lambda: desk.list(limit=1), lambda: desk.write_output(scene.claim, [("said", "Here.")])):
        between.end()
        assert select.select([desk._line._local.connection.sock], [], [], 10)[0], "it has heard of that"
        assert desk._line._connection().sock is None, "nothing is written into it"
        say()
    assert [line["text"] for line in site.desk.output(scene.key)] == ["Here."]


# --- what cannot be known -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["lose", "502"])
def test_a_change_of_which_nothing_is_heard_names_its_key(site, between, turn, fault):
    title = f"Once {os.urandom(4).hex()}"
    between.then(fault, "create", times=EVERY)
    error = json.loads(turn("create", title, "--json", ok=1))["error"]
    assert error["code"] == "maybe_done" and "It may have been done." in error["hint"]
    key = error["hint"].partition("--idempotency-key ")[2].partition(":")[0]
    between.clear()
    assert error["hint"] == f"It may have been done. Say it again with --idempotency-key {key}: it counts once."
    assert title in turn("create", title, "--idempotency-key", key)
    assert len(site.desk.list(search=title)) == 1


@pytest.mark.parametrize("method", ["hand_back", "update"])
def test_a_command_that_says_one_of_two_verbs_finds_its_key_again(site, between, turn, method):
    """`update --awaiting=null` hands the task back, or, where it waits for nobody, only changes it."""
    scene = Scene(site.desk).asked() if method == "hand_back" else Scene(site.desk).task()
    words = ("update", scene.key, "--awaiting=null", "--title", "Said")
    between.then("lose", method, times=EVERY)
    hint = json.loads(turn(*words, "--json", ok=1))["error"]["hint"]
    between.clear()
    before = _events(site)
    turn(*words, "--idempotency-key", hint.partition("--idempotency-key ")[2].partition(":")[0])
    assert _events(site) == before and site.desk.show(scene.key)["title"] == "Said"


def test_one_answer_for_all_takes_a_key(site, between, turn, job):
    asked = [site.desk.ask(job, f"{n}?", blocking=False, default="x")["id"] for n in range(2)]
    between.then("lose", "answer", times=2)
    found = json.loads(turn("respond", "--all", "fine", "--idempotency-key", f"all-{job}", "--json"))
    assert {one["id"] for one in found if one["status"] == "answered"} >= set(asked)


def test_a_change_that_never_left_is_not_said_to_be_done(site, between, turn, job):
    between.then(429, "note", times=EVERY, headers={"Retry-After": "0"})
    error = json.loads(turn("note", job, "so", "--json", ok=4))["error"]
    assert error["code"] == "too_many" and "may have been" not in error["hint"]
    error = json.loads(turn("note", job, "so", "--json", ok=1, YOURTURN_URL="http://127.0.0.1:1"))["error"]
    assert error["code"] == "store" and "may have been" not in error["hint"]
    between.clear()
    between.then("lose", "note", times=2)
    between.then(429, "note", times=EVERY)
    assert json.loads(turn("note", job, "so", "--json", ok=1))["error"]["code"] == "maybe_done", "one of the tries arrived"


def test_the_server_is_given_the_time_that_it_asks_for(site, between, turn, reach, job):
    between.then(429, "note", headers={"Retry-After": "1"})
    between.then(503, "create", headers={"Retry-After": "1"})
    began = time.monotonic()
    turn("note", job, "later")
    assert time.monotonic() - began > 1 and len(site.desk.show(job)["notes"]) == 1
    assert "Created" in turn("create", "Later")
    between.then(429, "note", headers={"Retry-After": "600"})
    with pytest.raises(TooMany) as error:
        reach().note(job, "too long")
    assert error.value.retry_after == 600


def test_what_takes_no_key_is_sent_once(site, between, reach):
    scene = Scene(site.desk).held()
    between.then("lose", "write_output")
    with pytest.raises(MaybeDone, match="cannot be reached") as error:
        reach("agent").write_output(scene.claim, [("said", "Here.")])
    assert error.value.key == "" and "Look before you say it again" in error.value.hint
    assert [line["text"] for line in site.desk.output(scene.key)] == ["Here."]


def test_who_revokes_its_own_token_is_told_that_it_may_be_revoked(site, between):
    name = f"own{os.urandom(4).hex()}"
    token = site.desk.create_token(name, "admin", actor="human:ana")["token"]
    with connect(between.url, env={"YOURTURN_TOKEN": token}) as desk:
        between.then("lose", "revoke_token")
        with pytest.raises(MaybeDone, match="revoked"):
            desk.revoke_token(name)


# --- waiting ----------------------------------------------------------------------------------------------------------------


def test_who_waits_for_an_answer_and_loses_the_server_knows_what_it_asked(site, between, turn, reach, job):
    between.then("drop", "wait_for", "changes", times=EVERY)
    done = turn("ask", job, "Which?", "--wait", "0.5", role="agent", ok=7)
    (asked,) = site.desk.show(job)["questions"]
    assert f"Asked {asked['id']} about {job}" in done and f"turn show {asked['id']}" in done
    found = json.loads(turn("ask", job, "And then?", "--wait", "0.5", "--json", role="agent", ok=7))
    assert found["status"] == "pending" and found["id"] == site.desk.show(job)["questions"][1]["id"]
    with pytest.raises(StillWaiting, match="cannot be reached") as error:
        reach("agent").ask(job, "Really?", wait=0.2)
    third = site.desk.show(job)["questions"][2]["id"]
    assert error.value.question == third and error.value.hint == f"Look with: turn show {third}"
    with pytest.raises(StillWaiting) as error:
        anyio.run(lambda: reach("agent").aio.ask(job, "Really really?", wait=0.2))
    assert error.value.question == site.desk.show(job)["questions"][3]["id"]


def test_a_server_that_is_away_for_a_moment_does_not_end_the_wait(site, between, reach, job):
    agent = reach("agent")
    asked = agent.ask(job, "Which?")
    between.then("drop", "wait_for", "changes", times=4)
    threading.Timer(0.3, lambda: site.desk.answer(asked["id"], "that")).start()
    assert agent.wait_for(asked, 20)["response"]["value"] == "that"


@pytest.mark.parametrize("words", [("log", "--follow", "--limit", "1"), ("log", "KEY", "--follow"), ("watch",), ("watch", "KEY", "--only-look")])
def test_who_looks_on_survives_a_reset(site, between, tmp_path, job, words):
    words = [job if word == "KEY" else word for word in words]
    child = forks.command([*words, "--json"], tmp_path, environment(site, between, tmp_path))
    try:
        _until(lambda: between.count("events") or between.count("changes"))
        between.then("drop", "events", "changes", "show", "output")
        for word in ("first", "second"):  # the first may be among what it was just about to read
            site.desk.note(job, f"the {word} note")
            if not any(f"the {word} note" in line for line in child.stdout):
                pytest.fail(child.stderr.read())
        assert ("events", "drop") in between.heard
    finally:
        child.kill()


def _until(true):
    ends = time.monotonic() + 20
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.02)


# --- workers and agents ----------------------------------------------------------------------------------------------------------


def test_a_worker_loses_replies_and_works_on(site, between, tmp_path):
    project = "LOSSY"
    if project not in {p["key"] for p in site.desk.projects()}:
        site.desk.create_project(project)
    (tmp_path / "agent.sh").write_text("#!/bin/sh\ncat >/dev/null\necho '<promise>COMPLETE</promise>'\n")
    (tmp_path / "agent.sh").chmod(0o755)
    keys = [site.desk.create(title, project=project)["key"] for title in ("One", "Two")]
    worker = site.desk.create_token(f"w-{os.urandom(4).hex()}", scopes=["run"])["token"]
    between.then("lose", "claim_next", "create_token", "complete", "heartbeat", "revoke_token", "keep_patch", "show", "list")
    between.then("drop", "changes", "projects", "history")
    env = environment(site, between, tmp_path, YOURTURN_TOKEN=worker, YOURTURN_PROJECT=project)
    done = forks.turn(["work", "--exec", "./agent.sh", "--in-place", "--drain"], tmp_path, env)
    assert done.returncode == 0, done.stdout + done.stderr
    for key in keys:
        assert [e["action"] for e in site.desk.history(key)][:3] == ["create", "claim", "complete"]
    mine = [t for t in site.desk.tokens() if t["actor"].startswith("agent:") and t["name"].startswith("worker-") and not t["revoked_at"]]
    assert mine == []


def test_the_tools_of_an_agent_lose_replies(site, between, tmp_path):
    """`turn mcp`, with its desk behind a server: one loss is not noticed; and what may have been done counts once when it is
    called again, though it is another call."""
    key = site.desk.create("Over there")["key"]
    env = environment(site, between, tmp_path, "agent", YOURTURN_ASK_WAIT="0", YOURTURN_TASK=key)

    async def main() -> None:
        with (tmp_path / "stderr").open("w") as log:
            server = StdioServerParameters(command=TURN, args=["mcp"], cwd=tmp_path, env=env)
            async with Caller(stdio_client(server, log)) as agent:
                between.then("lose", "ask", "note", "show")
                asked = told(await agent.call_tool("ask_question", ask()))
                assert site.desk.show(asked["question_id"])["task"] == key
                assert told(await agent.call_tool("get_task", {}))["task"]["key"] == key
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


def test_a_person_who_was_asked_before_a_call_is_named_when_the_server_is_gone(site, between, reach):
    from yourturn.approval import approved

    agent = reach("agent")
    between.then("drop", "wait_for", "changes", times=EVERY)
    with pytest.raises(StillWaiting, match="deploy has not run") as error:
        approved(agent, "deploy", {"to": "staging"}, wait=0.2)
    between.clear()
    assert site.desk.show(error.value.question)["status"] == "pending"


def test_trouble_that_does_not_pass_is_told_at_once(site, between, reach):
    desk = reach()
    between.then(404, "list")
    with pytest.raises(StoreTrouble, match="answered 404, and not in our words"):
        desk.list()
    assert between.count("list") == 1
