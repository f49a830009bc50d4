"""The route table of the pages: method, path, operation of the permission table, handler."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import activity, answer_form, batch, board, edit_permission, inbox, login, question, settings, stats, task, task_actions
from .request import PageRequest, PageResult


class PageRow(NamedTuple):
    method: str
    path: str
    operation: str  #: of core/permissions.py
    handler: Callable[[PageRequest], PageResult]


ROWS = [
    PageRow("GET", "/", "page", login.home),
    PageRow("GET", "/login", "enter", login.show),
    PageRow("POST", "/login", "enter", login.login),
    PageRow("GET", "/enter", "enter", login.home),
    PageRow("POST", "/enter", "enter", login.use_link),
    PageRow("GET", "/enter/{link}", "enter", login.show_link),
    PageRow("POST", "/logout", "logout", login.logout),
    PageRow("GET", "/offline", "enter", login.offline),
    PageRow("GET", "/inbox", "questions", inbox.show),
    PageRow("GET", "/inbox/counts", "questions", inbox.counts),
    PageRow("POST", "/inbox/preview", "answer", batch.preview),
    PageRow("POST", "/inbox/send", "answer", batch.send),
    PageRow("GET", "/questions/{id}", "questions", question.show),
    PageRow("POST", "/questions/{id}/answer", "answer", answer_form.answer),
    PageRow("GET", "/questions/{id}/cancel", "questions", question.cancel),
    PageRow("GET", "/questions/{id}/edit", "questions", edit_permission.show),
    PageRow("POST", "/questions/{id}/edit", "answer", edit_permission.preview),
    PageRow("POST", "/questions/{id}/late", "answer", answer_form.late),
    PageRow("POST", "/questions/{id}/back", "hand_back", answer_form.hand_back),
    PageRow("GET", "/tasks", "tasks", board.show),
    PageRow("GET", "/tasks/new", "create", board.new),
    PageRow("POST", "/tasks/new", "create", board.create),
    PageRow("GET", "/tasks/{key}", "tasks", task.show),
    PageRow("GET", "/tasks/{key}/log", "output", task.log),
    PageRow("GET", "/tasks/{key}/live", "output", task.live),
    PageRow("POST", "/tasks/{key}/note", "note", task.note),
    *(
        PageRow("GET", f"/tasks/{{key}}/{name}", name, task_actions.confirm_page(name))
        for name, w in task_actions.ACTIONS.items()
        if w.asks
    ),
    *(PageRow("POST", f"/tasks/{{key}}/{name}", name, task_actions.make_move(name)) for name in task_actions.ACTIONS),
    PageRow("GET", "/activity", "events", activity.show),
    PageRow("GET", "/stats", "stats", stats.show),
    PageRow("GET", "/settings", "page", settings.show),
    PageRow("POST", "/settings/looks", "prefs_set", settings.set_appearance),
    PageRow("POST", "/settings/notices", "prefs_set", settings.set_notifications),
    PageRow("POST", "/settings/password", "password_set", settings.set_password),
    PageRow("POST", "/settings/session", "logout", settings.end_session),
    PageRow("POST", "/settings/token", "token_create", settings.create_token),
    PageRow("POST", "/settings/revoke", "token_revoke", settings.revoke_token),
    PageRow("POST", "/settings/member", "user_set", settings.set_member),
    PageRow("POST", "/settings/remove", "user_remove", settings.remove_member),
    PageRow("POST", "/settings/link", "link_create", settings.create_link),
    PageRow("POST", "/settings/project", "project_set", settings.set_project),
    PageRow("POST", "/settings/newproject", "project_create", settings.create_project),
]
