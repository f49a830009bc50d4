"""The vocabulary: every verb, what it means, and what it takes.

Surfaces say an action with `say(verb, who, …)`. Unknown arguments, wrong types, blank or endless texts are refused here,
before anything is loaded. Help texts and API schemas are made from the same table.

Beside a verb's own arguments, an action names what it is about: the names of these (`ABOUT`) are no verb's argument.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import fields as f
from .canonical_json import dumps
from .errors import Invalid
from .journal import STATUSES
from .model import DEFERRED, ENDED, READY, VERDICTS, Action, Who
from .permissions import SCOPES
from .questions import RESPONSE_TYPES
from .rules import ADMIN_VERBS, KINDS, ON_TIMEOUT, REASONS, ROLES, SYSTEM_REASONS

TYPES = ("task", "epic", "bug", "feature", "chore", "docs", "test", "code", "design", "review")
COMPLEXITIES = ("trivial", "small", "medium", "large", "xlarge")
FAILURES = ("error", "stuck", "timeout")
REQUIRES = ("approval", "review", "content")
URGENCIES = ("low", "normal", "high")


class Verb(NamedTuple):
    about: str
    args: dict[str, f.Checker]
    required: tuple[str, ...] = ()


_reason = {"reason": f.text()}
_proof = {"claim": f.line(200), "worker": f.name}
_claimed: dict[str, f.Checker] = {"worker": f.name, "lease": f.span, "secret": f.name}
_account: dict[str, f.Checker] = {"details": f.text(), "issues": f.texts}
_used: dict[str, f.Checker] = {"by": f.line(), "digest": f.line(64)}
_value = {"value": f.anything, "text": f.text(), "verdict": f.choice(*VERDICTS), "restart": f.flag, "signal": f.mapping}
_task = {
    "title": f.line(),
    "description": f.text(),
    "priority": f.priority,
    "type": f.choice(*TYPES),
    "complexity": f.choice(*COMPLEXITIES),
    "requires": f.choice(*REQUIRES),
    "role": f.name,
    "labels": f.names,
    "acceptance": f.text(),
    "max_retries": f.integer(1, 100),
    "branch": f.name,
}
_question = {
    "kind": f.choice(*KINDS),
    "blocking": f.flag,
    "text": f.text(blank=False),
    "context": f.mapping,
    "reason": f.choice(*(reason for reason in REASONS if reason not in SYSTEM_REASONS)),
    "urgency": f.choice(*URGENCIES),
    "response_type": f.choice(*RESPONSE_TYPES),
    "options": f.options,
    "multi": f.flag,
    "allow_other": f.flag,
    "group": f.name,
    "default": f.anything,
    "timeout": f.span,
    "on_timeout": f.choice(*ON_TIMEOUT),
    "reviewer": f.name,
    "confidence": f.fraction,
    "action": f.anything,
    "metadata": f.mapping,
    "step": f.line(200),
}

#: What only an import says about a task.
_imported = {
    "state": f.choice(READY, DEFERRED, *sorted(ENDED)),
    "waits": f.flag,
    "created_by": f.actor,
    "created_at": f.instant,
    "ended_at": f.instant,
    "wake_at": f.instant,
    "summary": f.text(),
    "reason": f.text(),
    "session_id": f.name,
}
#: A note or a question of an imported task, with who and when.
_written = {
    "author": f.actor, "text": f.text(blank=False), "at": f.instant, "kind": f.choice(*KINDS), "context": f.mapping,
    "reason": f.choice(*REASONS), "verdict": f.choice(*VERDICTS), "response": f.text(), "by": f.actor, "closed_at": f.instant,
    "why": f.line(blank=True),
}  # fmt: skip

#: One durable call of a run's script.
_step = {
    "path": f.line(200), "name": f.name, "agent": f.name, "call": f.anything, "status": f.choice(*STATUSES), "session_id": f.name,
    "seat": f.mapping, "result": f.anything,
}  # fmt: skip


def _steps(field: str, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, dict) and item.keys() <= _step.keys() for item in value):
        raise Invalid(f"{field} must be a list of steps", hint=f"Each takes: {', '.join(_step)}.")
    found = [{name: _step[name](f"{field} {name}", given) for name, given in item.items() if given is not None} for item in value]
    if not all({"path", "name", "status"} <= item.keys() for item in found):
        raise Invalid(f"{field} need a path, a name and a status each")
    return found


def _source(field: str, value: Any) -> dict[str, str]:
    """A script: its file and its text."""
    if not isinstance(value, dict) or value.keys() != {"file", "body"}:
        raise Invalid(f"{field} must be a file and its body")
    return {"file": f.line(1000)(field, value["file"]), "body": f.text()(field, value["body"])}


_journal: dict[str, f.Checker] = {"steps": _steps, "program": _source}
_script: dict[str, f.Checker] = {**_journal, "journal": f.integer(0, 2**31)}

_flag = {name: checker for name, checker in _question.items() if name != "blocking"}
#: How many questions one handoff may ask.
MANY = 20


def _also(field: str, value: Any) -> list[dict[str, Any]]:
    """More questions of the same handoff, as objects with the fields of a question."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, dict) for item in value):
        raise Invalid(f"{field} must be a list of questions")
    if len(value) >= MANY:
        raise Invalid(f"{field} has too many questions", reason=f"{len(value) + 1} in one handoff; at most {MANY}")
    known = {name: checker for name, checker in _flag.items() if name not in ("group", "step")}
    for item in value:
        if wrong := [name for name in item if name not in known]:
            raise Invalid(f"A question of {field} takes no {wrong[0]!a}", hint=f"It takes: {', '.join(known)}.")
        if not item.get("text"):
            raise Invalid(f"A question of {field} needs a text")
    return [{name: known[name](name, given) for name, given in item.items() if given is not None} for item in value]


