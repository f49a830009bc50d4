"""For every argument of every verb: a value that occurs nowhere else, and where it must be seen.

A `Case` is one saying: a verb, on a scene, with arguments, and for each of these where it is looked for afterwards. Which
surface says it how, and what a surface leaves out and why, stands in calls.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from yourturn.client import Client
from yourturn.core.actions import VERBS
from yourturn.core.canonical_json import digest
from yourturn.core.model import Who
from yourturn.core.task_fields import UPDATES

CODER = Who("agent:coder", "agent", direct=True)
LATER = "2099-01-07T00:00:00+00:00"
ACTION = {"tool": "Bash", "input": {"command": "ls"}}
OPTIONS = [{"id": v, "label": v, "value": v, "description": f"the {v} one"} for v in ("left", "right")]
STEP = {"path": "1", "name": "step", "call": {"n": 1}, "status": "completed", "result": "fine"}
PROGRAM = {"file": "feature.py", "body": "go()"}
WRONG = "PROJ-1.99.wrong"


class Scene:
    """A task in the state that a verb wants it in, and what is around it."""

    def __init__(self, desk: Client) -> None:
        self.desk = desk
        self.agent = desk.as_(CODER)
        self.key = self.claim = self.question = self.name = self.epic = self.other = ""
        self.digest = digest(ACTION)

    def task(self, **fields: Any) -> Scene:
        self.key = self.desk.create("Before", **fields)["key"]
        return self

    def held(self, **fields: Any) -> Scene:
        self.task(**fields)
        self.claim = self.agent.claim(self.key, "w1")["claim"]["token"]
        return self

    def asked(self, kind: str = "input", **fields: Any) -> Scene:
        self.task()
        self.question = self.desk.ask(self.key, "Before?", kind, **fields)["id"]
        return self

    def asked_by_holder(self, kind: str = "input", **fields: Any) -> Scene:
        self.held()
        self.question = self.agent.ask(self.key, "Before?", kind, claim=self.claim, **fields)["id"]
        return self

    def run(self) -> Scene:
        return self.held(workflow="feature.py")

    def stepped(self) -> Scene:
        self.run()
        self.agent.record({"task": self.key, "token": self.claim}, [{**STEP, "path": p} for p in ("1", "2", "3")])
        return self

    def asking_step(self) -> Scene:
        self.run()
        seat = {"task": self.key, "token": self.claim}
        self.agent.record(seat, [{"path": "1", "name": "run", "call": {}, "status": "waiting"}])
        self.question = self.agent.ask(self.key, "Before?", claim=self.claim, step="1")["id"]
        return self

    def permitted(self) -> Scene:
        self.asked("permission", action=ACTION)
        self.desk.approve(self.question)
        return self

    def done(self) -> Scene:
        self.task()
        self.desk.close(self.key)
        return self

    def finished(self) -> Scene:
        self.desk.set("review", "ask", "PROJ")
        self.held()
        self.agent.complete(self.claim)
        self.desk.set("review", "auto", "PROJ")
        return self

    def late(self) -> Scene:
        self.asked()
        self.desk.close(self.key)
        return self

    def blocked(self) -> Scene:
        self.other = self.desk.create("Other")["key"]
        return self.task(depends_on=[self.other])


class After:
    """The desk when it has been said."""

    def __init__(self, scene: Scene, case: Case) -> None:
        self.scene, self.desk = scene, scene.desk
        if case.verb == "create":
            project = case.args(scene).get("project", "PROJ")
            scene.key = self.desk.list(project=project, newest=True, limit=1)[0]["key"]
        self.task: dict[str, Any] = self.desk.show(scene.key) if scene.key else {}
        named = [q for q in self.task.get("questions", ()) if not scene.question or q["id"] == scene.question]
        self.q: dict[str, Any] = named[-1] if named else {}
        self.events = self.desk.history(scene.key) if scene.key else []

    def child(self, name: str) -> Any:
        first = self.desk.show(self.task["depends_on"][0])
        return first[name]


Look = Callable[[After], Any]


class Case(NamedTuple):
    verb: str
    name: str
    stage: Callable[[Scene], Any]
    args: Callable[[Scene], dict[str, Any]]
    seen: dict[str, tuple[Look, Any]]  #: where each argument is looked for, and what must be there
    refused: str = ""  #: what is seen is that it is refused, with this code


CASES: list[Case] = []


def case(
    verb: str, name: str, stage: Callable[[Scene], Any], args: dict[str, Any] | Callable[[Scene], dict[str, Any]], /, *,
    refused: str = "", **seen: Any,
) -> None:  # fmt: skip
    """`seen`: a look, compared with what was said; or a look and what must be there."""
    given = args if callable(args) else lambda _: dict(args)
    shown = {n.replace("__", "."): (look if isinstance(look, tuple) else (look, _said(n))) for n, look in seen.items()}
    CASES.append(Case(verb, name, stage, given, shown, refused))


class _said(str):
    """What stands under this name among the arguments."""


def expected(case: Case, scene: Scene, name: str) -> Any:
    wanted = case.seen[name][1]
    if not isinstance(wanted, _said):
        return wanted(scene) if callable(wanted) else wanted
    found: Any = case.args(scene)
    for part in wanted.split("__"):
        found = found[0] if isinstance(found, list) else found
        found = found[part]
    return found


def row(name: str) -> Look:
    return lambda a: a.task[name]


def q(name: str) -> Look:
    return lambda a: a.q[name]


def response(name: str) -> Look:
    return lambda a: a.q["response"][name]


def event(name: str) -> Look:
    return lambda a: a.events[-1]["data"].get(name)


def lasts(start: str, end: str) -> Callable[[dict[str, Any]], float]:
    return lambda r: (datetime.fromisoformat(r[end]) - datetime.fromisoformat(r[start])).total_seconds()


def late(a: After) -> str:
    """What was answered too late, without the question's number."""
    return "(" + str(a.task["notes"][-1]["text"]).partition(" (")[2]


