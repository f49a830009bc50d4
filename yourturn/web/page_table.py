"""Every page: which operation of the table of access it is, and who draws it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Row(NamedTuple):
    method: str
    path: str
    operation: str  #: of core/permissions.py
    handler: Callable[[Any], Any]


def rows() -> list[Row]:
    from . import activity, answer_form, board, edit_permission, inbox, login, question, settings, stats, task, task_actions

    return [
        Row("GET", "/", "page", login.home),
        Row("GET", "/login", "enter", login.show),
        Row("POST", "/login", "enter", login.enter),
        Row("GET", "/enter", "enter", login.home),
        Row("POST", "/enter", "enter", login.use_link),
        Row("GET", "/enter/{link}", "enter", login.link),
        Row("POST", "/logout", "logout", login.leave),
        Row("GET", "/offline", "enter", login.away),
        Row("GET", "/inbox", "questions", inbox.show),
        Row("GET", "/inbox/counts", "questions", inbox.counts),
        Row("POST", "/inbox/preview", "answer", inbox.preview),
        Row("POST", "/inbox/send", "answer", inbox.send),
        Row("GET", "/questions/{id}", "questions", question.show),
        Row("POST", "/questions/{id}/answer", "answer", answer_form.answer),
        Row("GET", "/questions/{id}/cancel", "questions", question.cancel),
        Row("GET", "/questions/{id}/edit", "questions", edit_permission.edit),
        Row("POST", "/questions/{id}/edit", "answer", edit_permission.edited),
        Row("POST", "/questions/{id}/late", "answer", answer_form.late),
        Row("POST", "/questions/{id}/back", "hand_back", answer_form.hand_back),
        Row("GET", "/tasks", "tasks", board.show),
        Row("GET", "/tasks/new", "create", board.new),
        Row("POST", "/tasks/new", "create", board.create),
        Row("GET", "/tasks/{key}", "tasks", task.show),
        Row("GET", "/tasks/{key}/log", "output", task.log),
        Row("GET", "/tasks/{key}/live", "output", task.live),
        Row("POST", "/tasks/{key}/note", "note", task.note),
        *(
            Row("GET", f"/tasks/{{key}}/{name}", name, task_actions.asking(name))
            for name, w in task_actions.WORDS.items()
            if w.asks
        ),
        *(Row("POST", f"/tasks/{{key}}/{name}", name, task_actions.making(name)) for name in task_actions.WORDS),
        Row("GET", "/activity", "events", activity.show),
        Row("GET", "/stats", "stats", stats.show),
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
