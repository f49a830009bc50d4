"""Every page: which operation of the table of access it is, and who draws it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Row(NamedTuple):
    method: str
    path: str
    operation: str  #: of core/access.py
    handler: Callable[[Any], Any]


def rows() -> list[Row]:
    from . import activity, answering, board, door, editing, inbox, moving, numbers, question, settings, task

    return [
        Row("GET", "/", "page", door.home),
        Row("GET", "/login", "enter", door.show),
        Row("POST", "/login", "enter", door.enter),
        Row("GET", "/enter", "enter", door.home),
        Row("POST", "/enter", "enter", door.use_link),
        Row("GET", "/enter/{link}", "enter", door.link),
        Row("POST", "/logout", "logout", door.leave),
        Row("GET", "/offline", "enter", door.away),
        Row("GET", "/inbox", "questions", inbox.show),
        Row("GET", "/inbox/counts", "questions", inbox.counts),
        Row("POST", "/inbox/preview", "answer", inbox.preview),
        Row("POST", "/inbox/send", "answer", inbox.send),
        Row("GET", "/questions/{id}", "questions", question.show),
        Row("POST", "/questions/{id}/answer", "answer", answering.answer),
        Row("GET", "/questions/{id}/cancel", "questions", question.cancel),
        Row("GET", "/questions/{id}/edit", "questions", editing.edit),
        Row("POST", "/questions/{id}/edit", "answer", editing.edited),
        Row("POST", "/questions/{id}/late", "answer", answering.late),
        Row("POST", "/questions/{id}/back", "hand_back", answering.hand_back),
        Row("GET", "/tasks", "tasks", board.show),
        Row("GET", "/tasks/new", "create", board.new),
        Row("POST", "/tasks/new", "create", board.create),
        Row("GET", "/tasks/{key}", "tasks", task.show),
        Row("GET", "/tasks/{key}/log", "output", task.log),
        Row("GET", "/tasks/{key}/live", "output", task.live),
        Row("POST", "/tasks/{key}/note", "note", task.note),
        *(Row("GET", f"/tasks/{{key}}/{name}", name, moving.asking(name)) for name, w in moving.WORDS.items() if w.asks),
        *(Row("POST", f"/tasks/{{key}}/{name}", name, moving.making(name)) for name in moving.WORDS),
        Row("GET", "/activity", "events", activity.show),
        Row("GET", "/stats", "stats", numbers.show),
        Row("GET", "/settings", "page", settings.show),
        Row("POST", "/settings/looks", "prefs_set", settings.looks),
        Row("POST", "/settings/notices", "prefs_set", settings.notices),
        Row("POST", "/settings/password", "password_set", settings.password),
        Row("POST", "/settings/session", "logout", settings.end_session),
        Row("POST", "/settings/token", "token_create", settings.create_token),
        Row("POST", "/settings/revoke", "token_revoke", settings.revoke_token),
        Row("POST", "/settings/member", "user_set", settings.set_member),
        Row("POST", "/settings/remove", "user_remove", settings.remove_member),
        Row("POST", "/settings/link", "link_create", settings.link),
        Row("POST", "/settings/project", "project_set", settings.set_project),
        Row("POST", "/settings/newproject", "project_create", settings.create_project),
    ]


#: Paths of files, and their names; the rest lies under /static.
FILES = {"/manifest.webmanifest": "manifest.webmanifest", "/sw.js": "sw.js", "/static/{build}/{name}": ""}
