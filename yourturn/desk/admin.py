"""Administration: projects, people, tokens and sessions. Each change writes an event to the workspace's chain.

An event never contains a secret, nor a hash of one.
"""

from __future__ import annotations

import json
from typing import Any

from ..core import permissions, settings
from ..core.canonical_json import dumps, secret_hash
from ..core.decide import decide
from ..core.errors import Invalid, NotAllowed, NotFound, NotKnown, Precondition
from ..core.fields import NAME
from ..core.model import SYSTEM, Action
from ..core.rules import ROLES
from ..db.unit_of_work import UnitOfWork


def manage(tx: UnitOfWork, action: Action, now: int) -> None:
    """Carry out one administrative action. The caller has checked the permission."""
    args = {**action.args, "by": action.who}
    data = _VERBS[action.verb](tx, args, now)
    tx.admin_event(action, data, now)


def _own(a: dict[str, Any], actor: str, what: str) -> None:
    """Refuse changes of other people's accounts, except by admins."""
    if not permissions.owns(a["by"], actor):
        raise NotAllowed(f"{a['by'].name} cannot {what}", reason=f"it is {actor}'s, and only an admin may do that for others")


def _project_create(tx: UnitOfWork, a: dict[str, Any], now: int) -> dict[str, Any]:
    key = a["project"]
    if tx.run(tx.q["project"], {"workspace": tx.workspace, "key": key}).fetchone():
        raise Precondition(f"Cannot create project {key}", reason="there is one already")
    name = a.get("name") or key
    tx.run(tx.q["insert_project"], {"workspace": tx.workspace, "key": key, "name": name, "at": now})
    return {"project": key, "name": name}


def _project_set(tx: UnitOfWork, a: dict[str, Any], now: int) -> dict[str, Any]:
    name, key = a["setting"], a.get("project")
    value = settings.check(name, a["value"])
    if key is None:
        raw = tx.run(tx.q["workspace_head_for_update"], {"workspace": tx.workspace}).fetchone()[3]
    else:
        row = tx.run(tx.q["project_for_update"], {"workspace": tx.workspace, "key": key}).fetchone()
        if row is None:
            raise NotFound(f"There is no project {key}")
        raw = row[5]
    merged = {**json.loads(raw), name: value}
    shared = "{}" if key is None else row[6]
    effective = tx.store.settings(dumps(merged), shared)
    if effective["min_timeout"] > effective["max_timeout"]:
        raise Invalid("min_timeout cannot be longer than max_timeout")
    body = {"workspace": tx.workspace, "settings": dumps(merged)}
    if key is None:
        tx.run(tx.q["set_workspace"], body)
    else:
        tx.run(tx.q["set_project"], {**body, "key": key})
    return {"project": key, "setting": name, "value": value}


def _user_set(tx: UnitOfWork, a: dict[str, Any], now: int) -> dict[str, Any]:
    args = {"workspace": tx.workspace, "name": a["user"], "role": a["role"]}
    if tx.run(tx.q["set_user"], args).rowcount == 0:
        tx.run(tx.q["insert_user"], {**args, "at": now})
    return {"user": a["user"], "role": a["role"]}


def _user_remove(tx: UnitOfWork, a: dict[str, Any], now: int) -> dict[str, Any]:
    if tx.run(tx.q["remove_user"], {"workspace": tx.workspace, "name": a["user"], "at": now}).rowcount == 0:
        raise NotFound(f"There is no user {a['user']}", hint="See who is there with: turn user list")
    theirs = {"workspace": tx.workspace, "actor": f"human:{a['user']}", "at": now}
    for name in ("revoke_tokens_of", "end_logins_of", "drop_links_of"):
        tx.run(tx.q[name], theirs)
    return {"user": a["user"]}


