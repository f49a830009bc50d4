"""Every way in which Yourturn says no.

One class serves the command line, HTTP and MCP: it knows its code (for programs), its exit code, its HTTP status, and
what to say next. A message names the thing and its state; `reason` says why; `hint` says what to type instead.
"""

from __future__ import annotations


class YourturnError(Exception):
    code = "error"
    exit_code = 1
    http_status = 500

    def __init__(self, message: str, *, reason: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}: {self.reason}" if self.reason else self.message

    def lines(self) -> list[str]:
        """What a person reads."""
        out = [f"Error: {self.message}"]
        if self.reason:
            out.append(f"Reason: {self.reason}")
        if self.hint:
            out.append(self.hint)
        return out

    def as_json(self) -> dict[str, dict[str, str]]:
        """What a program reads."""
        return {"error": {"code": self.code, "message": str(self), "hint": self.hint}}


class Usage(YourturnError):
    code, exit_code, http_status = "usage", 2, 400


class NotFound(YourturnError):
    code, exit_code, http_status = "not_found", 3, 404


class NoDesk(NotFound):
    code = "no_desk"


class IllegalMove(YourturnError):
    """The cell of the table is empty."""

    code, exit_code, http_status = "illegal_move", 4, 409


class Precondition(YourturnError):
    """The cell exists, but something it asks for is missing."""

    code, exit_code, http_status = "precondition", 4, 409


class ClaimLost(YourturnError):
    """The writer's lease is over, or somebody else's epoch is newer."""

    code, exit_code, http_status = "claim_lost", 4, 409


class AlreadyClosed(YourturnError):
    """Somebody, or silence, was faster."""

    code, exit_code, http_status = "already_answered", 4, 409


class KeyReused(YourturnError):
    """An idempotency key came back with a different request."""

    code, exit_code, http_status = "idempotency_conflict", 4, 409


class Changed(YourturnError):
    """The task is no longer as the speaker saw it."""

    code, exit_code, http_status = "changed", 4, 412


class TooMany(YourturnError):
    """Too often in too short a time."""

    code, exit_code, http_status = "too_many", 4, 429
    retry_after = 1  #: seconds


class NotAllowed(YourturnError):
    code, exit_code, http_status = "not_allowed", 5, 403


class NotKnown(NotAllowed):
    """Who is asking? No credential, or one that is worth nothing."""

    code, http_status = "not_known", 401


class Invalid(YourturnError):
    code, exit_code, http_status = "invalid", 6, 422


class TooLarge(Invalid):
    code, http_status = "too_large", 413


class StillWaiting(YourturnError):
    """Nobody has answered yet, and whoever asked does not want to wait any longer."""

    code, exit_code, http_status = "still_waiting", 7, 202
    question = ""


class Refused(YourturnError):
    """A person said no, or took the question off the desk."""

    code, exit_code, http_status = "refused", 5, 403
    question = who = at = why = ""


class NobodyAnswered(YourturnError):
    """The time was over. Silence allows nothing, and is no refusal either."""

    code, exit_code, http_status = "nobody_answered", 4, 409
    question = ""


class StoreTrouble(YourturnError):
    """The database could not do it. Nothing was changed, unless the hint says that this cannot be known."""

    code, exit_code, http_status = "store", 1, 503


class MaybeDone(StoreTrouble):
    """The connection to a server broke after a change was sent. Said again with the same `key`, it counts once."""

    code = "maybe_done"
    key = ""  #: the idempotency key of the change; empty where it has none


class Busy(StoreTrouble):
    code = "busy"


class ReadOnly(StoreTrouble):
    code = "read_only"


class BadDatabase(StoreTrouble):
    code = "bad_database"


class SchemaMismatch(StoreTrouble):
    code = "schema_version"


class GitTrouble(YourturnError):
    """Git, or what it needs, could not do it. What was in the folder is still there."""

    code, exit_code, http_status = "git", 1, 500


def every_error() -> list[type[YourturnError]]:
    """All classes, for the docs and the tests."""
    found: list[type[YourturnError]] = []
    todo: list[type[YourturnError]] = [YourturnError]
    while todo:
        cls = todo.pop(0)
        found.append(cls)
        todo.extend(cls.__subclasses__())
    return found