def notes(a: After) -> list[str]:
    return [note["text"] for note in a.task["notes"]]


_STEPS = (lambda a: [(s["name"], s["result"]) for s in a.desk.steps(a.scene.key)][-1:], [("step", "fine")])
_PROGRAM = (lambda a: (a.desk.program(a.scene.key) or {}).get("body"), "go()")
_HELD = (lambda a: a.task["claim"] is not None, True)

# --- a task -----------------------------------------------------------------------------------------------------------

TASK: dict[str, Any] = {
    "title": "Said", "description": "In words.", "priority": 0, "type": "bug", "complexity": "large", "requires": "review",
    "role": "coder", "labels": ["one", "two"], "acceptance": "It is there.", "max_retries": 2, "branch": "feature/said",
}  # fmt: skip
_ROW = {name: row(name) for name in TASK}


def _around(s: Scene) -> Scene:
    s.epic, s.other = s.desk.create("Epic", type="epic")["key"], s.desk.create("Other")["key"]
    if "OTHER" not in {p["key"] for p in s.desk.projects()}:
        s.desk.create_project("OTHER")
    return s


case("create", "fields", _around, TASK, **_ROW)
case("create", "parent", _around, lambda s: {"title": "Said", "parent": s.epic}, parent=row("parent"))
case("create", "needs", _around, lambda s: {"title": "Said", "depends_on": [s.other]}, depends_on=row("depends_on"))
case("create", "project", _around, {"title": "Said", "project": "OTHER"}, project=(lambda a: a.task["key"].partition("-")[0], "OTHER"))
case("create", "draft", _around, {"title": "Said", "draft": True}, draft=(row("state"), "created"))
case("create", "external", _around, lambda s: {"title": "Said", "external_id": f"tick-{s.other}"}, external_id=row("external_id"))
case(
    "create", "awaiting", _around, {"title": "Said", "awaiting": "content", "question": "Is it clear?", "reviewer": "design"},
    awaiting=row("awaiting"), question=q("text"), reviewer=q("reviewer"),
)  # fmt: skip
case("create", "run", _around, {"title": "Said", "workflow": "feature.py", "program": PROGRAM}, workflow=row("workflow"), program=_PROGRAM)
_FIELDS = {**TASK, "session_id": "session-7", "host": "here", "seat": {"at": "desk"}}
for _name, _value in _FIELDS.items():
    case("update", _name, Scene.task, {"fields": {_name: _value}}, **{f"fields__{_name}": row(_name)})
case("hand_back", "fields", Scene.asked, {"fields": {"title": "Said"}}, fields=(row("title"), "Said"))
case("note", "text", Scene.task, {"text": "Said so."}, text=(notes, ["Said so."]))
case("dep_add", "needs", lambda s: _around(s.task()), lambda s: {"needs": [s.other]}, needs=(row("depends_on"), lambda s: [s.other]))
case("dep_remove", "needs", Scene.blocked, lambda s: {"needs": [s.other]}, needs=(row("depends_on"), []))

