"""A network that loses replies: a change counts once, and an unknown result is reported as such."""

from __future__ import annotations

import json
import os
import time

import pytest

from tests import forked_commands
from tests.fixtures.lossy_proxy import EVERY, Between
from tests.fixtures.server import elsewhere
from tests.surfaces import calls
from tests.surfaces.argument_values import CASES, Scene
from tests.surfaces.test_arguments import without
from yourturn.api.rpc import methods
from yourturn.config import connect
from yourturn.core import permissions
from yourturn.core.errors import KeyReused, MaybeDone, TooMany

CHANGES = [name for name in methods() if not permissions.reads(name)]


# --- every verb of the command ------------------------------------------------------------------------------------------

_VERBS = sorted(calls.SURFACES["command"][1])


def _events(site):
    """How much has ever happened, also what concerns no task."""
    with site.desk.desk.store.reading() as run:
        return run("SELECT count(*) FROM events WHERE actor <> 'system'").fetchone()[0]


def _said(verb):
    """A saying of this verb that is not refused, and that the command can say."""
    for case in CASES:
        if case.verb == verb and not case.refused and case.seen.keys() - calls.lacks("command", verb).keys():
            return case
    return None


def _line(site, verb):
    """A desk on which this verb can be said, and the words of the command."""
    case, scene = _said(verb), Scene(site.desk)
    (case.stage if case else _STAGES[verb])(scene)
    args = without(verb, case.args(scene), calls.lacks("command", verb)) if case else {}
    return calls._words(scene, verb, {"claim": scene.claim} if verb == "heartbeat" else args)


_WHERE = [("sqlite", verb) for verb in _VERBS] + [
    ("postgres", v) for v in ("answer", "ask", "claim", "create", "note", "token_create")
]


@pytest.mark.parametrize(("site", "verb"), _WHERE, indirect=["site"])
def test_a_verb_whose_reply_is_lost_counts_once(site, between, through, verb):
    told = []
    through("project", "list")
    for lost in (False, True):
        words = _line(site, verb)
        before = _events(site)
        if lost:
            between.then("lose", *CHANGES)
        said = json.loads(through(*words, "--json"))
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
    env = elsewhere(between.url, sqlite_site.token("admin"), tmp_path)
    told = []
    try:
        for lost in (False, True):
            words = _OTHER[name](Scene(sqlite_site.desk))
            before = _events(sqlite_site)
            if lost:
                between.then("lose", *CHANGES)
            done = forked_commands.turn([*words, "--json"], tmp_path, env, "a long password\n")
            assert done.returncode == 0, (words, done.stderr)
            told.append((_events(sqlite_site) - before, sorted(json.loads(done.stdout))))
    finally:
        between.close()
    assert ("lose" in [fate for _, fate in between.heard]) and told[0] == told[1]
    assert told[0][0] > 0


@pytest.mark.parametrize("verb", _VERBS)
def test_a_verb_takes_the_key_that_is_named_for_it(sqlite_site, tmp_path, verb):
    """`It may have been done. Repeat it with --idempotency-key …`"""
    words = [*_line(sqlite_site, verb), "--idempotency-key", f"{verb}-{os.urandom(4).hex()}"]
    env = elsewhere(sqlite_site.url, sqlite_site.token("admin"), tmp_path)
    assert (done := forked_commands.turn(words, tmp_path, env)).returncode == 0, done.stderr
    before = _events(sqlite_site)
    done = forked_commands.turn(words, tmp_path, env)
    assert done.returncode == (4 if verb == "token_create" else 0), done.stderr  # its secret was shown
    assert _events(sqlite_site) == before


#: For verbs without arguments of their own.
_STAGES = {
    "heartbeat": Scene.held,
    "vet": lambda s: s.task(draft=True),
    "wake": lambda s: s.desk.defer(s.task().key),
}


