"""The tables of schema.sql, for dumps, restores and checks."""

from __future__ import annotations

from typing import NamedTuple


class Table(NamedTuple):
    name: str
    order: tuple[str, ...]  #: the primary key
    numbered: bool = True  #: the database assigns the ids
    left_out: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()  #: columns for backups only; "*" is the whole table


#: In the order of their references.
TABLES: tuple[Table, ...] = (
    Table("workspaces", ("id",), left_out=("next_question",)),
    Table("projects", ("id",)),
    Table("users", ("id",), secret=("password",)),
    Table("tokens", ("id",), secret=("*",)),
    Table("logins", ("id",), secret=("*",)),
    Table("links", ("id",), secret=("*",)),
    Table("prefs", ("workspace_id", "actor {bytewise}"), numbered=False),
    Table("rates", ("workspace_id", "name {bytewise}"), numbered=False, secret=("*",)),
    Table("tasks", ("id",), secret=("claim_hash",)),
    Table("deps", ("task_id", "needs_id"), numbered=False),
    Table("questions", ("workspace_id", "id"), numbered=False),
    Table("notes", ("id",)),
    Table("steps", ("task_id", "journal", "place {bytewise}"), numbered=False),
    Table("programs", ("id",)),
    Table("events", ("seq",), left_out=("xid",)),
    Table("output", ("id",)),
    Table("patches", ("task_id",), numbered=False),
    Table("workers", ("workspace_id", "actor {bytewise}", "name {bytewise}"), numbered=False, secret=("*",)),
    Table("replies", ("workspace_id", "actor {bytewise}", "key {bytewise}"), numbered=False),
)
