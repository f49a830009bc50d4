"""One question as a view model: what is asked, what it is judged by, and what each answer does."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..client import Client
from ..core.errors import NotFound
from ..core.model import PENDING
from ..core.permissions import GRANTS
from ..core.rules import KINDS
from . import evidence, inbox, labels, page_version, view_models
from .request import Visit

#: Earlier rounds that are shown, and lines of the log.
ROUNDS, TAIL = 6, 8
#: Characters of an earlier question.
BRIEF = 140
#: Kinds that are judged by the work itself, or next to it.
JUDGED = frozenset({"approval", "review", "content", "checkpoint", "permission"})
Asked = dict[str, Any]


class Option(NamedTuple):
    at: int
    label: str
    about: str
    tags: tuple[str, ...]
    chosen: bool


class Round(NamedTuple):
    id: str
    text: str
    when: view_models.Moment
    icon: str
    tone: str
    words: str


class Draft(NamedTuple):
    """What somebody had written when something was wrong with it."""

    options: frozenset[str] = frozenset()
    other: str = ""
    value: str = ""
    text: str = ""
    wrong: str = ""


NOTHING = Draft()


class Article(NamedTuple):
    id: str
    slug: str
    place: str  #: page, pane or sheet
    kind: view_models.Kind
    task: str
    task_title: str
    title: str
    more: str
    who: view_models.Who
    asked: view_models.Moment
    why: str
    waits: bool  #: its task does not go on before the answer
    holds_up: tuple[str, ...]
    time: view_models.Time
    then: str
    form: str  #: text, number, choice, boolean, approval
    multi: bool
    other: bool
    options: tuple[Option, ...]
    action: evidence.Action | None
    changed: evidence.Action | None  #: what a person made of it
    used_by: str
    diff: evidence.Diff | None
    error: str
    said: str
    rest: tuple[tuple[str, str], ...]
    said_diff: evidence.Diff | None
    rounds: tuple[Round, ...]
    also: tuple[str, ...]
    log: tuple[tuple[str, str, str], ...]
    about: str  #: what its task says
    answers: labels.Answers | None
    may: bool
    refused: str  #: why this person cannot answer
    editable: bool
    can_cancel: bool
    can_hand_back: bool
    over: str
    sent: str
    next: str
    key: str
    draft: Draft
    word: str  #: what the small field beside a choice says
    confidence: str
    default: str
    as_of: str  #: its task, as the page shows it
    can_restart: bool  #: its time ran out, and an answer of this person would start its task again


def find(client: Client, named: str) -> Asked:
    """A question by its id, or the open one that a task's key stands for."""
    found = next(iter(client.inbox(only=[named])), None)
    if found is not None:
        return found
    try:
        task = client.show(named)
    except NotFound as error:
        raise NotFound(error.message, hint="Its number may be cut short, or it belongs to another workspace.") from None
    waiting = client.inbox(task=task["key"]) if "key" in task else []
    if not waiting:
        raise NotFound(f"{task.get('key', named)[:60]} does not wait for anybody", hint=f"It is '{task.get('state')}'.")
    return waiting[0]


def pane(visit: Visit, named: str, now: int) -> Article | None:
    """For the inbox; None where there is none of that name any more."""
    try:
        return made(visit.client, find(visit.client, named), now, "pane")
    except NotFound:
        return None


