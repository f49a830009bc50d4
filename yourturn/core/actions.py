"""Table of verbs: the meaning, the arguments and the text of the event of each.

`say(verb, who, …)` creates an action. It refuses unknown arguments, wrong types, and blank or oversized texts before anything is
loaded. Client methods, HTTP routes, the OpenAPI document, command lines and docs/rules.md come from the same table.

Beside the arguments of its verb, an action has the parameters of `ABOUT`, like its task.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import fields as f
from .canonical_json import dumps
from .errors import Invalid
from .fields import Checker, takes
from .journal import STATUSES
from .model import DEFERRED, ENDED, READY, VERDICTS, Action, Who
from .permissions import SCOPES
from .questions import RESPONSE_TYPES
from .rules import ADMIN_VERBS, KINDS, ON_TIMEOUT, REASONS, ROLES, SYSTEM_REASONS
from .task_fields import NEW, TASK_FIELDS, UPDATES

FAILURES = ("error", "stuck", "timeout")
URGENCIES = ("low", "normal", "high")


class Verb(NamedTuple):
    about: str
    args: dict[str, Checker[Any]]
    required: tuple[str, ...] = ()
    event: str = ""  #: text of its event; {key} is the task, {it} a detail
    call: str = ""  #: parameters of the client method that `make docs` generates; "": the method is written by hand
    method: str = ""  #: name of the client method, if it is not the verb's


_reason: dict[str, Checker[Any]] = {"reason": f.text()}
_proof: dict[str, Checker[Any]] = {"claim": f.line(200), "worker": f.name}
_claimed: dict[str, Checker[Any]] = {"worker": f.name, "lease": f.span, "secret": f.name}
_account: dict[str, Checker[Any]] = {"details": f.text(), "issues": f.texts}
_used: dict[str, Checker[Any]] = {"by": f.line(), "digest": f.line(64)}
_value: dict[str, Checker[Any]] = {
    "value": f.anything, "text": f.text(), "verdict": f.choice(*VERDICTS), "restart": f.flag, "signal": f.mapping,
}  # fmt: skip
_question: dict[str, Checker[Any]] = {
    "kind": f.choice(*KINDS), "blocking": f.flag, "text": f.text(blank=False), "context": f.mapping,
    "reason": f.choice(*(reason for reason in REASONS if reason not in SYSTEM_REASONS)), "urgency": f.choice(*URGENCIES),
    "response_type": f.choice(*RESPONSE_TYPES), "options": f.options, "multi": f.flag, "allow_other": f.flag, "group": f.name,
    "default": f.anything, "timeout": f.span, "on_timeout": f.choice(*ON_TIMEOUT), "reviewer": f.name, "confidence": f.fraction,
    "action": f.anything, "metadata": f.mapping, "step": f.line(200),
}  # fmt: skip

#: Arguments that only `import` has.
_imported: dict[str, Checker[Any]] = {
    "state": f.choice(READY, DEFERRED, *sorted(ENDED)), "waits": f.flag, "created_by": f.actor, "created_at": f.instant,
    "ended_at": f.instant, "wake_at": f.instant, "summary": f.text(), "reason": f.text(), "session_id": f.name,
}  # fmt: skip
#: A note or a question of an imported task, with author and time.
_written: dict[str, Checker[Any]] = {
    "author": f.actor, "text": f.text(blank=False), "at": f.instant, "kind": f.choice(*KINDS), "context": f.mapping,
    "reason": f.choice(*REASONS), "verdict": f.choice(*VERDICTS), "response": f.text(), "by": f.actor, "closed_at": f.instant,
    "why": f.line(blank=True),
}  # fmt: skip

#: One durable call of a run's script.
_step: dict[str, Checker[Any]] = {
    "path": f.line(200), "name": f.name, "agent": f.name, "call": f.anything, "status": f.choice(*STATUSES), "session_id": f.name,
    "seat": f.mapping, "result": f.anything,
}  # fmt: skip


@takes(type="array", items={"type": "object"})
def _steps(field: str, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, dict) and item.keys() <= _step.keys() for item in value):
        raise Invalid(f"{field} must be a list of steps", hint=f"Each takes: {', '.join(_step)}.")
    steps = [{name: _step[name](f"{field} {name}", part) for name, part in item.items() if part is not None} for item in value]
    if not all({"path", "name", "status"} <= step.keys() for step in steps):
        raise Invalid(f"{field} need a path, a name and a status each")
    return steps


@takes(type="object")
def _source(field: str, value: Any) -> dict[str, str]:
    """A script: its file and its text."""
    if not isinstance(value, dict) or value.keys() != {"file", "body"}:
        raise Invalid(f"{field} must be a file and its body")
    return {"file": f.line(1000)(field, value["file"]), "body": f.text()(field, value["body"])}


_journal: dict[str, Checker[Any]] = {"steps": _steps, "program": _source}
_script: dict[str, Checker[Any]] = {**_journal, "journal": f.integer(0, 2**31)}

_flag = {name: checker for name, checker in _question.items() if name != "blocking"}
#: How many questions one handoff may ask.
MANY = 20


@takes(type="array", items={"type": "object"})
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
    return [{name: known[name](name, part) for name, part in item.items() if part is not None} for item in value]


def _unchecked(_: str, value: Any) -> Any:
    """For values that the client or the desk creates."""
    return value


_parent = Checker(_unchecked, {"type": "string"})
_needs = Checker(_unchecked, {"type": "array", "items": {"type": "string"}})
_setting = Checker(_unchecked, {})


@takes(type="array", items={"anyOf": [{"type": "string"}, {"type": "object"}]})
def _children(field: str, value: Any) -> list[dict[str, Any]]:
    """Titles, or objects with the fields of a task."""
    if not isinstance(value, (list, tuple)):
        raise Invalid(f"{field} must be a list")
    children = [{"title": item} if isinstance(item, str) else item for item in value]
    if not all(isinstance(child, dict) for child in children):
        raise Invalid(f"{field} must be titles or objects")
    return [_checked("create", child) for child in children]


@takes()
def _past(field: str, value: Any) -> list[dict[str, Any]]:
    """Notes and questions of an imported task."""
    return [{name: _written[name](f"{field} {name}", v) for name, v in item.items() if v is not None} for item in value]


@takes(type="object")
def _fields(field: str, value: Any) -> dict[str, Any]:
    """Fields of an update. None clears what may be empty."""
    if not isinstance(value, dict):
        raise Invalid(f"{field} must be an object")
    checked = {}
    for name, part in value.items():
        if name not in UPDATES:
            raise Invalid(f"A task has no field {name!a} that could be updated", hint=f"Choose one of: {', '.join(UPDATES)}.")
        row = TASK_FIELDS[name]
        assert row.check is not None
        checked[name] = None if row.clears and part in (None, "", "null", "none") else row.check(name, part)
    return checked


@takes(type="object")
def _prefs(field: str, value: Any) -> dict[str, Any]:
    """Preferences by name. None removes one."""
    prefs = {f.name(field, name): part for name, part in f.mapping(field, value).items()}
    if len(dumps(prefs)) > 20_000:
        raise Invalid(f"{field} are too long", reason="at most 20,000 characters of JSON")
    return prefs


VERBS: dict[str, Verb] = {
    "create": Verb(
        "Create a task. It is ready at once unless it waits for something.",
        {
            **NEW, "parent": _parent, "depends_on": f.numbers, "draft": f.flag, "awaiting": f.choice(*KINDS),
            "question": f.text(blank=False), "reviewer": f.name, "workflow": f.line(1000), "program": _source,
            "external_id": f.line(), "project": f.project_key,
        },
        ("title",),
        event="created {key}",
    ),
    "import": Verb(
        "Create a task of another tracker, with its history, in the state that it had there.",
        {
            **NEW, **_imported, "parent": _parent, "depends_on": f.numbers, "dependents": f.numbers, "external_id": f.line(),
            "project": f.project_key, "questions": _past, "notes": _past, "extra": f.mapping,
        },
        ("title", "external_id", "state"),
        event="imported {key} from another tracker",
    ),
    "vet": Verb("Release a drafted task for work.", {}, event="vetted {key}", call="task"),
    "claim": Verb(
        "Take a ready task: no other worker can work on it while the lease lasts.", _claimed, ("worker", "secret"),
        event="took {key}",
    ),
    "heartbeat": Verb("Extend the lease of a claim.", _proof, call="claim"),
    "release": Verb(
        "Give a claimed task back. Costs one try.", {**_proof, **_reason}, event="gave {key} back", call="claim, reason"
    ),
    "park": Verb(
        "Give a claimed task back without costing a try, because the session ends.",
        {**_proof, **_journal, "until": f.instant},
        event="parked {key}",
    ),
    "ask": Verb(
        "Ask a person. A blocking question makes it their turn.", {**_question, **_proof}, ("text",),
        event="asked {it} about {key}",
    ),
    "flag": Verb(
        "Stop and hand the task to a person, with a reason.",
        {**_flag, **_proof, **_journal, "also": _also, "once": f.flag, "replace": f.flag, "hold": f.flag, "fields": _fields},
        event="asked {it} about {key}",
    ),
    "answer": Verb("Answer a question. The first answer wins.", _value, event="answered {it} about {key}"),
    "approve": Verb(
        "Say yes: to a question, or to finished work.", _value,
        event="approved {it} about {key}", call="named, text, value, *, restart",
    ),
    "reject": Verb(
        "Say no, with what should change.", {**_value, **_reason}, event="sent {key} back", call="named, text, *, restart"
    ),
    "withdraw": Verb(
        "Cancel a question without an answer. An agent shows the claim if the question blocks its task.", {**_proof, **_reason},
        event="withdrew {it}", call="question, reason",
    ),
    "use": Verb(
        "Record, just before the call, that it uses a permission.", {**_proof, **_used}, tuple(_used), event="used {it} for {key}"
    ),
    "hand_back": Verb(
        "Return the task to agents without answering; its open questions are cancelled.", {"fields": _fields},
        event="handed {key} back to agents", call="task, *, fields",
    ),
    "assign": Verb(
        "Send a question to a person or a role.", {"reviewer": f.name}, ("reviewer",),
        event="assigned {it}", call="question, reviewer",
    ),
    "resolve": Verb(
        "Settle a waiting task yourself: it is done.", _reason, event="settled {key}: it is done", call="task, reason"
    ),
    "complete": Verb(
        "Finish the claimed work.", {**_proof, **_script, **_account, "summary": f.text()}, event="finished {key}"
    ),
    "accept": Verb("Accept finished work: it is done.", _reason, event="accepted {key}: it is done", call="task, reason"),
    "decompose": Verb(
        "Split a task into children and wait for them.", {**_proof, "children": _children}, ("children",),
        event="split {key} into parts",
    ),
    "fail": Verb(
        "End a task as failed.", {**_proof, **_script, **_account, **_reason, "failure": f.choice(*FAILURES)},
        event="{key} failed",
    ),
    "step": Verb(
        "Record the steps of a run: the calls of its script and their results.", {**_proof, **_journal},
        event="{key}: {it} recorded", method="record",
    ),
    "rewind": Verb(
        "Continue a run: from a step, with the results before it, or from where it was.",
        {**_proof, "to": f.line(200), "spare": f.flag},
        event="continued {key} from an earlier step",
    ),
    "stop": Verb(
        "End a task as stuck: a person has decided against it.", _reason, event="stopped {key} as stuck", call="task, reason"
    ),
    "cancel": Verb("Abandon a task. Tasks that wait for it go on.", _reason, event="cancelled {key}", call="task, reason"),
    "close": Verb("End a task as done, whatever its state.", _reason, event="closed {key} as done"),
    "defer": Verb(
        "Put a task aside, until a date or until a person wakes it.", {**_reason, "until": f.instant},
        event="put {key} aside", call="task, until, reason",
    ),
    "wake": Verb("Bring a deferred task back.", {}, event="woke {key}", call="task"),
    "reopen": Verb("Start an ended task again.", _reason, event="reopened {key}", call="task, reason"),
    "note": Verb(
        "Add a note to a task. Informs, never moves.", {"text": f.text(blank=False)}, ("text",),
        event="wrote a note on {key}",
    ),
    "update": Verb("Change fields of a task.", {**_proof, "fields": _fields}, ("fields",), event="changed {it} of {key}"),
    "dep_add": Verb(
        "Make a task wait for others.", {"needs": _needs}, ("needs",), event="made {key} wait for {it}", method="depend"
    ),
    "dep_remove": Verb(
        "Remove dependencies of a task.", {"needs": _needs}, ("needs",),
        event="let {key} no longer wait for {it}", method="undepend",
    ),
    # Verbs of the system.
    "unvet": Verb(
        "A ready task is too large: decompose it, or lower its complexity.", {},
        event="{key} is too large: decompose it, or call it smaller",
    ),
    "block": Verb("A dependency is open.", {}, event="{key} waits for other tasks"),
    "unblock": Verb("All dependencies are resolved.", {}, event="{key} is ready: nothing is in its way"),
    "parent": Verb("All children of a container have ended.", {}, event="all parts of {key} have ended"),
    "expire": Verb("A lease is over.", {}, event="the lease on {key} is over"),
    "timeout": Verb("A question was not answered in time.", {}, event="{it} about {key} was not answered in time"),
    "fence": Verb(
        "The desk was restored: earlier claims and approvals are void.", {"approvals": f.numbers},
        event="{key}: what was allowed before the restore is void",
    ),
    # Verbs without a task.
    "project_create": Verb(
        "Create a project.", {"project": f.project_key, "name": f.line()}, ("project",), event="created the project {it}"
    ),
    "project_set": Verb(
        "Change a setting of a project or of the whole workspace.",
        {"project": f.project_key, "setting": f.name, "value": _setting},
        ("setting", "value"),
        event="changed the setting {it}",
    ),
    "user_set": Verb(
        "Add a person, or change their role.",
        {"user": f.name, "role": f.choice(*(r for r in ROLES if r not in ("system", "agent")))},
        ("user", "role"),
        event="made {it}",
    ),
    "user_remove": Verb(
        "Remove a person, their tokens and those that they made.", {"user": f.name}, ("user",), event="removed {it}"
    ),
    "token_create": Verb(
        "Make a token for an agent or a person. It is shown once.",
        {
            "name": f.name, "role": f.choice(*(r for r in ROLES if r != "system")), "actor": f.name, "expires": f.span,
            "secret": f.name, "scopes": f.some(*SCOPES),
        },
        ("name", "role", "secret"),
        event="made the token {it}",
    ),
    "token_revoke": Verb("Revoke a token.", {"name": f.name}, ("name",), event="revoked the token {it}"),
    "password_set": Verb(
        "Give a person a password; their sessions end.", {"user": f.name, "secret": f.line(300)}, ("user", "secret"),
        event="set the password of {it}",
    ),
    "login": Verb(
        "Log a person in whose password was verified.",
        {"user": f.name, "secret": f.name, "proof": f.line(300), "expires": f.span, "about": f.line(200)},
        ("user", "secret", "proof", "expires"),
        event="signed in",
    ),
    "logout": Verb("End a session.", {"login": f.integer(1, 2**62)}, ("login",), event="signed out"),
    "link_create": Verb(
        "Make a link that logs a person in, once.",
        {"user": f.name, "secret": f.name, "expires": f.span},
        ("user", "secret", "expires"),
        event="made a link for {it}",
    ),
    "link_use": Verb(
        "Log in with a link.",
        {"link_secret": f.name, "secret": f.name, "expires": f.span, "about": f.line(200)},
        ("link_secret", "secret", "expires"),
        event="signed in with a link",
    ),
    "prefs_set": Verb(
        "Change your preferences.", {"user": f.name, "prefs": _prefs}, ("user", "prefs"), event="changed their preferences"
    ),
    "restore": Verb(
        "Record that this desk comes from a backup: earlier claims, links, sessions and approvals are void.",
        {"source": f.line(1000)},
        event="restored this desk from a backup",
    ),
}  # fmt: skip

assert set(ADMIN_VERBS) <= set(VERBS)


def _checked(verb: str, args: dict[str, Any]) -> dict[str, Any]:
    row = VERBS[verb]
    checked = {}
    for name, value in args.items():
        if name not in row.args:
            raise Invalid(f"{verb} takes no {name!a}", hint=f"It takes: {', '.join(row.args) or 'nothing'}.")
        if value is not None:
            checked[name] = row.args[name](name, value)
    for name in row.required:
        if name not in checked:
            raise Invalid(f"{verb} needs {'an' if name[0] in 'aeiou' else 'a'} {name}")
    return checked


#: Parameters of an action beside the arguments of its verb; the client has `look` and `then`.
ABOUT = frozenset({"task", "question_id", "key", "version", "look", "then"})
assert not [verb for verb, row in VERBS.items() if ABOUT & row.args.keys()]


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
    """An action, checked as far as possible without the database."""
    if key is not None:
        f.line(200)("idempotency key", key)
    return Action(verb, who, _checked(verb, args), task, question_id, key, version)