@pytest.mark.parametrize("words", [("defer", "--until", "2d"), ("park", "--until", "2d")])
def test_relative_date_is_the_same_in_a_repeated_request(sqlite_site, tmp_path, words):
    site = sqlite_site
    between = Between(site.port)
    try:
        scene = Scene(site.desk).held() if words[0] == "park" else Scene(site.desk).task()
        more = ["--claim", scene.claim] if words[0] == "park" else []
        between.then("lose", words[0])
        done = forked_commands.turn(
            [words[0], scene.key, *words[1:], *more], tmp_path, elsewhere(between.url, site.token("admin"), tmp_path)
        )
        assert done.returncode == 0, done.stderr
        assert site.desk.show(scene.key)["state"] == "deferred"
    finally:
        between.close()


def test_the_next_task_is_taken_once_and_the_last_one_completed_once(site, far, between):
    desk, project = far(), f"N{os.urandom(3).hex()}".upper()
    between.then("lose", "create_project", "claim_next", "create")
    desk.create_project(project)
    desk.create("One", project=project)
    got = desk.claim_next("w1", project=project)
    assert got["claim"]["epoch"] == 1 and desk.heartbeat(got["claim"])["claim"]["worker"] == "w1"
    between.then("lose", "claim_next")
    assert desk.claim_next("w1", project=project, completing=got["claim"], summary="Said.") is None
    assert (desk.show(got["task"]["key"])["state"], desk.show(got["task"]["key"])["summary"]) == ("done", "Said.")


def test_a_token_and_a_link_whose_reply_is_lost_are_good(site, far, between, through):
    between.then("lose", "create_token", "create_link")
    name = f"t{os.urandom(4).hex()}"
    made = json.loads(through("token", "create", name, "--json"))
    assert site.call("GET", "/api/me", token=made["token"]).json["actor"] == f"agent:{name}"
    site.desk.set_user(name, "member")
    assert site.desk.whose_link(json.loads(through("user", "link", name, "--json"))["link"]) == f"human:{name}"
    with pytest.raises(KeyReused, match="shown once") as again:
        desk = far()
        desk.create_token(f"{name}2", key=name)
        desk.create_token(f"{name}2", key=name)
    assert f"turn token revoke {name}2" in again.value.hint
    assert site.post("/api/desk/create_token", {"args": [f"{name}3"], "fields": {"secret": "yt_short"}}).status == 422


def test_null_key_is_no_key(site, job):
    """The header gives the request its key, also where the fields say null."""
    for _ in range(2):
        body = {"args": [job, "once"], "fields": {"key": None}}
        assert site.post("/api/desk/note", body, headers={"Idempotency-Key": f"null-{job}"}).status == 200
    assert [note["text"] for note in site.desk.show(job)["notes"]] == ["once"]


# --- what cannot be known -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["lose", "502"])
def test_change_without_a_reply_names_its_key(site, between, through, fault):
    title = f"Once {os.urandom(4).hex()}"
    between.then(fault, "create", times=EVERY)
    error = json.loads(through("create", title, "--json", ok=1))["error"]
    assert error["code"] == "maybe_done" and "It may have been done." in error["hint"]
    key = error["hint"].partition("--idempotency-key ")[2].partition(":")[0]
    between.clear()
    assert error["hint"] == f"It may have been done. Repeat it with --idempotency-key {key}: it is done once."
    assert title in through("create", title, "--idempotency-key", key)
    assert len(site.desk.list(search=title)) == 1


_THEN = [
    (["create", "So"], "unattended"),
    (["respond", "Q", "left"], "show"),
    (["inbox", "respond", "Q", "left"], "show"),
    (["cancel", "KEY"], "list"),
]


