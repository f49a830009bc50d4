"""Administration: projects, users, preferences, sessions, links and tokens."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from ..core.errors import Invalid, KeyReused, NotKnown
from ..core.fields import NAME
from ..core.model import DAY, MINUTE, Who
from ..db.reads import Reader
from . import serialize
from .refs import ClientBase, needs_database

#: Lifetime of a session and of a link.
SESSION, LINK = 30 * DAY, 15 * MINUTE
#: Limits of login attempts in a quarter of an hour: for one name, and from one address.
TRIES_BY_NAME, TRIES_BY_ADDRESS = 10, 50


def new_secret(sort: str) -> str:
    """A random secret for a token ("yt"), a link ("yl") or a session ("ys")."""
    return f"{sort}_{os.urandom(24).hex()}"


def _secret(sort: str, secret: str | None) -> str:
    if secret is not None and not re.fullmatch(rf"{sort}_[0-9a-f]{{48}}", secret):
        raise Invalid("Invalid secret", reason=f"it must be {sort}_ and 48 random hexadecimal digits", hint="Leave it out.")
    return secret or new_secret(sort)


def _no_link() -> NotKnown:
    return NotKnown("This link is not valid any more", reason="it works once, for a short time", hint="Ask for a new one.")


class Admin(ClientBase):
    def create_project(self, key: str, name: str | None = None, *, once: str | None = None) -> dict[str, Any]:
        """Create a project. `once` is the idempotency key, because `key` is the key of the project."""
        self.do("project_create", key=once, project=key, name=name)
        return next(p for p in self.projects() if p["key"] == key.upper())

    def projects(self) -> list[dict[str, Any]]:
        def look(r: Reader) -> list[dict[str, Any]]:
            return [
                {
                    "key": key,
                    "name": name,
                    "open_tasks": count,
                    "settings": serialize.settings(self.desk.store.settings(own, shared)),
                    "created_at": serialize.time(at),
                }
                for key, name, own, shared, at, count in r.projects()
            ]

        return self.desk.read(look)

    def set(self, setting: str, value: Any, project: str | None = None, *, key: str | None = None) -> None:
        self.do("project_set", key=key, setting=setting, value=value, project=project)

    # --- people -----------------------------------------------------------------------------------------------------

    def users(self) -> list[dict[str, Any]]:
        self._check("users")
        return self.desk.read(
            lambda r: [{"name": n, "role": role, "created_at": serialize.time(at)} for n, role, at in r.users()]
        )

    def set_user(self, name: str, role: str = "member", *, key: str | None = None) -> dict[str, Any]:
        self.do("user_set", key=key, user=name, role=role)
        return next(user for user in self.users() if user["name"] == name)

    def remove_user(self, name: str, *, key: str | None = None) -> None:
        self.do("user_remove", key=key, user=name)

    def set_password(self, name: str, password: str, *, key: str | None = None) -> None:
        """Set a person's password and end their sessions: one's own, or, as an admin, any person's."""
        from ..desk import passwords

        self.do("password_set", key=key, user=name, secret=passwords.make(password))

    def preferences(self) -> dict[str, Any]:
        """The preferences of the actor."""
        self._check("prefs")
        preferences: dict[str, Any] = self.desk.read_stored(lambda r: r.prefs(self.who.name))
        return preferences

    def set_preferences(self, *, key: str | None = None, **values: Any) -> dict[str, Any]:
        """Change some preferences; None removes one."""
        self.do("prefs_set", key=key, user=self.who.name.partition(":")[2], prefs=values)
        return self.preferences()

    # --- sessions ---------------------------------------------------------------------------------------------------

    @needs_database
    def login(self, name: str, password: str, *, address: str = "", about: str = "", lasts: Any = None) -> dict[str, Any]:
        """Open a session with a password. Returns its secret as `session`, which is not stored. `address`: of the browser."""
        from ..desk import passwords, rate_limits

        if address:
            why = "Too many login attempts from this address"
            rate_limits.take(self.desk, "login from", address, TRIES_BY_ADDRESS, 15 * MINUTE, why)
        why = "Too many login attempts with this name"
        rate_limits.take(self.desk, "login as", name[:200], TRIES_BY_NAME, 15 * MINUTE, why)
        row = None
        if NAME.fullmatch(name):
            row = self.desk.credentials.row("password", name=name)
        proof = row[0] if row else None
        if not passwords.proves(password, proof) or row is None:
            raise NotKnown("Wrong name or password")
        rate_limits.forget(self.desk, "login as", name[:200])
        return self._enter("login", Who(f"human:{name}", row[1]), about, lasts, user=name, proof=proof)

    @needs_database
    def use_link(self, link: str, *, about: str = "", lasts: Any = None) -> dict[str, Any]:
        """Open a session with a link, which works once."""
        who, _, _ = self._link(link)
        return self._enter("link_use", who, about, lasts, link_secret=link)

    @needs_database
    def whose_link(self, link: str) -> str:
        """The actor that a link logs in. The link is not used by this."""
        who, ends, used = self._link(link)
        if used is not None or ends <= self.desk.read(lambda r: r.now):
            raise _no_link()
        return who.name

    def _link(self, link: str) -> tuple[Who, int, int | None]:
        from ..core.canonical_json import secret_hash

        row = self.desk.credentials.row("link", hash=secret_hash(link[:200]))
        if row is None:
            raise _no_link()
        return Who(row[0], row[1]), row[2], row[3]

    def _enter(self, verb: str, who: Who, about: str, lasts: Any, **proof: Any) -> dict[str, Any]:
        secret = new_secret("ys")
        entering = type(self)(self.desk.as_(who), self._project)
        entering.do(verb, secret=secret, expires=lasts or SESSION // 1_000_000, about=about[:200] or None, **proof)
        number, who, ends = self.desk.credentials.of_session(secret)
        return {"session": secret, "id": number, "actor": who.name, "role": who.role, "expires_at": serialize.time(ends)}

    def sessions(self) -> list[dict[str, Any]]:
        """Sessions: an admin sees all, others their own."""
        from ..core.permissions import owns

        self._check("sessions")
        names = ("id", "actor", "role", "about", "created_at", "expires_at")
        rows = self.desk.read_stored(lambda r: r.sessions())
        return [
            dict(zip(names, [*row[:4], *map(serialize.time, row[4:])], strict=True)) for row in rows if owns(self.who, row[1])
        ]

    @needs_database
    def logout(self, session: str) -> None:
        """End the session with this secret."""
        number, who, _ = self.desk.credentials.of_session(session)
        type(self)(self.desk.as_(who), self._project).do("logout", login=number)

    def end_session(self, number: int, *, key: str | None = None) -> None:
        """End a session by its number: one's own, or, as an admin, any session."""
        self.do("logout", key=key, login=number)

    def create_link(
        self, name: str | None = None, *, lasts: Any = None, secret: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Create a `link` that logs a person in, once: oneself, or, as an admin, any person. Only the result contains it.

        `secret`: the link itself, from `new_secret("yl")`, so that a retry of a lost request returns the same link.
        """
        secret = _secret("yl", secret)
        user = name or self.who.name.partition(":")[2]
        self.do("link_create", key=key, user=user, secret=secret, expires=lasts or LINK // 1_000_000)
        if key is not None:
            self._require_stored("link", secret, "Create a new one with a new key.")
        return {"link": secret, "actor": f"human:{user}"}

    # --- tokens -----------------------------------------------------------------------------------------------------

    def tokens(self) -> list[dict[str, Any]]:
        """Tokens: an admin sees all, others their own."""
        from ..core.permissions import owns

        self._check("tokens")
        names = ("name", "actor", "role", "created_at", "expires_at", "revoked_at", "scopes", "created_by")
        return [
            dict(zip(names, [*row[:3], *map(serialize.time, row[3:6]), row[6].split(), row[7]], strict=True))
            for row in self.desk.read(lambda r: r.tokens())
            if owns(self.who, row[1]) or row[7] == self.who.name
        ]

    def create_token(
        self, name: str, role: str = "agent", *, actor: str | None = None, scopes: Iterable[str] | None = None,
        expires: Any = None, secret: str | None = None, key: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Create a token; only the result contains it. An admin creates tokens for any actor, others for themselves.

        `scopes`: what the token allows: read, ask, work, run, answer, manage. `secret`: the token itself, from
        `new_secret("yt")`, so that a retry of a lost request returns the same token.
        """
        secret = _secret("yt", secret)
        wanted = list(scopes) if scopes is not None else None
        self.do("token_create", key=key, name=name, role=role, actor=actor, scopes=wanted, expires=expires, secret=secret)
        if key is not None:
            self._require_stored("token", secret, f"Revoke it: turn token revoke {name}. Then create a new one, with a new key.")
        return {"token": secret, **next(t for t in reversed(self.tokens()) if t["name"] == name)}

    def _require_stored(self, what: str, secret: str, hint: str) -> None:
        """Raises KeyReused if another secret was created with the same idempotency key, which cannot be shown again."""
        from ..core.canonical_json import secret_hash

        if self.desk.credentials.row(what, hash=secret_hash(secret)) is None:
            raise KeyReused(f"This {what} was created already, and shown once", hint=hint)

    def revoke_token(self, name: str, *, key: str | None = None) -> None:
        self.do("token_revoke", key=key, name=name)
