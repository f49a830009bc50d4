"""Permissions, exhaustively: every operation × every role × own, foreign and missing objects. Over real HTTP."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.fixtures.server import ROLES, other_workspace
from yourturn.api.handlers import VERB_ROUTES
from yourturn.api.route_table import rows
from yourturn.api.rpc import methods
from yourturn.client import Client
from yourturn.core import permissions
from yourturn.core.actions import VERBS
from yourturn.core.errors import NotAllowed, NotKnown
from yourturn.core.model import Who
from yourturn.core.rules import ADMIN_VERBS, TRANSITIONS
from yourturn.server.app import create_app

INVALID = ("none", "unknown", "expired", "revoked", "removed")
PRINCIPALS = (*INVALID, *ROLES, "worker")
#: Tokens of an admin that are limited to a scope: other operations are refused before any read.
SCOPED = tuple(permissions.SCOPES)

# --- the table --------------------------------------------------------------------------------------------------------


def test_every_verb_has_a_row():
    assert set(VERBS) <= set(permissions.NEEDS)
    assert set(ADMIN_VERBS) <= set(permissions.NEEDS)
    assert set(permissions.NEEDS.values()) <= set(permissions.LEVELS)


def test_every_operation_is_in_some_scope():
    assert set(permissions.NEEDS) - set().union(*permissions.SCOPES.values()) == {v for v, need in permissions.NEEDS.items() if need == "system"}


def test_every_method_of_the_client_has_a_row():
    public = {name for name in dir(Client) if not name.startswith("_") and callable(getattr(Client, name))}
    assert {name for name in public - {"as_", "at_version", "do"} if permissions.operation(name) not in permissions.NEEDS} == set()
    assert set(permissions.METHODS) <= public, "no row for what is not there"
    assert public - set(methods()) == {
        "answer_and_claim", "as_", "at_version", "backup", "do", "export", "follow", "import_", "journal", "login", "logout",
        "sleep_until_due", "start", "use_link", "watch", "whose_link",
    }  # fmt: skip


def test_every_route_has_a_row(sqlite_site):
    from yourturn.web import assets, route_table

    table: dict[str, Any] = {row.path: row for row in [*rows(), *route_table.ROWS]}
    for route in sqlite_site.app.router.routes:
        named = getattr(route.endpoint, "operation", None) in permissions.NEEDS
        assert named or route.path in table or route.path in ("/healthz", "/readyz", *assets.ROUTES), f"{route.path} has no row"
    for row in table.values():
        if not row.operation.startswith("{"):
            assert row.operation in permissions.NEEDS, row.path
    assert {verb for _, verb in TRANSITIONS if permissions.NEEDS[verb] != "system"} - {"create", "import"} <= set(VERB_ROUTES)
    assert set(VERB_ROUTES) <= set(permissions.NEEDS)


def test_a_route_without_a_row_fails(tmp_path):
    from yourturn.api.route_table import Row

    row = Row("GET", "/api/secret", "nonsense", lambda call: None, "")
    with pytest.raises(KeyError):
        permissions.check(Who("human:ana", "admin"), row.operation_for({}))
    assert create_app


@pytest.mark.parametrize("name", sorted(permissions.NEEDS))
def test_roles_are_ordered(name):
    """Each role may do what the lower one may; an agent may do nothing that a member may not."""
    for less, more in (("viewer", "member"), ("member", "approver"), ("approver", "admin"), ("agent", "member")):
        assert not permissions.may(Who("x", less), name) or permissions.may(Who("x", more), name)
    assert permissions.may(None, name) == (permissions.NEEDS[name] == "open")
    if permissions.NEEDS[name] in ("own", "human", "approver", "admin"):
        assert not permissions.may(Who("agent:x", "agent"), name)
    with pytest.raises((NotKnown, NotAllowed)):
        for who in (None, Who("agent:x", "agent"), Who("human:x", "viewer"), Who("system", "system")):
            permissions.check(who, name)
        raise NotAllowed("open to all") if permissions.NEEDS[name] in ("open", "look") else AssertionError


# --- over HTTP --------------------------------------------------------------------------------------------------------

_DEED = {"claim": {"worker": "w1"}, "decompose": {"children": ["x"]}, "use": {"by": "x", "digest": "0" * 64}, "assign": {"reviewer": "x"},
         "update": {"priority": 1}, "answer": {"value": "x"}, "defer": {"until": "2d"}, "step": {"claim": "x"}}  # fmt: skip
_ARGS = {
    "create": ["x"], "create_project": ["ZZ"], "set": ["nonsense", 1], "set_user": ["a b"], "remove_user": ["nobody"],
    "set_password": ["nobody", "long enough"], "end_session": [999999], "create_token": ["a b"], "revoke_token": ["nobody"],
    "claim_next": ["w1"], "create_link": ["nobody"], "check_question": ["x"], "events": ["0.1.0"], "claim_is_for": ["x", "x"],
    "set_preferences": [], "register_worker": ["w1"], "renew_worker": ["w1"], "remove_worker": ["w1"],
}  # fmt: skip


def requests(key: str, question: str):
    """(operation, method, path, body) of every operation, on one task and one question."""
    for row in rows():
        path = row.path.replace("{key}", key).replace("{id}", question if "/questions/" in row.path else key)
        if row.path in ("/api/events", "/api/changes"):
            path += "?seconds=0" if "changes" in path else "?task=" + key
        if "{action}" in row.path:
            for verb in VERB_ROUTES:
                body = _DEED.get(verb, {})
                if "text" in VERB_ROUTES[verb].takes:
                    body = {"text": "x", **body}
                if "needs" in VERB_ROUTES[verb].takes:
                    body = {"needs": [key]}
                yield verb, "POST", path.replace("{action}", verb), body
        elif "{method}" in row.path:
            for name in methods():
                args = _ARGS.get(name)
                if args is None:
                    wants = (
                        permissions.operation(name) in ("tasks", "questions", "events", "output")
                        or name in VERBS
                        or name in permissions.METHODS
                    )
                    args = (
                        [question if name in ("answer", "respond", "wait_for", "withdraw", "assign", "use") else key]
                        if wants
                        else []
                    )
                    args = (
                        args
                        if name
                        not in ("list", "ready", "next", "counts", "inbox", "now", "desk_cursor", "preferences", "stats", "tree")
                        else []
                    )
                    args += {"note": ["x"], "ask": ["x"], "flag": ["x"], "answer": ["x"], "respond": ["x"], "wait_for": [0], "assign": ["x"], "use": ["x"], "claim": ["w1"], "await_person": ["input"], "decompose": [["x"]], "write_output": [[["a", "b"]]], "keep_patch": ["a", "b"]}.get(name, [])  # fmt: skip
                yield permissions.operation(name), "POST", path.replace("{method}", name), {"args": args}
        elif row.method == "POST":
            body = {"title": "x"} if path == "/api/tasks" else {"worker": "w"} if path == "/api/claims" else {"text": "x"}
            if "/jobs/" in path:
                body = {"question": "x", "type": "blocking", "responseType": "text"}
            if path.endswith(("/cancel", "/assign", "/answer")):
                body = {"cancel": {}, "assign": {"reviewer": "x"}, "answer": {"value": "x"}}[path.rpartition("/")[2]]
            yield row.operation, "POST", path, body
        else:
            yield row.operation, row.method, path, None


def credentials(site):
    """Principal -> token. The invalid ones were valid before."""
    desk, word = site.desk, uuid.uuid4().hex[:8]
    tokens = {role: site.token(role) for role in ROLES}
    tokens["worker"] = desk.create_token(f"worker-{word}", scopes=["run"])["token"]
    for scope in SCOPED:
        tokens[scope] = desk.create_token(f"{scope}-{word}", "admin", scopes=[scope])["token"]
    tokens["none"], tokens["unknown"] = None, "yt_" + "0" * 48
    tokens["revoked"] = desk.create_token(f"revoked-{word}", "admin")["token"]
    desk.revoke_token(f"revoked-{word}")
    desk.set_user(f"gone-{word}", "admin")
    tokens["removed"] = desk.create_token(f"removed-{word}", "admin", actor=f"human:gone-{word}")["token"]
    desk.remove_user(f"gone-{word}")
    tokens["expired"] = desk.create_token(f"expired-{word}", "admin", expires="1h")["token"]
    store = desk.desk.store
    with store.begin() as run:
        run("UPDATE tokens SET expires_at = 1 WHERE name = :name", {"name": f"expired-{word}"})
    return tokens


@pytest.fixture(scope="module")
def scene(sqlite_site):
    """A task with a question here, and others in another workspace, whose numbers are larger."""
    here = sqlite_site.desk
    task = here.create("Ours")["key"]
    question = here.ask(task, "Ours?")["id"]
    other = other_workspace(sqlite_site)
    number = int(task.rpartition("-")[2])
    theirs = [other.create("Theirs: secret")["key"] for _ in range(number + 40)][-1]
    asked = [other.ask(theirs, "Secret?", blocking=False, default="x")["id"] for _ in range(int(question[1:]) + 40)][-1]
    return {"own": (task, question), "other": (theirs, asked), "gone": ("PROJ-900000", "Q900000")}


def principal_of(name: str) -> Who | None:
    if name in INVALID:
        return None
    if name in SCOPED:
        return Who("human:x", "admin", scopes=frozenset({name}))
    if name in ("agent", "worker"):
        return Who("agent:x", "agent", scopes=frozenset({"work" if name == "agent" else "run"}))
    return Who("human:x", name)


@pytest.mark.parametrize(
    ("principal", "whose"),
    [(p, w) for p in PRINCIPALS for w in ("own", "other", "gone")] + [(p, "gone") for p in SCOPED],
)
def test_permissions_of_every_operation(sqlite_site, scene, principal, whose):
    site, (key, question) = sqlite_site, scene[whose]
    token, who = credentials(site)[principal], principal_of(principal)
    wrong = []
    for operation, method, path, body in requests(key, question):
        if path.startswith("/api/events") and principal not in INVALID and whose == "own":
            continue  # a stream that would not end: test_events
        reply = site.call(method, path, body, role=None, token=token)
        need = permissions.NEEDS[operation]
        if need == "open":
            allowed = reply.status == 200
        elif who is None:
            allowed = reply.status == 401 and reply.code == "not_known"
        elif not permissions.may(who, operation):
            allowed = reply.status == 403 and reply.code == "not_allowed"
        else:
            allowed = reply.status in (200, 201, 403, 404, 409, 422)
            about = key in path or question in path or key in str(body) or question in str(body)
            if whose != "own" and about and "title" not in (body or {}):
                allowed = reply.status in (404, 403, 422) and b"ecret" not in reply.raw
        if not allowed or reply.status >= 500:
            wrong.append((operation, method, path, body, reply.status, reply.raw[:200]))
    assert wrong == []


def test_foreign_objects_are_not_found(sqlite_site, scene):
    """The errors for foreign and for missing objects differ only in the name."""
    site = sqlite_site
    for principal in ROLES:
        for at in (0, 1):
            path = "/api/tasks/" if at == 0 else "/api/questions/"
            theirs, nothing = (site.get(path + scene[whose][at], role=principal) for whose in ("other", "gone"))
            words = [r.raw.decode().replace(scene[w][at], "X").replace(scene[w][at][1:], "X") for r, w in ((theirs, "other"), (nothing, "gone"))]  # fmt: skip
            assert theirs.status == nothing.status == 404 and words[0] == words[1]
    listed = (
        site.get("/api/tasks?limit=500").raw + site.get("/api/questions?status=all&limit=500").raw + site.get("/api/stats").raw
    )
    assert b"ecret" not in listed


def test_token_is_limited_to_its_workspace(sqlite_site, scene):
    other = other_workspace(sqlite_site)
    name = uuid.uuid4().hex[:8]
    token = other.create_token(name, "admin")["token"]
    me = sqlite_site.get("/api/me", role=None, token=token).json
    assert me["workspace"] == "other"
    mine = sqlite_site.get(f"/api/tasks/{scene['other'][0]}", role=None, token=token)
    assert mine.status == 200 and mine.json["title"] == "Theirs: secret"
    assert "Ours" not in [t["title"] for t in sqlite_site.get("/api/tasks?limit=500", role=None, token=token).json["tasks"]]
    assert sqlite_site.get("/api/questions/pending?workspaceId=default", role=None, token=token).status == 404
