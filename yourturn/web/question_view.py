"""View model of one question: what is asked, the evidence, and what each answer does."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..client import Client
from ..core.errors import NotFound
from ..core.model import PENDING
from ..core.permissions import GRANTS
from ..core.rules import KINDS
from . import evidence, labels, page_version, times, view_models
from .request import idempotency_key

#: Earlier rounds that are shown, and lines of the log.
MAX_ROUNDS, LOG_LINES = 6, 8
#: Characters of an earlier question.
MAX_ROUND_TEXT = 140
#: Kinds that show the diff of the work.
WITH_DIFF = frozenset({"approval", "review", "content", "checkpoint", "permission"})
#: A question, as client/serialize.py returns it.
Question = dict[str, Any]


class Option(NamedTuple):
    number: int
    label: str
    about: str
    tags: tuple[str, ...]
    chosen: bool


class Round(NamedTuple):
    """An earlier question of the same task."""

    id: str
    text: str
    when: times.Moment
    icon: str
    tone: str
    result: str


class AnswerDraft(NamedTuple):
    """The contents of a refused form, which is shown again, and what is wrong with it."""

    options: frozenset[str] = frozenset()
    other: str = ""
    value: str = ""
    text: str = ""
    wrong: str = ""


EMPTY_DRAFT = AnswerDraft()


class Article(NamedTuple):
    id: str
    slug: str
    place: str  #: page, pane or sheet
    kind: view_models.KindView
    task: str
    task_title: str
    title: str
    more: str
    who: view_models.ActorView
    asked: times.Moment
    why: str
    waits: bool  #: its task waits for the answer
    holds_up: tuple[str, ...]
    time: times.Countdown
    then: str
    form: str  #: text, number, choice, boolean, approval
    multi: bool
    other: bool
    options: tuple[Option, ...]
    action: evidence.ActionView | None
    changed: evidence.ActionView | None  #: the action as a person edited it
    used_by: str
    diff: evidence.Diff | None  #: read from git
    error: str
    own_words: str
    context: tuple[tuple[str, str], ...]
    given_diff: evidence.Diff | None  #: from the agent's context
    rounds: tuple[Round, ...]
    also: tuple[str, ...]  #: other open questions of the task
    log: tuple[tuple[str, str, str], ...]
    about: str  #: the task's description
    buttons: labels.AnswerButtons | None
    may: bool
    refused: str  #: why this person cannot answer
    editable: bool
    can_cancel: bool
    can_hand_back: bool
    over: str  #: how it was closed
    sent: str
    next: str
    key: str
    draft: AnswerDraft
    comment_label: str  #: of the small field beside a choice
    confidence: str
    default: str
    as_of: str  #: the version of its task that the page shows
    can_restart: bool  #: it timed out, and an answer of this person would restart its task


def find_question(client: Client, named: str) -> Question:
    """A question by its id, or the open question of a task by the task's key."""
    question = next(iter(client.inbox(only=[named])), None)
    if question is not None:
        return question
    try:
        task = client.show(named)
    except NotFound as error:
        raise NotFound(error.message, hint="Its number may be cut short, or it belongs to another workspace.") from None
    waiting = client.inbox(task=task["key"]) if "key" in task else []
    if not waiting:
        raise NotFound(f"{task.get('key', named)[:60]} has no open question", hint=f"It is '{task.get('state')}'.")
    return waiting[0]


def pane(client: Client, named: str, now: int) -> Article | None:
    """The question in the inbox's pane; None if there is no question of that name."""
    try:
        return article(client, find_question(client, named), now, "pane")
    except NotFound:
        return None


