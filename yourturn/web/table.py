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
    from . import answering, door, editing, inbox, question

    return [
        Row("GET", "/", "page", door.home),
        Row("GET", "/login", "enter", door.show),
        Row("POST", "/login", "enter", door.enter),
        Row("GET", "/enter/{link}", "enter", door.link),
        Row("POST", "/logout", "logout", door.leave),
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
        Row("POST", "/questions/{id}/back", "hand_back", question.hand_back),
    ]


#: Paths of files, and their names; the rest lies under /static.
FILES = {"/manifest.webmanifest": "manifest.webmanifest", "/sw.js": "sw.js", "/static/{build}/{name}": ""}