# --- claims -----------------------------------------------------------------------------------------------------------

case(
    "claim", "worker", Scene.task, {"worker": "w7", "lease": "2h"},
    worker=(lambda a: a.task["claim"]["worker"], "w7"),
    lease=(lambda a: lasts("updated_at", "expires_at")({**a.task, **a.task["claim"]}), 7200.0),
)  # fmt: skip
case("release", "reason", Scene.held, lambda s: {"claim": s.claim, "reason": "no luck"}, reason=event("reason"))
case("park", "until", Scene.held, lambda s: {"claim": s.claim, "until": LATER}, until=(lambda a: a.task["wake_at"][:10], LATER[:10]))
case("park", "run", Scene.run, lambda s: {"claim": s.claim, "steps": [STEP]}, steps=_STEPS)
case("complete", "summary", Scene.held, lambda s: {"claim": s.claim, "summary": "All of it."}, summary=row("summary"))
case(
    "complete", "run", Scene.run, lambda s: {"claim": s.claim, "summary": "All of it.", "steps": [STEP], "journal": 0},
    steps=_STEPS, journal=(row("state"), "done"),
)  # fmt: skip
case(
    "complete", "account", Scene.held, lambda s: {"claim": s.claim, "summary": "All.", "details": "With care.", "issues": ["slow"]},
    details=(notes, ["With care.\n\nIssues:\n- slow"]), issues=(notes, ["With care.\n\nIssues:\n- slow"]),
)  # fmt: skip
case(
    "fail", "account", Scene.held, lambda s: {"claim": s.claim, "reason": "broken", "details": "With care.", "issues": ["slow"]},
    details=(notes, ["With care.\n\nIssues:\n- slow"]), issues=(notes, ["With care.\n\nIssues:\n- slow"]),
)  # fmt: skip
case(
    "fail", "reason", Scene.held, lambda s: {"claim": s.claim, "reason": "broken", "failure": "stuck"},
    reason=row("reason"), failure=row("failure"),
)  # fmt: skip
case("fail", "run", Scene.run, lambda s: {"claim": s.claim, "reason": "broken", "steps": [STEP], "journal": 0}, steps=_STEPS, journal=(row("state"), "failed"))
_CHILD = {**TASK, "title": "Part"}
case(
    "decompose", "children", lambda s: _around(s.held()), lambda s: {"claim": s.claim, "children": [{**_CHILD, "depends_on": [s.other]}]},
    children__depends_on=(lambda a: a.child("depends_on"), lambda s: [s.other]),
    **{f"children__{name}": (lambda a, name=name: a.child(name), value) for name, value in _CHILD.items()},
)  # fmt: skip
case("step", "steps", Scene.run, lambda s: {"claim": s.claim, "steps": [STEP], "program": PROGRAM}, steps=_STEPS, program=_PROGRAM)
case("rewind", "to", Scene.stepped, lambda s: {"claim": s.claim, "to": "2"}, to=(lambda a: len(a.desk.steps(a.scene.key)), 1))
case(
    "rewind", "spare", Scene.stepped, lambda s: {"claim": s.claim, "to": "2", "spare": True},
    spare=(lambda a: [x["spare"] for x in a.desk.steps(a.scene.key)].count(True), 2),
)  # fmt: skip

# --- questions --------------------------------------------------------------------------------------------------------

ASKED: dict[str, Any] = {
    "text": "Left or right?", "kind": "recovery", "context": {"text": "Two ways."}, "reason": "risk_assessment", "urgency": "low",
    "response_type": "choice", "options": OPTIONS, "allow_other": True, "group": "ways", "default": "left",
    "timeout": "2h", "on_timeout": "remind", "reviewer": "bob", "confidence": 0.25, "metadata": {"n": 1},
}  # fmt: skip
_ASKED: dict[str, Any] = {
    **{name: q(name) for name in ASKED}, "timeout": (lambda a: lasts("asked_at", "timeout_at")(a.q), 7200.0),
}  # fmt: skip
for _verb in ("ask", "flag"):
    case(_verb, "question", Scene.task, ASKED | ({"kind": "input"} if _verb == "flag" else {}), **_ASKED)
    case(_verb, "multi", Scene.task, {"text": "Which?", "kind": "input", "response_type": "choice", "options": OPTIONS, "multi": True}, multi=q("multi"))
    case(
        _verb, "action", Scene.task, {"text": "May I?", "kind": "permission", "action": ACTION},
        action=(lambda a: {name: a.q["action"][name] for name in ACTION}, ACTION),
    )  # fmt: skip
    case(
        _verb, "step", Scene.run, lambda s: {"text": "Which?", "kind": "input", "claim": s.claim, "step": "4"},
        step=(lambda a: a.q["step"], "4"),
    )  # fmt: skip
