"""Projects, people and tokens: changes that concern no task. They leave events too, in the workspace's own chain."""

from __future__ import annotations

import json
from typing import Any

from .core import law, settings
from .core.canon import dumps, secret_hash
from .core.errors import Invalid, NotFound, Precondition
from .core.fields import NAME
from .core.model import SYSTEM, Action
from .store.tx import Tx


def manage(tx: Tx, action: Action, now: int) -> None:
    """Decide and write one office action. The caller has checked who may."""
    said = _VERBS[action.verb](tx, dict(action.args), now)
    tx.office_event(action, said, now)


def _project_create(tx: Tx, a: dict[str, Any], now: int) -> dict[str, Any]:
    key = a["project"]
    if tx.run(tx.q["project"], {"workspace": tx.workspace, "key": key}).fetchone():
        raise Precondition(f"Cannot create project {key}", reason="there is one already")
    name = a.get("name") or key
    tx.run(tx.q["insert_project"], {"workspace": tx.workspace, "key": key, "name": name, "at": now})
    return {"project": key, "name": name}


def _project_set(tx: Tx, a: dict[str, Any], now: int) -> dict[str, Any]:
    name, key = a["setting"], a.get("project")
    value = settings.check(name, a["value"])
    if key is None:
        raw = tx.run(tx.q["office_head"], {"workspace": tx.workspace}).fetchone()[3]
    else:
        row = tx.run(tx.q["project_for_update"], {"workspace": tx.workspace, "key": key}).fetchone()
        if row is None:
            raise NotFound(f"There is no project {key}")
        raw = row[5]
    both = {**json.loads(raw), name: value}
    shared = "{}" if key is None else row[6]
    merged = tx.store.settings(dumps(both), shared)
    if merged["min_timeout"] > merged["max_timeout"]:
        raise Invalid("min_timeout cannot be longer than max_timeout")
    body = {"workspace": tx.workspace, "settings": dumps(both)}
    if key is None:
        tx.run(tx.q["set_workspace"], body)
    else:
        tx.run(tx.q["set_project"], {**body, "key": key})
    return {"project": key, "setting": name, "value": value}


def _user_set(tx: Tx, a: dict[str, Any], now: int) -> dict[str, Any]:
    args = {"workspace": tx.workspace, "name": a["user"], "role": a["role"]}
    if tx.run(tx.q["set_user"], args).rowcount == 0:
        tx.run(tx.q["insert_user"], {**args, "at": now})
    return {"user": a["user"], "role": a["role"]}


def _user_remove(tx: Tx, a: dict[str, Any], now: int) -> dict[str, Any]:
    if tx.run(tx.q["remove_user"], {"workspace": tx.workspace, "name": a["user"], "at": now}).rowcount == 0:
        raise NotFound(f"There is no user {a['user']}", hint="See who is there with: turn user list")
    tx.run(tx.q["revoke_tokens_of"], {"workspace": tx.workspace, "actor": f"human:{a['user']}", "at": now})
    return {"user": a["user"]}


def _token_create(tx: Tx, a: dict[str, Any], now: int) -> dict[str, Any]:
    actor = a.get("actor") or f"{'agent' if a['role'] == 'agent' else 'human'}:{a['name']}"
    sort, _, name = actor.partition(":")
    if sort != ("agent" if a["role"] == "agent" else "human") or not NAME.fullmatch(name):
        raise Invalid(
            f"A token of role {a['role']} cannot act as {actor}",
            hint="Agents' tokens act as agent:…, people's as human:…",
        )
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
            "at": now,
            "expires": expires,
        },
    )
    return {"token": a["name"], "actor": actor, "role": a["role"], "expires_at": expires}


def _token_revoke(tx: Tx, a: dict[str, Any], now: int) -> dict[str, Any]:
    if tx.run(tx.q["revoke_token"], {"workspace": tx.workspace, "name": a["name"], "at": now}).rowcount == 0:
        raise NotFound(f"There is no token {a['name']}", hint="See them with: turn token list")
    return {"token": a["name"]}


def standing(tx: Tx) -> dict[int, list[int]]:
    """What a restore voids: tasks that somebody holds, and open ones with permissions that were given."""
    found: dict[int, list[int]] = {}
    for task, question in tx.run(tx.q["standing"], {"workspace": tx.workspace}).fetchall():
        found.setdefault(task, []).extend([question] if question else [])
    return found


def _restore(tx: Tx, a: dict[str, Any], now: int) -> dict[str, Any]:
    """Fence the past. Later than anything that was ever written here, so that before and after can be told apart by time."""
    here = {"workspace": tx.workspace}
    void = standing(tx)
    fenced_at = max(now, tx.run(tx.q["latest_moment"], here).fetchone()[0] + 1)
    tx.run(tx.q["fence_workspace"], {**here, "at": fenced_at})
    for task, approvals in void.items():
        tx.save(law.decide(tx.case(task)[0], Action("fence", SYSTEM, {"approvals": approvals}, task), fenced_at))
    return {"source": a.get("source", ""), "fenced_at": fenced_at, "tasks": len(void)}


_VERBS = {
    "project_create": _project_create,
    "project_set": _project_set,
    "user_set": _user_set,
    "user_remove": _user_remove,
    "token_create": _token_create,
    "token_revoke": _token_revoke,
    "restore": _restore,
}
