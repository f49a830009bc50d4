"""From the arguments of ask_question to the fields of a question."""

from __future__ import annotations

from typing import Any

_KINDS = {"blocking": "input", "non_blocking": "input", "approval": "permission", "error_recovery": "recovery"}


def question_fields(arguments: dict[str, Any]) -> dict[str, Any]:
    sort = arguments.get("type", "blocking")
    minutes = arguments.get("timeoutMinutes")
    return {
        "text": arguments.get("question"),
        "kind": _KINDS.get(sort, sort),
        "blocking": sort != "non_blocking",
        "response_type": arguments.get("responseType"),
        "options": arguments.get("options") or (),
        "context": arguments.get("context"),
        "timeout": None if minutes is None else minutes * 60,
        "default": arguments.get("defaultResponse"),
    }