case("ask", "aside", Scene.task, {"text": "Which?", "kind": "input", "default": "left", "blocking": False}, blocking=q("blocking"))
case("ask", "claim", Scene.held, lambda s: {"text": "Which?", "claim": s.claim}, claim=_HELD)
case("flag", "run", Scene.run, lambda s: {"text": "Look.", "claim": s.claim, "steps": [STEP], "program": PROGRAM}, steps=_STEPS, program=_PROGRAM)
case(
    "flag", "also", Scene.task, {"kind": "input", "text": "Which?", "also": [{"text": "Where?", "options": OPTIONS}]},
    also=(lambda a: [(one["text"], one["options"]) for one in a.task["questions"]], [("Which?", []), ("Where?", OPTIONS)]),
)  # fmt: skip
case("flag", "hold", Scene.held, lambda s: {"text": "Look.", "claim": s.claim, "hold": True}, hold=_HELD)
case("flag", "once", lambda s: s.asked("review"), {"kind": "review", "text": "Look.", "once": True}, once=(lambda a: len(a.task["questions"]), 1))
case("flag", "replace", Scene.asked, {"kind": "review", "text": "Look.", "replace": True}, replace=(row("awaiting"), "review"))
case(
    "flag", "fields", Scene.task, {"kind": "review", "text": "Look.", "reviewer": "bob", "fields": {"title": "Said"}},
    fields=(row("title"), "Said"), text=q("text"), reviewer=q("reviewer"),
)  # fmt: skip
case("answer", "value", Scene.asked, {"value": "left"}, value=response("value"))
case("answer", "text", Scene.asked, {"value": "left", "text": "with care"}, text=response("text"))
case("answer", "verdict", lambda s: s.asked("approval"), {"verdict": "rejected", "text": "no good"}, verdict=response("verdict"), text=response("text"))
case("answer", "restart", Scene.late, {"value": "left", "restart": True}, restart=(late, "(Before?): left"))
case("answer", "signal", Scene.asking_step, {"signal": {"status": "DONE", "summary": "said"}}, signal=(lambda a: a.desk.steps(a.scene.key)[0]["status"], "completed"))
case("approve", "text", lambda s: s.asked("checkpoint"), {"text": "well done"}, text=response("text"))
case("approve", "restart", Scene.late, {"text": "after all", "restart": True}, restart=(late, "(Before?): after all"))
case("reject", "restart", Scene.late, {"text": "not at all", "restart": True}, restart=(late, "(Before?): no. not at all"))
case("approve", "value", lambda s: s.asked(options=OPTIONS), {"value": "right"}, value=response("value"))
case("reject", "text", lambda s: s.asked("checkpoint"), {"text": "no good"}, text=response("text"))
case("withdraw", "reason", Scene.asked, {"reason": "not needed"}, reason=q("close_reason"))
case("use", "by", lambda s: _taken(s), lambda s: {"by": "s/c1", "digest": s.digest, "claim": s.claim}, by=q("used_by"))
case("use", "digest", lambda s: _taken(s), lambda s: {"by": "s/c1", "digest": "0" * 64, "claim": s.claim}, refused="precondition", digest=("", ""))
case("assign", "reviewer", Scene.asked, {"reviewer": "bob"}, reviewer=q("reviewer"))

# --- with a reason ----------------------------------------------------------------------------------------------------

for _verb, _stage in (
    ("resolve", Scene.asked), ("accept", Scene.finished), ("stop", Scene.task), ("cancel", Scene.task), ("close", Scene.task),
    ("defer", Scene.task),
):  # fmt: skip
    case(_verb, "reason", _stage, {"reason": "because"}, reason=row("reason"))
case("reopen", "reason", Scene.done, {"reason": "because"}, reason=event("reason"))
case("reject", "finished", Scene.finished, {"text": "no good"}, text=(notes, ["no good"]))
case("defer", "until", Scene.task, {"until": LATER}, until=(lambda a: a.task["wake_at"][:10], LATER[:10]))

