"""People who come over a network: passwords, sessions, one-time links, preferences, and how often is too often."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import PASSWORD_WORK
from tests.db.processes import raw
from yourturn import strict
from yourturn.config import connect
from yourturn.core import permissions
from yourturn.core.errors import Changed, Invalid, KeyReused, NotAllowed, NotFound, NotKnown, TooMany
from yourturn.core.model import SECOND, Who
from yourturn.desk import passwords, rate_limits

PASSWORD = "correct horse battery"


@pytest.fixture
def ben(desk):
    """A member with a password, seen by himself."""
    desk.set_user("ben", "member")
    desk.set_password("ben", PASSWORD)
    return desk.as_(Who("human:ben", "member"))


# --- passwords --------------------------------------------------------------------------------------------------------


def test_a_password_proves_itself_and_nothing_else(monkeypatch):
    monkeypatch.setattr(passwords, "WORK", PASSWORD_WORK)
    stored = passwords.make(PASSWORD)
    assert stored.startswith("scrypt$14$8$5$") and PASSWORD not in stored
    assert stored != passwords.make(PASSWORD), "salted"
    assert passwords.proves(PASSWORD, stored)
    assert not passwords.proves(PASSWORD + "x", stored)
    assert not passwords.proves("", stored)
    assert not passwords.proves(PASSWORD, None)
    weak = "scrypt$10$8$1$" + stored.split("$", 4)[4]
    assert not passwords.proves(PASSWORD, weak), "the parameters are read from what is stored"


@pytest.mark.parametrize("password", ["", "short", "x" * 1001, None])
def test_a_password_has_a_length(desk, password):
    desk.set_user("ben")
    with pytest.raises(Invalid, match="8 to 1000"):
        desk.set_password("ben", password)


def test_login_of_an_unknown_name_takes_as_long(desk, ben, monkeypatch):
    tried = []
    real = passwords.proves
    monkeypatch.setattr(passwords, "proves", lambda p, s: tried.append(s) or real(p, s))
    for name in ("ben", "nobody", "x" * 5000, "", "a\x00b"):
        with pytest.raises(NotKnown, match="Wrong name or password"):
            desk.login(name, "wrong password")
    assert len(tried) == 5 and tried[0] is not None and tried[1:] == [None] * 4


def test_only_oneself_and_an_admin_set_a_password(desk, ben, agent):
    ben.set_password("ben", "something else")
    desk.set_password("ben", PASSWORD)
    desk.set_user("cyd")
    for who in (ben, agent):
        with pytest.raises(NotAllowed):
            who.set_password("cyd", PASSWORD)
    with pytest.raises(NotFound, match="no user dan"):
        desk.set_password("dan", PASSWORD)


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_a_session_names_its_user(desk, ben, clock):
    made = desk.login("ben", PASSWORD, address="10.0.0.1", about="Firefox")
    number, who, _ = desk.desk.credentials.of_session(made["session"])
    assert (who, number) == (Who("human:ben", "member"), made["id"])
    assert [(s["actor"], s["about"]) for s in ben.sessions()] == [("human:ben", "Firefox")]
    assert made["session"] not in json.dumps(ben.sessions())
    desk.set_user("ben", "viewer")
    assert desk.desk.credentials.of_session(made["session"])[1].role == "viewer", "never more than the person is now"
    clock.advance(days=31)
    with pytest.raises(NotKnown, match="The session is over"):
        desk.desk.credentials.of_session(made["session"])


@pytest.mark.parametrize("end", ["logout", "end_session", "remove_user", "set_password", "restore"])
def test_a_session_ends(desk, ben, end):
    made = desk.login("ben", PASSWORD)
    if end == "logout":
        desk.logout(made["session"])
    elif end == "end_session":
        ben.end_session(made["id"])
    elif end == "restore":
        desk.do("restore")
    else:
        getattr(desk, end)("ben", *([PASSWORD] if end == "set_password" else []))
    with pytest.raises(NotKnown):
        desk.desk.credentials.of_session(made["session"])
    assert ben.sessions() == []
    with pytest.raises(NotKnown):
        desk.logout(made["session"])


def test_sessions_of_others_are_not_shown(desk, ben):
    link = desk.create_link()
    mine = desk.use_link(link["link"])
    assert ben.sessions() == []
    with pytest.raises(NotFound, match="There is no session"):
        ben.end_session(mine["id"])
    with pytest.raises(NotFound, match="There is no session"):
        ben.end_session(999)
    assert [s["actor"] for s in desk.sessions()] == ["human:ana"]


def test_a_password_that_changed_meanwhile_is_refused(desk, ben):
    with pytest.raises(NotKnown):
        desk._enter("login", Who("human:ben", "member"), "", None, user="ben", proof="scrypt$old")


# --- links ------------------------------------------------------------------------------------------------------------


def test_a_link_works_once_and_not_for_long(desk, ben, clock):
    made = desk.create_link("ben")
    assert desk.use_link(made["link"])["actor"] == "human:ben"
    with pytest.raises(NotKnown, match="not valid any more"):
        desk.use_link(made["link"])
    late = ben.create_link()
    clock.advance(minutes=16)
    for link in (late["link"], "yl_unknown", "x" * 500):
        with pytest.raises(NotKnown, match="not valid any more"):
            desk.use_link(link)


def test_a_link_lets_in_one_of_many(desk):
    link = desk.create_link()["link"]

    def come(_):
        try:
            return desk.use_link(link)["actor"]
        except NotKnown:
            return None

    with ThreadPoolExecutor(8) as crowd:
        assert [who for who in crowd.map(come, range(8)) if who] == ["human:ana"]


def test_a_link_gives_no_more_than_its_maker_has(desk, ben, agent):
    desk.set_user("ann", "admin")
    with pytest.raises(NotAllowed):
        ben.create_link("ann")
    with pytest.raises(NotAllowed):
        agent.create_link("ben")
    with pytest.raises(NotFound, match="no user dan"):
        desk.create_link("dan")
    viewer = desk.as_(Who("human:ben", "viewer"))
    assert desk.use_link(viewer.create_link()["link"])["role"] == "viewer"
    dead = desk.create_link("ben")["link"]
    desk.remove_user("ben")
    with pytest.raises(NotKnown):
        desk.use_link(dead)


# --- preferences, tokens ----------------------------------------------------------------------------------------------


def test_preferences_are_ones_own(desk, ben, agent):
    assert ben.preferences() == {}
    assert ben.set_preferences(theme="dark", sound=True) == {"theme": "dark", "sound": True}
    assert ben.set_preferences(sound=None) == {"theme": "dark"}
    assert desk.preferences() == {}
    with pytest.raises(NotAllowed):
        agent.preferences()
    with pytest.raises(NotAllowed):
        agent.set_preferences(theme="dark")
    with pytest.raises(Invalid, match="too long"):
        ben.set_preferences(theme="x" * 30_000)
    with pytest.raises(NotAllowed):
        desk.do("prefs_set", user="ben", prefs={"theme": "light"})


def test_people_make_tokens_for_themselves(desk, ben, agent):
    made = ben.create_token("mine", "member", actor="human:ben")
    assert desk.desk.credentials.identify(made["token"]) == Who("human:ben", "member")
    desk.create_token("ci", "agent")
    assert [t["name"] for t in ben.tokens()] == ["mine"] and len(desk.tokens()) == 2
    for name, role, actor in (("a", "admin", "human:ben"), ("c", "member", "human:ana")):
        with pytest.raises(NotAllowed):
            ben.create_token(name, role, actor=actor)
    ben.create_token("his", "agent", actor="agent:coder")  # he may speak as one himself, which is less
    assert [(t["name"], t["created_by"]) for t in ben.tokens()] == [("mine", "human:ben"), ("his", "human:ben")]
    ben.revoke_token("his")
    with pytest.raises(NotAllowed):
        ben.revoke_token("ci")
    ben.revoke_token("mine")
    with pytest.raises(NotKnown, match="was revoked"):
        desk.desk.credentials.identify(made["token"])
    for look in (agent.users, agent.tokens, agent.sessions):
        with pytest.raises(NotAllowed):
            look()


def bearer(desk, token):
    return desk.as_(desk.desk.credentials.identify(token))


def test_a_token_is_good_for_its_scopes_only(desk):
    """What each scope is for is tried; what is beside it is refused in words that say which would do."""
    task = desk.create("Ours")["key"]
    asked = desk.ask(task, "Which?")["id"]
    deeds = {
        "read": lambda who: who.show(task),
        "ask": lambda who: who.note(task, "x"),
        "work": lambda who: who.release(who.claim(who.create("Theirs"), "w1")["claim"]),
        "answer": lambda who: who.assign(asked, "human:ben"),
        "manage": lambda who: who.create_project(f"P{os.urandom(4).hex()}"),
    }
    good = {"read": "read", "ask": "read ask", "work": "read ask work", "run": "read ask work", "answer": "read ask answer"}
    for scope in (*permissions.SCOPES, "read,manage"):
        made = desk.create_token(f"t-{scope.replace(',', '-')}", "admin", actor="human:ana", scopes=scope.split(","))
        assert made["scopes"] == [name for name in permissions.SCOPES if name in scope.split(",")]
        who = bearer(desk, made["token"])
        for name, deed in deeds.items():
            if name in good.get(scope, "read manage").split():
                deed(who)
            else:
                with pytest.raises(NotAllowed, match="its token is for"):
                    deed(who)
    with pytest.raises(Invalid, match="scopes cannot be"):
        desk.create_token("t9", scopes=["everything"])


def test_only_a_workers_token_takes_a_run_and_speaks_as_its_script(desk):
    run = desk.create("A run", workflow="feature.py")["key"]
    agent = bearer(desk, desk.create_token("coder")["token"])
    worker = bearer(desk, desk.create_token("w", scopes=["run"])["token"])
    assert agent.who.scopes == {"work"} and not agent.who.direct
    with pytest.raises(NotAllowed, match="it is a run"):
        agent.claim(run, "w1")
    assert agent.claim_next("w1", runs=True) is None, "it is not offered what it may not take"
    got = worker.claim_next("w1", runs=True)
    assert got["task"]["key"] == run
    with pytest.raises(NotAllowed, match="this takes run"):
        agent.record(got["claim"], [{"path": "0", "name": "run", "call": {}, "status": "completed"}])
    worker.park(got["claim"])
    # who sees a person's token is less than that person, and can still be their worker
    assert desk.as_(Who("human:ana", "member").as_agent()).claim(run, "w2")["task"]["key"] == run


def test_a_worker_makes_tokens_for_its_agents_and_no_others(desk, ben):
    worker = bearer(desk, desk.create_token("w", scopes=["run"])["token"])
    made = worker.create_token("w-coder", actor="agent:coder")
    assert bearer(desk, made["token"]).who == Who("agent:coder", "agent", scopes=frozenset({"work"}))
    assert [t["name"] for t in worker.tokens()] == ["w-coder"]
    for role, scopes in (("member", None), ("agent", ["run"]), ("agent", ["manage"])):
        with pytest.raises(NotAllowed):
            worker.create_token("more", role, actor="human:w" if role == "member" else "agent:w", scopes=scopes)
    with pytest.raises(NotAllowed):
        worker.revoke_token("ci") if desk.create_token("ci") else None
    worker.revoke_token("w-coder")
    narrow = bearer(desk, desk.create_token("narrow", "admin", actor="human:ana", scopes=["manage"])["token"])
    with pytest.raises(NotAllowed, match="good for more"):
        narrow.create_token("wide", "admin", actor="human:ana")
    ben.create_token("bens", actor="agent:coder")
    desk.remove_user("ben")
    assert next(t for t in desk.tokens() if t["name"] == "bens")["revoked_at"], "it was seen by somebody who is gone"
    assert strict.examine(desk) == []


def test_a_secret_is_shown_once_also_with_a_key(desk):
    desk.create_token("ci", "agent", key="k1")
    desk.create_link(key="k2")
    with pytest.raises(KeyReused, match="created already"):
        desk.create_token("ci", "agent", key="k1")
    with pytest.raises(KeyReused, match="created already"):
        desk.create_link(key="k2")
    assert len(desk.tokens()) == 1


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_no_secret_is_stored_or_printed(desk, ben, address):
    link = desk.create_link("ben")["link"]
    first, second = desk.use_link(link), desk.login("ben", PASSWORD)
    ben.set_preferences(theme="dark")
    desk.logout(second["session"])
    secrets = [link, first["session"], second["session"], PASSWORD]
    with raw(address) as run:
        for table in ("users", "logins", "links", "events", "rates", "prefs", "replies"):
            rows = str(run(f"SELECT * FROM {table}"))
            assert not [s for s in secrets if s in rows], table
        assert "scrypt" not in str(run("SELECT data FROM events"))
    told = {e["action"]: e["data"] for e in desk.history(limit=500)}
    assert set(told["login"]) == {"user", "expires_at"}
    assert told["password_set"] == {"user": "ben"}


# --- how often is too often -------------------------------------------------------------------------------------------


def test_an_allowance_is_shared_and_comes_back(desk, address, clock):
    with connect(address, as_="human:ana", clock=clock, env={}) as other:
        for at in range(4):
            rate_limits.take((desk, other)[at % 2].desk, "test", "x", 4, 60 * SECOND)
        for one in (desk, other):
            with pytest.raises(TooMany) as error:
                rate_limits.take(one.desk, "test", "x", 4, 60 * SECOND)
            assert error.value.retry_after == 15 and error.value.http_status == 429
    rate_limits.take(desk.desk, "test", "y", 4, 60 * SECOND)
    clock.advance(seconds=15)
    rate_limits.take(desk.desk, "test", "x", 4, 60 * SECOND)
    with pytest.raises(TooMany):
        rate_limits.take(desk.desk, "test", "x", 4, 60 * SECOND)
    rate_limits.forget(desk.desk, "test", "x")
    rate_limits.take(desk.desk, "test", "x", 4, 60 * SECOND)
    clock.advance(minutes=2)
    rate_limits.sweep(desk.desk)
    with raw(address) as run:
        assert run("SELECT count(*) FROM rates") == [(0,)]


def test_tries_to_log_in_are_counted(desk, ben, clock, monkeypatch):
    monkeypatch.setattr(passwords, "proves", lambda p, s: p == PASSWORD and s is not None)
    for _ in range(10):
        with pytest.raises(NotKnown):
            desk.login("ben", "wrong", address="10.0.0.1")
    with pytest.raises(TooMany, match="with this name"):
        desk.login("ben", PASSWORD, address="10.0.0.2")
    clock.advance(minutes=15)
    assert desk.login("ben", PASSWORD)["actor"] == "human:ben"
    for at in range(50):
        with pytest.raises(NotKnown):
            desk.login(f"n{at}", "wrong", address="10.0.0.3")
    with pytest.raises(TooMany, match="from this address"):
        desk.login("ben", PASSWORD, address="10.0.0.3")


# --- as it was seen ---------------------------------------------------------------------------------------------------


def test_move_at_a_version_is_refused_after_a_change(desk):
    task = desk.create("A")
    seen = desk.at_version(task["version"])
    desk.note("PROJ-1", "something changes")
    with pytest.raises(Changed, match="PROJ-1 has changed") as error:
        seen.cancel("PROJ-1")
    assert error.value.http_status == 412 and desk.show("PROJ-1")["state"] == "ready"
    assert desk.at_version(desk.show("PROJ-1")["version"]).cancel("PROJ-1")["state"] == "cancelled"