@pytest.mark.parametrize(("words", "look"), _THEN)
def test_change_whose_result_cannot_be_read_is_reported_as_done(site, between, through, words, look):
    scene = Scene(site.desk).asked()
    words = [{"Q": scene.question, "KEY": scene.key}.get(word, word) for word in words]
    between.then("drop", look, times=EVERY)
    error = through(*words, ok=1)
    assert "It was done, only its result cannot be shown." in error
    between.clear()
    before = _events(site)
    through(*words, "--idempotency-key", error.partition("--idempotency-key ")[2].partition(",")[0])
    assert _events(site) == before


@pytest.mark.parametrize("method", ["hand_back", "update"])
def test_command_with_two_verbs_repeats_its_key(site, between, through, method):
    """`update --awaiting=null` hands the task back, or only changes it if it does not wait for a person."""
    scene = Scene(site.desk).asked() if method == "hand_back" else Scene(site.desk).task()
    words = ("update", scene.key, "--awaiting=null", "--title", "Said")
    between.then("lose", method, times=EVERY)
    hint = json.loads(through(*words, "--json", ok=1))["error"]["hint"]
    between.clear()
    before = _events(site)
    through(*words, "--idempotency-key", hint.partition("--idempotency-key ")[2].partition(":")[0])
    assert _events(site) == before and site.desk.show(scene.key)["title"] == "Said"


def test_one_answer_for_all_takes_a_key(site, between, through):
    project = f"A{os.urandom(3).hex()}".upper()
    site.desk.create_project(project)
    task = site.desk.create("Ask", project=project)
    asked = [site.desk.ask(task, f"{n}?", blocking=False, default="x")["id"] for n in range(2)]
    between.then("lose", "answer", times=2)
    found = json.loads(through("respond", "--all", "fine", "-p", project, "--idempotency-key", project, "--json"))
    assert [(one["id"], one["status"]) for one in found] == [(name, "answered") for name in asked]


def test_change_that_was_never_sent_is_not_reported_as_done(site, between, through, job):
    between.then(429, "note", times=EVERY, headers={"Retry-After": "0"})
    error = json.loads(through("note", job, "so", "--json", ok=4))["error"]
    assert error["code"] == "too_many" and "may have been" not in error["hint"]
    error = json.loads(through("note", job, "so", "--json", ok=1, YOURTURN_URL="http://127.0.0.1:1"))["error"]
    assert error["code"] == "store" and "may have been" not in error["hint"]
    between.clear()
    between.then("lose", "note", times=2)
    between.then(429, "note", times=EVERY)
    assert json.loads(through("note", job, "so", "--json", ok=1))["error"]["code"] == "maybe_done", "one of the tries arrived"


def test_the_server_is_given_the_time_that_it_asks_for(site, between, through, far, job):
    between.then(429, "note", headers={"Retry-After": "1"})
    between.then(503, "create", headers={"Retry-After": "1"})
    began = time.monotonic()
    through("note", job, "later")
    assert time.monotonic() - began > 1 and len(site.desk.show(job)["notes"]) == 1
    assert "Created" in through("create", "Later")
    between.then(429, "note", headers={"Retry-After": "600"})
    with pytest.raises(TooMany) as error:
        far().note(job, "too long")
    assert error.value.retry_after == 600


def test_what_takes_no_key_is_sent_once(site, between, far):
    scene = Scene(site.desk).held()
    between.then("lose", "write_output")
    with pytest.raises(MaybeDone, match="cannot be reached") as error:
        far("agent").write_output(scene.claim, [("said", "Here.")])
    assert error.value.key == "" and "Check before you repeat it" in error.value.hint
    assert [line["text"] for line in site.desk.output(scene.key)] == ["Here."]


def test_revoking_the_own_token_without_a_reply_is_maybe_done(site, between):
    name = f"own{os.urandom(4).hex()}"
    token = site.desk.create_token(name, "admin", actor="human:ana")["token"]
    with connect(between.url, env={"YOURTURN_TOKEN": token}) as desk:
        between.then("lose", "revoke_token")
        with pytest.raises(MaybeDone, match="revoked"):
            desk.revoke_token(name)