def article(
    client: Client, q: Question, now: int, place: str, draft: AnswerDraft = EMPTY_DRAFT, sent: str = "", next: str = ""
) -> Article:
    task = client.show(q["task"])
    run, asker = labels.script_name(task), labels.actor_name(q["asked_by"])
    me, pending = client.who, q["status"] == PENDING
    title, _, more = q["text"].strip().partition("\n")
    action = evidence.action(q["action"], q["digest"]) if q["action"] is not None else None
    if action and more.strip() == action.command.strip():
        more = ""
    response = q["response"] or {}
    names = [str(o[name]) for o in q["options"] for name in ("id", "value", "label")]
    own_words, context = evidence.own_words(q["context"], names)
    given_diff = evidence.diff_of(q["context"])
    refused = refusal(client, q, task) if pending else ""
    effects = client.effects(q["id"]).get(q["id"], []) if pending else []
    return Article(
        id=q["id"],
        slug=q["id"].lower(),
        place=place,
        kind=view_models.kind(q),
        task=q["task"],
        task_title=task["title"],
        title=title,
        more=more.strip(),
        who=view_models.actor_view(q["asked_by"]),
        asked=times.moment(q["asked_at"], now),
        why=labels.waiting_reason(q),
        waits=q["blocking"],
        holds_up=tuple(client.holds_up(q["task"])),
        time=times.countdown(q, now),
        then=labels.timeout_text(q, run) or "it keeps waiting",
        form=q["response_type"],
        multi=q["multi"],
        other=q["allow_other"],
        options=_options(q, draft),
        action=action,
        changed=evidence.action(response["value"], response["digest"]) if "digest" in response else None,
        used_by=q["used_by"] or "",
        diff=_git_diff(client, q["task"]) if q["kind"] in WITH_DIFF else None,
        error=evidence.error_of(q["context"]),
        own_words=own_words,
        context=context,
        given_diff=evidence.diff(given_diff, f"given by {asker}") if given_diff else None,
        rounds=_rounds(task, q, now, me.name),
        also=tuple(o["id"] for o in task["questions"] if o["status"] == PENDING and o["id"] != q["id"]),
        log=_log(client, q["task"]),
        about=task["description"] or "",
        buttons=labels.answer_buttons(q, effects, run) if pending else None,
        may=pending and not refused and "human" in GRANTS[me.role],
        refused=refused,
        editable=q["kind"] == "permission" and evidence.editable(q["action"]) is not None,
        can_cancel=pending and q["kind"] == "work" and not run,
        can_hand_back=pending and q["kind"] == "work",
        over="" if pending else labels.result_text(q, me.name, not sent) + view_models.timeout_outcome(q, task),
        sent=sent,
        next=next,
        key=idempotency_key(),
        draft=draft,
        comment_label=f"Add a word for {run or asker} (optional)",
        confidence=f"{q['confidence']:.0%} sure" if q["confidence"] is not None else "",
        default=labels.answer_label(q, q["default"]) if q["default"] is not None else "",
        as_of=page_version.mark(task),
        can_restart=place == "page" and not sent and q["status"] == "timeout" and "restart" in client.moves(q["id"]),
    )


def refusal(client: Client, q: Question, task: dict[str, Any]) -> str:
    """Why this person cannot answer, and who can; empty if they can."""
    role = client.who.role
    if "human" not in GRANTS[role]:
        return "You can look, but not answer."
    gate = KINDS[q["kind"]].gate or task["requires"] is not None
    if not gate or "approver" in GRANTS[role] or _approvals(client, q["task"]) != "approvers":
        return ""
    return f"{only_approvers(q)}. {approver_hint(client)}".rstrip()


def _approvals(client: Client, key: str) -> str:
    """The setting `approvals` of the task's project."""
    project = key.rpartition("-")[0]
    return next((str(p["settings"]["approvals"]) for p in client.projects() if p["key"] == project), "members")


def only_approvers(q: Question) -> str:
    return f"Only approvers can {'allow' if q['kind'] == 'permission' else 'answer'} this"


def approver_hint(client: Client) -> str:
    names = [user["name"] for user in client.users() if "approver" in GRANTS.get(user["role"], ())]
    return f"Ask {' or '.join(names[:4])}." if names else ""


def _options(q: Question, draft: AnswerDraft) -> tuple[Option, ...]:
    suggestion = evidence.suggestion_of(q["context"])
    suggested = suggestion if isinstance(suggestion, list) else [] if suggestion is None else [suggestion]
    suggested = [str(value).strip().casefold() for value in suggested]
    default = q["default"]
    options = []
    for index, o in enumerate(q["options"]):
        tags = []
        if default is not None and (o["value"] in default if isinstance(default, list) else o["value"] == default):
            tags.append("default")
        if any(str(o[name]).strip().casefold() in suggested for name in ("id", "value", "label")):
            tags.append(f"{labels.actor_name(q['asked_by'])}’s choice")
        options.append(Option(index, str(o["label"]), o["description"] or "", tuple(tags), str(index) in draft.options))
    return tuple(options)


def _git_diff(client: Client, key: str) -> evidence.Diff | None:
    """The work, as the worker read it from git."""
    patch = client.patch(key)
    return evidence.diff(patch["body"], f"read from git, {patch['base'][:7]}") if patch and patch["body"].strip() else None


def _rounds(task: dict[str, Any], q: Question, now: int, me: str) -> tuple[Round, ...]:
    """The closed questions of the task, the newest first."""
    rounds = []
    for other in reversed(task["questions"]):
        if other["status"] == PENDING or other["id"] == q["id"]:
            continue
        rejected = (other["response"] or {}).get("verdict") == "rejected"
        icon, tone = ("clock", "gate") if other["status"] == "timeout" else ("x", "trouble" if rejected else "")
        if other["status"] == "answered" and not rejected:
            icon, tone = "check", "good"
        when = times.moment(other["responded_at"] or other["asked_at"], now)
        text, _, more = other["text"].strip().partition("\n")
        text = f"{text[:MAX_ROUND_TEXT]}…" if len(text) > MAX_ROUND_TEXT else f"{text} …" if more else text
        rounds.append(Round(other["id"], text, when, icon, tone, labels.result_text(other, me)))
    return tuple(rounds[:MAX_ROUNDS])


def _log(client: Client, key: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((x["at"], x["sort"], x["text"].rstrip()) for x in client.output(key, limit=LOG_LINES))
