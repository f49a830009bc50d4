"""The office: projects, people, tokens and sessions."""

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

#: How long a session lasts, and a link.
SESSION, LINK = 30 * DAY, 15 * MINUTE
#: Tries to log in, in a quarter of an hour: with one name, and from one address.
TRIES, FROM_HERE = 10, 50


def new_secret(sort: str) -> str:
    """Of a token ("yt"), a link ("yl") or a session ("ys")."""
    return f"{sort}_{os.urandom(24).hex()}"


def _secret(sort: str, given: str | None) -> str:
    if given is not None and not re.fullmatch(rf"{sort}_[0-9a-f]{{48}}", given):
        raise Invalid("secret does not fit", reason=f"{sort}_ and 48 random hexadecimal digits are wanted", hint="Leave it out.")
    return given or new_secret(sort)


def _no_link() -> NotKnown:
    return NotKnown("This link is not good any more", reason="it works once, and not for long", hint="Ask for a new one.")


class Admin(ClientBase):
    def create_project(self, key: str, name: str | None = None, *, once: str | None = None) -> dict[str, Any]:
        """`once` is an idempotency key: `key` is the project's here."""
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
        """Give a person a password: oneself, or, for an admin, anybody. Their sessions end."""
        from ..desk import passwords

        self.do("password_set", key=key, user=name, secret=passwords.make(password))

    def preferences(self) -> dict[str, Any]:
        """How you like things."""
        self._check("prefs")
        found: dict[str, Any] = self.desk.read_stored(lambda r: r.prefs(self.who.name))
        return found

    def set_preferences(self, *, key: str | None = None, **values: Any) -> dict[str, Any]:
        """Change some; None forgets one."""
        self.do("prefs_set", key=key, user=self.who.name.partition(":")[2], prefs=values)
        return self.preferences()

    # --- sessions ---------------------------------------------------------------------------------------------------

    @needs_database
    def login(self, name: str, password: str, *, address: str = "", about: str = "", lasts: Any = None) -> dict[str, Any]:
        """Let a person in: `session` is the secret of their browser, and nowhere else. `address`: where they are."""
        from ..desk import passwords, rate_limits

        if address:
            rate_limits.take(self.desk, "login from", address, FROM_HERE, 15 * MINUTE, "Too many tries to log in from there")
        rate_limits.take(self.desk, "login as", name[:200], TRIES, 15 * MINUTE, "Too many tries to log in with that name")
        row = None
        if NAME.fullmatch(name):
            row = self.desk.credentials.row("password", name=name)
        proof = row[0] if row else None
        if not passwords.proves(password, proof) or row is None:
            raise NotKnown("The name or the password is not right")
        rate_limits.forget(self.desk, "login as", name[:200])
        return self._enter("login", Who(f"human:{name}", row[1]), about, lasts, user=name, proof=proof)

    @needs_database
    def use_link(self, link: str, *, about: str = "", lasts: Any = None) -> dict[str, Any]:
        """Let in who comes with a link. It works once."""
        who, _, _ = self._link(link)
        return self._enter("link_use", who, about, lasts, link_secret=link)

    @needs_database
    def whose_link(self, link: str) -> str:
        """Whom a link would let in. It is as good afterwards as before."""
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
        """Who is logged in: an admin sees everybody's, others their own."""
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
        """End a session by its number: one's own, or, for an admin, anybody's."""
        self.do("logout", key=key, login=number)

    def create_link(
        self, name: str | None = None, *, lasts: Any = None, secret: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """A `link` that lets a person in, once: oneself, or, for an admin, anybody. It is in the result, and nowhere else.

        `secret`: the link itself, as `new_secret("yl")` makes it; who brings it gets the same link when it is said again.
        """
        secret = _secret("yl", secret)
        user = name or self.who.name.partition(":")[2]
        self.do("link_create", key=key, user=user, secret=secret, expires=lasts or LINK // 1_000_000)
        if key is not None:
            self._new("link", secret, "Make a new one with a new key.")
        return {"link": secret, "actor": f"human:{user}"}

    # --- tokens -----------------------------------------------------------------------------------------------------

    def tokens(self) -> list[dict[str, Any]]:
        """An admin sees everybody's, others their own."""
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
        """The token is in the result, and nowhere else. An admin makes one for anybody, others for themselves.

        `scopes`: good for these only: read, ask, work, run, answer, manage. `secret`: the token itself, as `new_secret("yt")`
        makes it; who brings it gets the same token when it is said again.
        """
        secret = _secret("yt", secret)
        wanted = list(scopes) if scopes is not None else None
        self.do("token_create", key=key, name=name, role=role, actor=actor, scopes=wanted, expires=expires, secret=secret)
        if key is not None:
            self._new("token", secret, f"Revoke it with: turn token revoke {name}. Then make a new one, with a new key.")
        return {"token": secret, **next(t for t in reversed(self.tokens()) if t["name"] == name)}

    def _new(self, what: str, secret: str, hint: str) -> None:
        """With an idempotency key it may have been made before; then its secret was shown, and is not known any more."""
        from ..core.canonical_json import secret_hash

        if self.desk.credentials.row(what, hash=secret_hash(secret)) is None:
            raise KeyReused(f"This {what} was made already, and shown once", hint=hint)

    def revoke_token(self, name: str, *, key: str | None = None) -> None:
        self.do("token_revoke", key=key, name=name)