# --- proofs: a claim that is shown is always checked, so a wrong one is refused ------------------------------------------

_LEAST: dict[str, dict[str, Any]] = {
    "ask": {"text": "Which?"}, "flag": {"text": "Look."}, "decompose": {"children": [{"title": "Part"}]},
    "update": {"fields": {"title": "Said"}}, "step": {"steps": [STEP]}, "rewind": {"to": "1"},
}  # fmt: skip
for _verb, _about in VERBS.items():
    if "claim" in _about.args and _verb != "claim":
        _scene: Callable[[Scene], Any] = Scene.stepped if _verb in ("step", "rewind") else Scene.held
        _scene = Scene.asked_by_holder if _verb == "withdraw" else Scene.permitted if _verb == "use" else _scene
        _more = _LEAST.get(_verb, {})
        if _verb == "use":
            case("use", "claim", _scene, lambda s: {"by": "s", "digest": s.digest, "claim": WRONG}, refused="claim_lost", claim=("", ""))
            case("use", "worker", lambda s: _taken(s), lambda s: {"by": "s", "digest": s.digest, "claim": s.claim, "worker": "w9"}, refused="claim_lost", worker=("", ""))
            continue
        case(_verb, "claim", _scene, lambda s, m=_more: {**m, "claim": f"{s.key}.99.wrong"}, refused="claim_lost", claim=("", ""))
        case(_verb, "worker", _scene, lambda s, m=_more: {**m, "claim": s.claim, "worker": "w9"}, refused="claim_lost", worker=("", ""))


def _taken(s: Scene) -> Scene:
    s.permitted()
    s.claim = s.agent.claim(s.key, "w1")["claim"]["token"]
    return s


# --- the office -------------------------------------------------------------------------------------------------------


def _person(s: Scene) -> Scene:
    s.name = f"p{os.urandom(4).hex()}"
    return s


def _member(s: Scene) -> Scene:
    _person(s)
    s.desk.set_user(s.name, "viewer")
    return s


def _token(s: Scene) -> Scene:
    _person(s)
    s.desk.create_token(s.name, "agent")
    return s


def _project(s: Scene) -> Scene:
    s.name = f"N{os.urandom(4).hex()}".upper()
    return s


def project(a: After) -> dict[str, Any]:
    return next(p for p in a.desk.projects() if p["key"] == a.scene.name)


def user(a: After) -> dict[str, Any]:
    return next((u for u in a.desk.users() if u["name"] == a.scene.name), {})


def token(a: After) -> dict[str, Any]:
    return next(t for t in reversed(a.desk.tokens()) if t["name"] == a.scene.name)


case(
    "project_create", "name", _project, lambda s: {"project": s.name, "name": "A new one"},
    project=lambda a: project(a)["key"], name=lambda a: project(a)["name"],
)  # fmt: skip
case(
    "project_set", "value", lambda s: s.desk.create_project(_project(s).name),
    lambda s: {"project": s.name, "setting": "max_retries", "value": "9"},
    **dict.fromkeys(("project", "setting", "value"), (lambda a: project(a)["settings"]["max_retries"], 9)),
)  # fmt: skip
case("user_set", "role", _person, lambda s: {"user": s.name, "role": "approver"}, user=lambda a: user(a)["name"], role=lambda a: user(a)["role"])
case("user_remove", "user", _member, lambda s: {"user": s.name}, user=(user, {}))
case(
    "token_create", "role", _person,
    lambda s: {"name": s.name, "role": "viewer", "actor": "human:ana", "expires": "2h", "scopes": ["read"]},
    name=lambda a: token(a)["name"], role=lambda a: token(a)["role"], actor=lambda a: token(a)["actor"],
    scopes=lambda a: token(a)["scopes"], expires=(lambda a: lasts("created_at", "expires_at")(token(a)), 7200.0),
)  # fmt: skip
case("token_revoke", "name", _token, lambda s: {"name": s.name}, name=(lambda a: token(a)["revoked_at"] is not None, True))

#: What is made of several: each part is an argument of its own.
PARTS = {("update", "fields"): tuple(UPDATES), ("decompose", "children"): (*TASK, "depends_on")}


def arguments(verb: str) -> list[str]:
    found: list[str] = []
    for name in VERBS[verb].args:
        found += [f"{name}.{part}" for part in PARTS[verb, name]] if (verb, name) in PARTS else [name]
    return found