def _token_create(tx: UnitOfWork, a: dict[str, Any], now: int) -> dict[str, Any]:
    actor = a.get("actor") or f"{'agent' if a['role'] == 'agent' else 'human'}:{a['name']}"
    kind, _, name = actor.partition(":")
    if kind != ("agent" if a["role"] == "agent" else "human") or not NAME.fullmatch(name):
        raise Invalid(
            f"A token of role {a['role']} cannot act as {actor}",
            hint="Agents' tokens act as agent:…, people's as human:…",
        )
    by, scopes = a["by"], permissions.scopes_of(a.get("scopes"), a["role"])
    if kind != "agent":  # any person may create tokens for agents
        _own(a, actor, f"create a token for {actor}")
    if not permissions.at_most(a["role"], by.role):
        why = f"they are only {'an' if by.role[0] in 'aeiou' else 'a'} {by.role} themselves"
        raise NotAllowed(f"{by.name} cannot create a token of role {a['role']}", reason=why)
    if not permissions.narrower(scopes, by.scopes) or (by.role == "agent" and "run" in (scopes or ())):
        why = f"their own is only for {', '.join(sorted(by.scopes or ()))}"
        raise NotAllowed(f"{by.name} cannot create a token that is good for more", reason=why)
    if any(row[0] == a["name"] and row[5] is None for row in tx.run(tx.q["tokens"], {"workspace": tx.workspace}).fetchall()):
        raise Precondition(
            f"Cannot create token {a['name']}",
            reason="there is one already",
            hint=f"Revoke it first: turn token revoke {a['name']}",
        )
    expires = now + a["expires"] if a.get("expires") else None
    tx.run(
        tx.q["insert_token"],
        {
            "workspace": tx.workspace,
            "name": a["name"],
            "actor": actor,
            "role": a["role"],
            "hash": secret_hash(a["secret"]),
            "scopes": " ".join(a.get("scopes") or ()),
            "by": by.name,
            "at": now,
            "expires": expires,
        },
    )
    data = {"token": a["name"], "actor": actor, "role": a["role"], "scopes": a.get("scopes") or []}
    return {**data, "created_by": by.name, "expires_at": expires}


def _token_revoke(tx: UnitOfWork, a: dict[str, Any], now: int) -> dict[str, Any]:
    for actor, maker in tx.run(tx.q["own_token"], {"workspace": tx.workspace, "name": a["name"]}).fetchall():
        if maker != a["by"].name:
            _own(a, actor, f"revoke the token {a['name']}")
    if tx.run(tx.q["revoke_token"], {"workspace": tx.workspace, "name": a["name"], "at": now}).rowcount == 0:
        raise NotFound(f"There is no token {a['name']}", hint="See them with: turn token list")
    return {"token": a["name"]}


def _password_set(tx: UnitOfWork, a: dict[str, Any], now: int) -> dict[str, Any]:
    """Ends all sessions of this person."""
    user = a["user"]
    _own(a, f"human:{user}", f"set the password of {user}")
    if tx.run(tx.q["set_password"], {"workspace": tx.workspace, "name": user, "password": a["secret"]}).rowcount == 0:
        raise NotFound(f"There is no user {user}", hint=f"Add them first: turn user add {user}")
    tx.run(tx.q["end_logins_of"], {"workspace": tx.workspace, "actor": f"human:{user}", "at": now})
    return {"user": user}


def _login(tx: UnitOfWork, a: dict[str, Any], now: int) -> dict[str, Any]:
    """The caller has checked the password; this checks that it has not changed since."""
    row = tx.run(tx.q["password"], {"workspace": tx.workspace, "name": a["user"]}).fetchone()
    if row is None or row[0] != a["proof"]:
        raise NotKnown("Wrong name or password")
    return _start_session(tx, a, f"human:{a['user']}", row[1], now)


def _start_session(tx: UnitOfWork, a: dict[str, Any], actor: str, role: str, now: int) -> dict[str, Any]:
    session = {"actor": actor, "role": role, "hash": secret_hash(a["secret"]), "about": a.get("about", "")}
    tx.run(tx.q["insert_login"], {"workspace": tx.workspace, **session, "at": now, "expires": now + a["expires"]})
    return {"user": actor.partition(":")[2], "expires_at": now + a["expires"]}


def _logout(tx: UnitOfWork, a: dict[str, Any], now: int) -> dict[str, Any]:
    here = {"workspace": tx.workspace, "id": a["login"]}
    row = tx.run(tx.q["login_of"], here).fetchone()
    if row is None or not permissions.owns(a["by"], row[0]):  # do not reveal the owner
        raise NotFound(f"There is no session {a['login']}")
    tx.run(tx.q["end_login"], {**here, "at": now})
    return {"user": row[0].partition(":")[2]}