def _as_is(_: str, value: Any) -> Any:
    """Made by the desk itself, not by a caller."""
    return value


def _children(field: str, value: Any) -> list[dict[str, Any]]:
    """Titles, or objects with the fields of a task."""
    if not isinstance(value, (list, tuple)):
        raise Invalid(f"{field} must be a list")
    found = [{"title": item} if isinstance(item, str) else item for item in value]
    if not all(isinstance(item, dict) for item in found):
        raise Invalid(f"{field} must be titles or objects")
    return [_checked("create", item) for item in found]


def _past(field: str, value: Any) -> list[dict[str, Any]]:
    """Notes and questions of an imported task."""
    return [{name: _written[name](f"{field} {name}", v) for name, v in item.items() if v is not None} for item in value]


def _fields(field: str, value: Any) -> dict[str, Any]:
    """Fields of an update. None clears what may be empty."""
    if not isinstance(value, dict):
        raise Invalid(f"{field} must be an object")
    checks = {**_task, "session_id": f.name, "host": f.name, "seat": f.mapping}
    found = {}
    for name, given in value.items():
        if name not in checks:
            raise Invalid(f"A task has no field {name!a} that could be updated", hint=f"Choose one of: {', '.join(checks)}.")
        empty = name in ("requires", "role", "branch", "session_id", "host", "seat") and given in (None, "", "null", "none")
        found[name] = None if empty else checks[name](name, given)
    return found


def _prefs(field: str, value: Any) -> dict[str, Any]:
    """Preferences by name. None forgets one."""
    found = {f.name(field, name): given for name, given in f.mapping(field, value).items()}
    if len(dumps(found)) > 20_000:
        raise Invalid(f"{field} are too long", reason="at most 20,000 characters of JSON")
    return found


