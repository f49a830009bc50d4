"""Permissions: one table for every surface.

An **operation** is a verb of the rules, a read, or an administrative change. `NEEDS` has the requirement of each operation,
`GRANTS` what a role fulfils. A surface names the operation of each of its routes, pages and tools and calls `may`; tests fail
for an operation without a row. The requirement of a verb is read from the rules, so it cannot differ from them.

    open      no credential
    look      any credential: people and agents
    own       a person for their own account; an admin for any account
    any       people and agents, but not viewers
    holder    the holder of the claim
    human     a person who is not a viewer
    approver  a person who may sign off
    admin     an admin

A token can be limited to **scopes**: then it allows only what they name, whatever its role. A token of an agent without
scopes has `work`. Every token may read.

    read      read
    ask       ask people, write notes and tasks, use permissions
    work      ask; claim tasks and report results
    run       work; claim runs, write their journals, create tokens for their agents: the scope of a worker
    answer    ask; and all verbs of people about tasks
    manage    projects, people, tokens, the own account

This check comes first; the rules, which know the task, the claim and the settings, may still refuse.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from .decide import may_ever
from .errors import NotAllowed, NotKnown
from .model import SYSTEM, Who
from .rules import ADMIN_VERBS, ALIASES, ROLES, TRANSITIONS

LEVELS = ("open", "look", "own", "any", "holder", "human", "approver", "admin", "system")

#: Alias -> verb.
_MEANT = {word: verb for (word, _), verb in ALIASES.items()}

GRANTS: dict[str, frozenset[str]] = {role: frozenset({"open", "look", *groups}) for role, groups in ROLES.items()}


def _least(verb: str) -> str:
    """The weakest requirement of a verb in the table."""
    groups = {who for (_, other), rule in TRANSITIONS.items() if other == _MEANT.get(verb, verb) for who in rule.who}
    return min(groups, key=LEVELS.index)


_READS: dict[str, str] = {
    # every credential
    "tasks": "look",
    "questions": "look",
    "events": "look",
    "projects": "look",
    "stats": "look",
    "output": "look",
    "page": "look",
    # not for agents
    "users": "own",
    "sessions": "own",
    "prefs": "own",
    "tokens": "own",
    # the whole desk
    "export": "admin",
    "backup": "admin",
    "audit": "human",
    "trial": "any",
    # health checks
    "health": "open",
    "document": "open",
    "metrics": "look",
}

#: Changes that are not verbs.
_OTHER: dict[str, str] = {"import_all": "admin", "reconcile": "any", "presence": "any", "enter": "open", "mcp": "any"}

#: operation -> requirement.
NEEDS: dict[str, str] = {
    **{verb: _least(verb) for verb in {verb for _, verb in TRANSITIONS} | {verb for verb, _ in ALIASES}},
    **ADMIN_VERBS,
    **_READS,
    **_OTHER,
}

#: Client method -> operation, where the names differ.
METHODS: dict[str, str] = {
    **dict.fromkeys(("list", "ready", "next", "show", "tree", "counts", "holds_up", "moves", "graph"), "tasks"),
    **dict.fromkeys(("journal", "steps", "program", "patch", "now", "claim_is_for", "workers", "unattended"), "tasks"),
    **dict.fromkeys(("inbox", "waiting", "waits", "wait_for", "effects", "lands"), "questions"),
    **dict.fromkeys(("history", "log", "events", "watch", "follow", "desk_cursor", "sleep_until_due"), "events"),
    "check_question": "trial",
    "totals": "stats",
    "claim_next": "claim",
    "start": "create",
    "answer_and_claim": "answer",
    "await_person": "flag",
    "respond": "answer",
    "depend": "dep_add",
    "undepend": "dep_remove",
    "record": "step",
    "write_output": "holder",
    "keep_patch": "holder",
    **dict.fromkeys(("register_worker", "renew_worker", "remove_worker"), "presence"),
    "create_project": "project_create",
    "set": "project_set",
    "set_user": "user_set",
    "remove_user": "user_remove",
    "create_token": "token_create",
    "revoke_token": "token_revoke",
    "set_password": "password_set",
    "login": "enter",
    "use_link": "enter",
    "whose_link": "enter",
    "logout": "logout",
    "end_session": "logout",
    "create_link": "link_create",
    "preferences": "prefs",
    "set_preferences": "prefs_set",
    "import_": "import_all",
}

NEEDS["holder"] = "any"


def _verbs_of(*levels: str) -> set[str]:
    verbs = {verb for (_, verb), rule in TRANSITIONS.items() if rule.who & set(levels)}
    return verbs | {verb for verb, _ in ALIASES} if "human" in levels else verbs


def _reads_with(*levels: str) -> set[str]:
    return {name for name, need in {**_READS, **_OTHER}.items() if need in levels}


#: Operations that a worker's token has beyond its agent role, for the agents that it starts.
FOR_ITS_AGENTS = frozenset({"token_create", "token_revoke", "tokens"})

#: scope -> operations. A scope never extends a role, except for the row above.
SCOPES: dict[str, frozenset[str]] = {"read": frozenset(_reads_with("open", "look"))}
SCOPES["ask"] = SCOPES["read"] | {"create", "ask", "flag", "note", "withdraw", "use", "trial", "reconcile", "mcp"}
SCOPES["work"] = SCOPES["ask"] | (_verbs_of("any", "holder") - {"step", "rewind"}) | {"holder", "presence"}
SCOPES["run"] = SCOPES["work"] | {"step", "rewind"} | FOR_ITS_AGENTS
SCOPES["answer"] = SCOPES["ask"] | _verbs_of("human", "approver", "admin") | {"update", "dep_add"}
SCOPES["manage"] = SCOPES["read"] | ADMIN_VERBS.keys() | _reads_with("own", "human", "admin")

#: Default scopes of a token by role. None: not limited.
USUAL: dict[str, frozenset[str] | None] = {role: frozenset({"work"}) if role == "agent" else None for role in ROLES}


@cache
def _within(scopes: frozenset[str]) -> frozenset[str]:
    return frozenset().union(SCOPES["read"], *(SCOPES[name] for name in scopes))


def in_scope(who: Who, name: str) -> bool:
    return who.scopes is None or name in _within(who.scopes)


def check_scope(who: Who, name: str) -> None:
    """Raises NotAllowed if the token's scopes do not cover the operation."""
    if in_scope(who, name):
        return
    assert who.scopes is not None
    takes = " or ".join(scope for scope, operations in SCOPES.items() if name in operations) or "none"
    raise NotAllowed(
        f"{who.name} cannot {name.replace('_', ' ')}",
        reason=f"its token is for {', '.join(sorted(who.scopes))}, and this takes {takes}",
        hint="Make another one: turn token create NAME --scope …",
    )