def _link_create(tx: UnitOfWork, a: dict[str, Any], now: int) -> dict[str, Any]:
    """For oneself with one's own role; an admin also for others, with their roles."""
    user, by = a["user"], a["by"]
    _own(a, f"human:{user}", f"make a link for {user}")
    row = tx.run(tx.q["password"], {"workspace": tx.workspace, "name": user}).fetchone()
    if row is None and by.name != f"human:{user}":
        raise NotFound(f"There is no user {user}", hint=f"Add them first: turn user add {user}")
    role = min(row[1] if row else by.role, by.role, key=list(ROLES).index)
    tx.run(
        tx.q["insert_link"],
        {
            "workspace": tx.workspace, "actor": f"human:{user}", "role": role, "hash": secret_hash(a["secret"]), "by": by.name,
            "at": now, "expires": now + a["expires"],
        },
    )  # fmt: skip
    return {"user": user, "role": role, "expires_at": now + a["expires"]}


def _link_use(tx: UnitOfWork, a: dict[str, Any], now: int) -> dict[str, Any]:
    """Works once: of two concurrent requests, one gets a session."""
    here = {"workspace": tx.workspace, "hash": secret_hash(a["link_secret"])}
    if tx.run(tx.q["use_link"], {**here, "at": now}).rowcount == 0:
        raise NotKnown("This link is not valid any more", reason="it works once, for a short time", hint="Ask for a new one.")
    actor, role, _, _ = tx.run(tx.q["link"], here).fetchone()
    return _start_session(tx, a, actor, role, now)


def _prefs_set(tx: UnitOfWork, a: dict[str, Any], now: int) -> dict[str, Any]:
    actor = f"human:{a['user']}"
    if a["by"].name != actor:
        raise NotAllowed(f"{a['by'].name} cannot change preferences of {a['user']}")
    row = tx.run(tx.q["prefs"], {"workspace": tx.workspace, "actor": actor}).fetchone()
    prefs = {name: value for name, value in {**json.loads(row[0] if row else "{}"), **a["prefs"]}.items() if value is not None}
    if len(prefs) > 100:
        raise Invalid("Too many preferences", reason="at most 100")
    tx.run(tx.q["set_prefs"], {"workspace": tx.workspace, "actor": actor, "body": dumps(prefs)})
    return {"user": a["user"], "names": sorted(a["prefs"])}


def standing(tx: UnitOfWork) -> dict[int, list[int]]:
    """What a restore voids: claimed tasks, and granted permissions of open ones, by task."""
    voided: dict[int, list[int]] = {}
    for task, question in tx.run(tx.q["standing"], {"workspace": tx.workspace}).fetchall():
        voided.setdefault(task, []).extend([question] if question else [])
    return voided


def _restore(tx: UnitOfWork, a: dict[str, Any], now: int) -> dict[str, Any]:
    """Void claims and permissions. `fenced_at` is later than all times in the desk, so it separates before and after."""
    here = {"workspace": tx.workspace}
    void = standing(tx)
    fenced_at = max(now, tx.run(tx.q["latest_moment"], here).fetchone()[0] + 1)
    tx.run(tx.q["fence_workspace"], {**here, "at": fenced_at})
    tx.run(tx.q["end_logins"], {**here, "at": fenced_at})
    tx.run(tx.q["remove_workers"], here)  # those that run register again
    tx.run(tx.q["drop_links"], {**here, "before": 2**62})
    for task, approvals in void.items():
        tx.save(decide(tx.case(task)[0], Action("fence", SYSTEM, {"approvals": approvals}, task), fenced_at))
    return {"source": a.get("source", ""), "fenced_at": fenced_at, "tasks": len(void)}


_VERBS = {
    "project_create": _project_create,
    "project_set": _project_set,
    "user_set": _user_set,
    "user_remove": _user_remove,
    "token_create": _token_create,
    "token_revoke": _token_revoke,
    "password_set": _password_set,
    "login": _login,
    "logout": _logout,
    "link_create": _link_create,
    "link_use": _link_use,
    "prefs_set": _prefs_set,
    "restore": _restore,
}