VERBS: dict[str, Verb] = {
    "create": Verb(
        "Write a task down. It is ready at once unless it waits for something.",
        {
            **_task,
            "parent": _as_is,
            "depends_on": f.numbers,
            "draft": f.flag,
            "awaiting": f.choice(*KINDS),
            "question": f.text(blank=False),
            "reviewer": f.name,
            "workflow": f.line(1000),
            "program": _source,
            "external_id": f.line(),
            "project": f.project_key,
        },
        ("title",),
    ),
    "import": Verb(
        "Write a task down as another tracker knew it, with its history, in the state that it had there.",
        {
            **_task, **_imported, "parent": _as_is, "depends_on": f.numbers, "dependents": f.numbers, "external_id": f.line(),
            "project": f.project_key, "questions": _past, "notes": _past, "extra": f.mapping,
        },
        ("title", "external_id", "state"),
    ),
    "vet": Verb("Say that a drafted task is fit to be worked on.", {}),
    "claim": Verb("Take a ready task: nobody else can work on it while your lease lasts.", _claimed, ("worker", "secret")),
    "heartbeat": Verb("Say that you are still working, and extend the lease.", _proof),
    "release": Verb("Give a claimed task back. Costs one try.", {**_proof, **_reason}),
    "park": Verb(
        "Give a claimed task back without costing a try, because your session ends.", {**_proof, **_journal, "until": f.instant}
    ),
    "ask": Verb("Ask a person. A blocking question makes it their turn.", {**_question, **_proof}, ("text",)),
    "flag": Verb(
        "Stop and hand the task to a person, with a reason.",
        {**_flag, **_proof, **_journal, "also": _also, "once": f.flag, "replace": f.flag, "hold": f.flag, "fields": _fields},
    ),
    "answer": Verb("Answer a question. The first answer wins.", _value),
    "approve": Verb("Say yes: to a question, or to finished work.", _value),
    "reject": Verb("Say no, with what should change.", {**_value, **_reason}),
    "withdraw": Verb("Take a question off the desk without an answer.", {**_proof, **_reason}),
    "use": Verb("Say, just before it is done, that a permission is used by this one call.", {**_proof, **_used}, tuple(_used)),
    "hand_back": Verb("Return the task to agents without answering; its open questions are cancelled.", {"fields": _fields}),
    "assign": Verb("Send a question to a person or a role.", {"reviewer": f.name}, ("reviewer",)),
    "resolve": Verb("Settle a waiting task yourself: it is done.", _reason),
    "complete": Verb("Say that the claimed work is finished.", {**_proof, **_script, **_account, "summary": f.text()}),
    "accept": Verb("Accept finished work: it is done.", _reason),
    "decompose": Verb("Split a task into children and wait for them.", {**_proof, "children": _children}, ("children",)),
    "fail": Verb(
        "End a task as failed.", {**_proof, **_script, **_account, **_reason, "failure": f.choice(*FAILURES)}
    ),
    "step": Verb("Write down how far the calls of a run's script are, and what came of them.", {**_proof, **_journal}),
    "rewind": Verb(
        "Let a run go on: from a step, on what was done before it, or from where it was.",
        {**_proof, "to": f.line(200), "spare": f.flag},
    ),
    "stop": Verb("End a task as stuck: a person has decided against it.", _reason),
    "cancel": Verb("Abandon a task. Whoever waits for it goes on.", _reason),
    "close": Verb("End a task as done, whatever its state.", _reason),
    "defer": Verb("Put a task aside, until a date or until somebody wakes it.", {**_reason, "until": f.instant}),
    "wake": Verb("Bring a deferred task back.", {}),
    "reopen": Verb("Start an ended task again.", _reason),
    "note": Verb("Write something down. Informs, never moves.", {"text": f.text(blank=False)}, ("text",)),
    "update": Verb("Change what a task says.", {**_proof, "fields": _fields}, ("fields",)),
    "dep_add": Verb("Make a task wait for others.", {"needs": _as_is}, ("needs",)),
    "dep_remove": Verb("Let a task no longer wait for others.", {"needs": _as_is}, ("needs",)),
    # The system's own.
    "unvet": Verb("A ready task is too large: it is to be decomposed, or called smaller.", {}),
    "block": Verb("A dependency is open.", {}),
    "unblock": Verb("All dependencies are resolved.", {}),
    "parent": Verb("All children of a container have ended.", {}),
    "expire": Verb("A lease is over.", {}),
    "timeout": Verb("Nobody answered in time.", {}),
    "fence": Verb("The desk was restored: claims and approvals from before are void.", {"approvals": f.numbers}),
    # About no task.
    "project_create": Verb("Open a project.", {"project": f.project_key, "name": f.line()}, ("project",)),
    "project_set": Verb(
        "Decide how a project, or the whole workspace, works.",
        {"project": f.project_key, "setting": f.name, "value": _as_is},
        ("setting", "value"),
    ),
    "user_set": Verb(
        "Add a person, or change their role.",
        {"user": f.name, "role": f.choice(*(r for r in ROLES if r not in ("system", "agent")))},
        ("user", "role"),
    ),
    "user_remove": Verb("Remove a person, their tokens and those that they made.", {"user": f.name}, ("user",)),
    "token_create": Verb(
        "Make a token for an agent or a person. It is shown once.",
        {
            "name": f.name, "role": f.choice(*(r for r in ROLES if r != "system")), "actor": f.name, "expires": f.span,
            "secret": f.name, "scopes": f.some(*SCOPES),
        },
        ("name", "role", "secret"),
    ),
    "token_revoke": Verb("Make a token worthless.", {"name": f.name}, ("name",)),
    "password_set": Verb(
        "Give a person a password; their sessions end.", {"user": f.name, "secret": f.line(300)}, ("user", "secret")
    ),
    "login": Verb(
        "Let a person in who has proven who they are.",
        {"user": f.name, "secret": f.name, "proof": f.line(300), "expires": f.span, "about": f.line(200)},
        ("user", "secret", "proof", "expires"),
    ),
    "logout": Verb("End a session.", {"login": f.integer(1, 2**62)}, ("login",)),
    "link_create": Verb(
        "Make a link that lets a person in, once.",
        {"user": f.name, "secret": f.name, "expires": f.span},
        ("user", "secret", "expires"),
    ),
    "link_use": Verb(
        "Come in by a link.",
        {"link_secret": f.name, "secret": f.name, "expires": f.span, "about": f.line(200)},
        ("link_secret", "secret", "expires"),
    ),
    "prefs_set": Verb("Say how you like things.", {"user": f.name, "prefs": _prefs}, ("user", "prefs")),
    "restore": Verb(
        "Say that this desk comes from a backup: claims, links, sessions and approvals from before are void.",
        {"source": f.line(1000)},
    ),
}  # fmt: skip

assert set(ADMIN_VERBS) <= set(VERBS)


def _checked(verb: str, args: dict[str, Any]) -> dict[str, Any]:
    about = VERBS[verb]
    found = {}
    for name, value in args.items():
        if name not in about.args:
            raise Invalid(f"{verb} takes no {name!a}", hint=f"It takes: {', '.join(about.args) or 'nothing'}.")
        if value is not None:
            found[name] = about.args[name](name, value)
    for name in about.required:
        if name not in found:
            raise Invalid(f"{verb} needs {'an' if name[0] in 'aeiou' else 'a'} {name}")
    return found


#: What an action names beside the arguments of its verb; `look` is the client's, who says it.
ABOUT = frozenset({"task", "question_id", "key", "version", "look", "then"})
assert not [verb for verb, about in VERBS.items() if ABOUT & about.args.keys()]


def say(
    verb: str,
    who: Who,
    /,
    *,
    task: int | None = None,
    question_id: int | None = None,
    key: str | None = None,
    version: int | None = None,
    **args: Any,
) -> Action:
    """An action, checked as far as it can be without looking at the desk."""
    if key is not None:
        f.line(200)("idempotency key", key)
    return Action(verb, who, _checked(verb, args), task, question_id, key, version)
