"""All errors of Yourturn.

One class serves the command line, HTTP and MCP: it knows its code (for programs), its exit code, its HTTP status, and
and a hint. A message names the thing and its state; `reason` says why; `hint` says what to type instead.
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
        """The text for a person."""
        out = [f"Error: {self.message}"]
        if self.reason:
            out.append(f"Reason: {self.reason}")
        if self.hint:
            out.append(self.hint)
        return out

    def as_json(self) -> dict[str, dict[str, str]]:
        """The JSON for a program."""
        return {"error": {"code": self.code, "message": str(self), "hint": self.hint}}


class Usage(YourturnError):
    code, exit_code, http_status = "usage", 2, 400


class NotFound(YourturnError):
    code, exit_code, http_status = "not_found", 3, 404


class NoDesk(NotFound):
    code = "no_desk"


class IllegalMove(YourturnError):
    """The table has no such move from this state."""

    code, exit_code, http_status = "illegal_move", 4, 409


class Precondition(YourturnError):
    """The move exists, but a guard refuses it."""

    code, exit_code, http_status = "precondition", 4, 409


class ClaimLost(YourturnError):
    """The writer's lease has expired, or a newer epoch exists."""

    code, exit_code, http_status = "claim_lost", 4, 409


class AlreadyClosed(YourturnError):
    """The question was answered, withdrawn or timed out before."""

    code, exit_code, http_status = "already_answered", 4, 409


class KeyReused(YourturnError):
    """An idempotency key was reused for a different request."""

    code, exit_code, http_status = "idempotency_conflict", 4, 409


class Changed(YourturnError):
    """The task has changed since the actor read it."""

    code, exit_code, http_status = "changed", 4, 412


class TooMany(YourturnError):
    """Rate limit exceeded."""

    code, exit_code, http_status = "too_many", 4, 429
    retry_after = 1  #: seconds


class NotAllowed(YourturnError):
    code, exit_code, http_status = "not_allowed", 5, 403


class NotKnown(NotAllowed):
    """Missing or invalid credential."""

    code, http_status = "not_known", 401


class Invalid(YourturnError):
    code, exit_code, http_status = "invalid", 6, 422


class TooLarge(Invalid):
    code, http_status = "too_large", 413


class StillWaiting(YourturnError):
    """The wait is over and the question is still open."""

    code, exit_code, http_status = "still_waiting", 7, 202
    question = ""


class Refused(YourturnError):
    """A person said no, or withdrew the question."""

    code, exit_code, http_status = "refused", 5, 403
    question = who = at = why = ""


class NobodyAnswered(YourturnError):
    """The question timed out: neither allowed nor refused."""

    code, exit_code, http_status = "nobody_answered", 4, 409
    question = ""


class StoreTrouble(YourturnError):
    """The database failed. Nothing was changed, unless the hint says that this is unknown."""

    code, exit_code, http_status = "store", 1, 503


class MaybeDone(StoreTrouble):
    """The connection broke after a change was sent. A retry with the same `key` counts once."""

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
    """A git command failed. The folder's contents are unchanged."""

    code, exit_code, http_status = "git", 1, 500


def every_error() -> list[type[YourturnError]]:
    """All classes, for the docs and the tests."""
    classes: list[type[YourturnError]] = []
    todo: list[type[YourturnError]] = [YourturnError]
    while todo:
        cls = todo.pop(0)
        classes.append(cls)
        todo.extend(cls.__subclasses__())
    return classes