def narrower(scopes: frozenset[str] | None, other: frozenset[str] | None) -> bool:
    """True if the first scopes allow nothing beyond the second."""
    return other is None or (scopes is not None and _within(scopes) <= _within(other))


def scopes_of(names: Iterable[str] | None, role: str) -> frozenset[str] | None:
    """The scopes of a token as given at its creation."""
    return frozenset(names) if names else USUAL[role]


def addressed(who: Who) -> frozenset[str] | None:
    """Assignees whose questions count as this actor's: the name and the roles. None: the actor answers no questions.

    All surfaces share this meaning of "mine": unassigned questions, and those assigned to one of these.
    """
    if "human" not in GRANTS[who.role]:
        return None
    roles = {role for role in ROLES if "human" in GRANTS[role] and at_most(role, who.role)}
    return frozenset({who.name, who.name.partition(":")[2], "anybody", *GRANTS[who.role], *roles})


def is_mine(who: Who, reviewer: str | None) -> bool:
    mine = addressed(who)
    return mine is not None and (reviewer is None or reviewer in mine)


def operation(method: str) -> str:
    """The operation of a client method."""
    return METHODS.get(method, method)


def reads(method: str) -> bool:
    """True if the client method only reads."""
    return operation(method) in _READS


#: Idempotent methods that write: they take no idempotency key.
SAME_TWICE = frozenset({"keep_patch", "reconcile", "register_worker", "renew_worker", "remove_worker"})


def may(who: Who | None, name: str) -> bool:
    """True if the actor may. `who` is None without a credential."""
    need = NEEDS[name]
    if who is None:
        return need == "open"
    for_agents = name in FOR_ITS_AGENTS and "run" in (who.scopes or ())
    return in_scope(who, name) and (need in GRANTS[who.role] or for_agents)


def check(who: Who | None, name: str) -> None:
    """Raises NotKnown or NotAllowed if the actor may not."""
    if may(who, name):
        return
    if who is None:
        raise NotKnown("Not logged in", reason="no credential was sent", hint="Send a token: Authorization: Bearer …, or log in.")
    if name not in ADMIN_VERBS and name not in _READS and name not in _OTHER and name != "holder":
        may_ever(name, who)  # for the message of the rules
    if NEEDS[name] in GRANTS[who.role]:
        check_scope(who, name)
    need, words = NEEDS[name], name.replace("_", " ")
    if need in ("own", "human") and who.role == "agent":
        why = "only people can"
    elif who.role == "viewer":
        why = "a viewer only looks"
    else:
        why = f"only {_a(need)} can, and {who.name} is {_a(who.role)}"
    use = "use " if name in _READS or name in _OTHER else ""
    raise NotAllowed(f"{who.name} cannot {use}{words}", reason=why)


def _a(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def owns(who: Who, actor: str) -> bool:
    """True if the account is the actor's own."""
    return who == SYSTEM or who.role == "admin" or (who.is_person and who.name == actor)


def at_most(role: str, other: str) -> bool:
    """True if the first role has no right that the second lacks."""
    return GRANTS[role] <= GRANTS[other]
