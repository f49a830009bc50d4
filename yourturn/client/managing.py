"""The office: projects, people and tokens."""

from __future__ import annotations

import os
from typing import Any

from .. import wire
from ..store.reads import Reader
from .names import Names


class Managing(Names):
    def create_project(self, key: str, name: str | None = None) -> dict[str, Any]:
        self.do("project_create", project=key, name=name)
        return next(p for p in self.projects() if p["key"] == key.upper())

    def projects(self) -> list[dict[str, Any]]:
        def look(r: Reader) -> list[dict[str, Any]]:
            return [
                {
                    "key": key,
                    "name": name,
                    "open_tasks": count,
                    "settings": wire.settings(self.desk.store.settings(own, shared)),
                    "created_at": wire.time(at),
                }
                for key, name, own, shared, at, count in r.projects()
            ]

        return self.desk.read(look)

    def set(self, setting: str, value: Any, project: str | None = None) -> None:
        self.do("project_set", setting=setting, value=value, project=project)

    def users(self) -> list[dict[str, Any]]:
        return self.desk.read(lambda r: [{"name": n, "role": role, "created_at": wire.time(at)} for n, role, at in r.users()])

    def set_user(self, name: str, role: str = "member") -> dict[str, Any]:
        self.do("user_set", user=name, role=role)
        return next(user for user in self.users() if user["name"] == name)

    def remove_user(self, name: str) -> None:
        self.do("user_remove", user=name)

    def tokens(self) -> list[dict[str, Any]]:
        names = ("name", "actor", "role", "created_at", "expires_at", "revoked_at")
        return self.desk.read(
            lambda r: [dict(zip(names, [*row[:3], *map(wire.time, row[3:])], strict=True)) for row in r.tokens()]
        )

    def create_token(self, name: str, role: str = "agent", *, actor: str | None = None, expires: Any = None) -> dict[str, Any]:
        """The token is in the result, and nowhere else."""
        secret = f"yt_{os.urandom(24).hex()}"
        self.do("token_create", name=name, role=role, actor=actor, expires=expires, secret=secret)
        return {"token": secret, **next(t for t in reversed(self.tokens()) if t["name"] == name)}

    def revoke_token(self, name: str) -> None:
        self.do("token_revoke", name=name)