def made(client: Client, q: Asked, now: int, place: str, draft: Draft = NOTHING, sent: str = "", next: str = "") -> Article:
    task = client.show(q["task"])
    run = labels.script(task)
    me, pending = client.who, q["status"] == PENDING
    title, _, more = q["text"].strip().partition("\n")
    it = evidence.action(q["action"], q["digest"]) if q["action"] is not None else None
    if it and more.strip() == it.command.strip():
        more = ""
    response = q["response"] or {}
    changed = evidence.action(response["value"], response["digest"]) if "digest" in response else None
    said, rest = evidence.own_words(q["context"], [str(o[n]) for o in q["options"] for n in ("id", "value", "label")])
    refused = refusal(client, q, task) if pending else ""
    effects = client.effects(q["id"]).get(q["id"], []) if pending else []
    answers = labels.answers(q, effects, run) if pending else None
    default = labels.label(q, q["default"]) if q["default"] is not None else ""
    name = labels.name(q["asked_by"])
    return Article(
        q["id"], q["id"].lower(), place, view_models.kind(q), q["task"], task["title"], title, more.strip(),
        view_models.who(q["asked_by"]),
        view_models.at(q["asked_at"], now), labels.why_waits(q), q["blocking"], tuple(client.holds_up(q["task"])),
        view_models.countdown(q, now), labels.silence(q, run) or "it keeps waiting",
        q["response_type"], q["multi"], q["allow_other"], _options(q, draft), it, changed, q["used_by"] or "",
        _kept(client, q) if q["kind"] in JUDGED else None, evidence.error_of(q["context"]), said, rest,
        evidence.diff(text, f"given by {name}") if (text := evidence.diff_of(q["context"])) else None,
        _rounds(task, q, now, me.name),
        tuple(o["id"] for o in task["questions"] if o["status"] == PENDING and o["id"] != q["id"]),
        _log(client, q["task"]), task["description"] or "", answers, pending and not refused and "human" in GRANTS[me.role],
        refused,
        q["kind"] == "permission" and evidence.editable(q["action"]) is not None,
        pending and q["kind"] == "work" and not run, pending and q["kind"] == "work",
        "" if pending else labels.result(q, me.name, not sent) + view_models.fate(q, task),
        sent, next, inbox.new_key(), draft, f"Add a word for {run or name} (optional)",
        f"{q['confidence']:.0%} sure" if q["confidence"] is not None else "", default,
        page_version.mark(task),
        place == "page" and not sent and q["status"] == "timeout" and "restart" in client.moves(q["id"]),
    )  # fmt: skip


def refusal(client: Client, q: Asked, task: dict[str, Any]) -> str:
    """A project may keep its gates for approvers: then who may is named."""
    role = client.who.role
    if "human" not in GRANTS[role]:
        return "You can look, but not answer."
    gate = KINDS[q["kind"]].gate or task["requires"] is not None
    if not gate or "approver" in GRANTS[role] or _approvals(client, q["task"]) != "approvers":
        return ""
    return f"Only approvers can {'allow' if q['kind'] == 'permission' else 'answer'} this.{ask_whom(client)}"


def _approvals(client: Client, key: str) -> str:
    project = key.rpartition("-")[0]
    return next((str(p["settings"]["approvals"]) for p in client.projects() if p["key"] == project), "members")


def ask_whom(client: Client) -> str:
    names = [user["name"] for user in client.users() if "approver" in GRANTS.get(user["role"], ())]
    return f" Ask {' or '.join(names[:4])}." if names else ""


def _options(q: Asked, draft: Draft) -> tuple[Option, ...]:
    pick = evidence.suggestion_of(q["context"])
    picks = [str(one).strip().casefold() for one in (pick if isinstance(pick, list) else [pick])] if pick is not None else []
    found = []
    for at, o in enumerate(q["options"]):
        tags = []
        default = q["default"]
        if default is not None and (o["value"] in default if isinstance(default, list) else o["value"] == default):
            tags.append("default")
        if any(str(o[name]).strip().casefold() in picks for name in ("id", "value", "label")):
            tags.append(f"{labels.name(q['asked_by'])}’s choice")
        found.append(Option(at, str(o["label"]), o["description"] or "", tuple(tags), str(at) in draft.options))
    return tuple(found)


def _kept(client: Client, q: Asked) -> evidence.Diff | None:
    """The work in the folder, as the worker read it from git."""
    patch = client.patch(q["task"])
    return evidence.diff(patch["body"], f"read from git, {patch['base'][:7]}") if patch and patch["body"].strip() else None


def _rounds(task: dict[str, Any], q: Asked, now: int, me: str) -> tuple[Round, ...]:
    found = []
    for other in reversed(task["questions"]):
        if other["status"] == PENDING or other["id"] == q["id"]:
            continue
        no = (other["response"] or {}).get("verdict") == "rejected"
        icon, tone = ("clock", "gate") if other["status"] == "timeout" else ("x", "trouble" if no else "")
        if other["status"] == "answered" and not no:
            icon, tone = "check", "good"
        when = view_models.at(other["responded_at"] or other["asked_at"], now)
        text, _, more = other["text"].strip().partition("\n")
        text = f"{text[:BRIEF]}…" if len(text) > BRIEF else f"{text} …" if more else text
        found.append(Round(other["id"], text, when, icon, tone, labels.result(other, me)))
    return tuple(found[:ROUNDS])


def _log(client: Client, key: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((x["at"], x["sort"], x["text"].rstrip()) for x in client.output(key, limit=TAIL))
