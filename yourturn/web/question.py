"""A question: what is asked, what it is judged by, and what each answer does. Page, pane and sheet are one article."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..client import Client
from ..core.access import GRANTS
from ..core.canon import digest, loads
from ..core.errors import AlreadyClosed, IllegalMove, Invalid, KeyReused, NotAllowed, NotFound, YourturnError
from ..core.model import ENDED, HUMAN, PENDING
from ..core.rules import KINDS
from ..view import person
from . import evidence, frame, inbox, shape, words
from .visit import Data, Go, Page, Part, Shown, Visit

#: Earlier rounds that are shown, and lines of the log.
ROUNDS, TAIL = 6, 8
#: Kinds that are judged by the work itself.
JUDGED = frozenset({"approval", "review", "content", "checkpoint"})
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
    when: shape.Moment
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
    kind: shape.Kind
    task: str
    task_title: str
    title: str
    more: str
    who: shape.Who
    asked: shape.Moment
    why: str
    holds_up: tuple[str, ...]
    time: shape.Time
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
    answers: words.Answers | None
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


def find(client: Client, named: str) -> Asked:
    """A question, or finished work by its task's key."""
    found = next(iter(client.inbox(only=[named])), None)
    if found is None:
        task = client.show(named)
        if "key" in task:
            raise NotFound(f"{task['key']} does not wait for anybody", hint=f"It is '{task['state']}'.")
        raise NotFound(f"There is no question {named[:60]}")
    return found


def pane(visit: Visit, named: str, now: int) -> Article | None:
    """For the inbox; None where there is none of that name any more."""
    try:
        return made(visit.client, find(visit.client, named), now, "pane")
    except NotFound:
        return None


def made(client: Client, q: Asked, now: int, place: str, draft: Draft = NOTHING, sent: str = "", next: str = "") -> Article:
    task = client.show(q["task"])
    run = words.script(task)
    me, pending = client.who, q["status"] == PENDING
    title, _, more = q["text"].strip().partition("\n")
    it = evidence.action(q["action"], q["digest"]) if q["action"] is not None else None
    if it and more.strip() == it.command.strip():
        more = ""
    response = q["response"] or {}
    changed = evidence.action(response["value"], response["digest"]) if "digest" in response else None
    said, rest = evidence.own_words(q["context"], [str(o[n]) for o in q["options"] for n in ("id", "value", "label")])
    refused = refusal(client, q, task) if pending else ""
    answers = words.answers(q, run) if pending else None
    default = words.label(q, q["default"]) if q["default"] is not None else ""
    name = words.name(q["asked_by"])
    return Article(
        q["id"], q["id"].lower(), place, shape.kind(q), q["task"], task["title"], title, more.strip(), shape.who(q["asked_by"]),
        shape.at(q["asked_at"], now), words.why_waits(q), tuple(client.holds_up(q["task"])), shape.countdown(q, now),
        words.silence(q, run) or f"waits {shape.short(max(0, -shape.seconds_until(q['asked_at'], now)))}",
        q["response_type"], q["multi"], q["allow_other"], _options(q, draft), it, changed, q["used_by"] or "",
        _kept(client, q) if q["kind"] in JUDGED else None, evidence.error_of(q["context"]), said, rest,
        evidence.diff(text, f"given by {name}") if (text := evidence.diff_of(q["context"])) else None,
        _rounds(task, q, now, me.name), tuple(o["id"] for o in task["questions"] if o["status"] == PENDING and o["id"] != q["id"]),
        _log(client, q["task"]), answers, pending and not refused and "human" in GRANTS[me.role], refused,
        q["kind"] == "permission" and evidence.editable(q["action"]) is not None,
        pending and q["kind"] == "work" and not run, pending and q["kind"] == "work", "" if pending else words.result(q, me.name),
        sent, next, inbox.new_key(), draft, f"Add a word for {run or name} (optional)",
        f"{q['confidence']:.0%} sure" if q["confidence"] is not None else "", default,
    )  # fmt: skip


def refusal(client: Client, q: Asked, task: dict[str, Any]) -> str:
    """A project may keep its gates for approvers: then who may is named."""
    role = client.who.role
    if "human" not in GRANTS[role]:
        return "You can look, but not answer."
    gate = KINDS[q["kind"]].gate or task["requires"] is not None
    if not gate or "approver" in GRANTS[role] or _approvals(client, q["task"]) != "approvers":
        return ""
    return f"Only approvers can {'allow' if q['kind'] == 'permission' else 'answer'} this.{_ask_whom(client)}"


def _approvals(client: Client, key: str) -> str:
    project = key.rpartition("-")[0]
    return next((str(p["settings"]["approvals"]) for p in client.projects() if p["key"] == project), "members")


def _ask_whom(client: Client) -> str:
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
            tags.append(f"{words.name(q['asked_by'])}’s choice")
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
        when = shape.at(other["responded_at"] or other["asked_at"], now)
        found.append(Round(other["id"], other["text"], when, icon, tone, words.result(other, me)))
    return tuple(found[:ROUNDS])


def _log(client: Client, key: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((x["at"], x["sort"], x["text"].rstrip()) for x in client.output(key, limit=TAIL))


# --- pages ------------------------------------------------------------------------------------------------------------


def show(visit: Visit) -> Shown:
    """?as=pane, sheet, row or toast: a piece for a page that is open."""
    named, part = visit.path["id"], visit.query.get("as", "")
    now = shape.now_of(visit.client)
    context = {"csrf": visit.csrf, "may": "human" in GRANTS[visit.client.who.role]}
    if part in ("pane", "sheet"):
        q = find(visit.client, named)
        told = f"Sent. {words_sent(visit.client, q)}" if "sent" in visit.query and q["status"] != PENDING else ""
        found = made(visit.client, q, now, part, sent=told, next=neighbours(visit, q["id"], now).after if told else "")
        return Part(frame.part("article.html", "article", found, **context))
    if part in ("row", "toast"):
        q = find(visit.client, named)
        row = shape.row(q, now, visit.client.who.name, words.script(q), inbox.new_key())
        macro = "row" if part == "row" else "toast"
        return Part(frame.part(f"{macro}.html", macro, row, **context, mine=inbox.is_mine(q, visit.client)))
    return _page(visit, named, now)


def _page(visit: Visit, named: str, now: int, draft: Draft = NOTHING, status: int = 200, **more: Any) -> Page:
    q = find(visit.client, named)
    around = neighbours(visit, q["id"], now)
    sent = f"Sent. {words_sent(visit.client, q)}" if "sent" in visit.query and q["status"] != PENDING else ""
    if "kept" in visit.query:
        sent = f"Kept as a note on {q['task']}."
    found = made(visit.client, q, now, "page", draft, sent, around.after)
    return Page("question.html", {"here": "inbox", "q": found, "around": around, "ending": None, "waiting": around.mine, **more}, status)


class Around(NamedTuple):
    place: int
    total: int
    before: str
    after: str
    mine: int


def neighbours(visit: Visit, named: str, now: int) -> Around:
    """Where a question stands in the inbox, and who stands beside it."""
    found = inbox.survey(visit, inbox.Wish(), now)
    ids = [q["id"] for _, q in found.order]
    if named not in ids:
        return Around(0, len(ids), "", ids[0] if ids else "", found.mine)
    at = ids.index(named)
    return Around(at + 1, len(ids), ids[at - 1] if at else "", ids[at + 1] if at + 1 < len(ids) else "", found.mine)


def words_sent(client: Client, q: Asked) -> str:
    """What came of an answer: 'coder goes on with API-31.'"""
    task = client.show(q["task"])
    key, state = task["key"], task["state"]
    if state == HUMAN:
        waits = [o["id"] for o in task["questions"] if o["status"] == PENDING and o["blocking"]]
        return f"{key} still waits for {' and '.join(waits[:3])}."
    if state in ENDED:
        return f"{key} is {state}."
    who = words.script(task) or words.name(q["asked_by"])
    return f"{who} hears of it." if not q["blocking"] else f"{who} goes on with {key}."


# --- answers ----------------------------------------------------------------------------------------------------------


def read(visit: Visit, q: Asked) -> tuple[dict[str, Any], Draft]:
    """What the form says, as an answer; and as a draft, should it have to be shown again."""
    verdict, _, short = visit.field("say").partition(" ")
    text, value = visit.field("text").strip(), visit.field("value").strip()
    picked, other = visit.fields("option"), visit.field("other").strip()
    draft = Draft(frozenset(picked), other, value, text)
    given: dict[str, Any] = {"verdict": verdict or "approved", "text": text}
    if given["verdict"] not in ("approved", "rejected", "cancel"):
        raise Invalid("Say yes or no", hint="The question is still open.")
    if given["verdict"] != "approved":
        if other and not text:
            given["text"] = other
        return given, draft
    if visit.field("action"):
        given["value"] = loads(visit.field("action"), "The action")
    elif q["response_type"] == "choice":
        given["value"] = _chosen(q, [short] if short else picked, other)
    elif q["response_type"] == "boolean":
        given["value"] = short or None
    elif q["response_type"] in ("text", "number"):
        given["value"], given["text"] = value or None, text
        if not value:
            raise Invalid("Write an answer first", hint="The question is still open.")
    return given, draft


def _chosen(q: Asked, picked: list[str], other: str) -> Any:
    found = []
    for one in picked:
        if one == "other" and q["allow_other"] and other:
            found.append(other)
        elif one.isascii() and one.isdigit() and int(one[:6]) < len(q["options"]):
            found.append(q["options"][int(one)]["value"])
    if not found:
        names = ", ".join(str(o["label"]) for o in q["options"])
        raise Invalid(f"Choose {'some' if q['multi'] else 'one'} of: {names}", hint="The question is still open.")
    return found if q["multi"] else found[0]


def say(client: Client, q: Asked, given: dict[str, Any], key: str | None) -> None:
    """Answer, in the words of the client."""
    verdict, text = given["verdict"], given.get("text", "")
    if verdict == "cancel":
        client.cancel(q["task"], text, key=key)
    elif words.is_finished(q):
        (client.approve if verdict == "approved" else client.reject)(q["task"], text, key=key)
    else:
        client.answer(q["id"], given.get("value"), text, verdict, key=key)


def answer(visit: Visit) -> Shown:
    q = find(visit.client, visit.path["id"])
    draft, given = NOTHING, dict[str, Any]()
    try:
        given, draft = read(visit, q)
        if q["status"] == PENDING:
            _asks_why(q, given, visit)
        say(visit.client, q, given, visit.key)
    except (AlreadyClosed, KeyReused, IllegalMove):
        return _too_late(visit, q, given)
    except NotFound:
        raise
    except YourturnError as error:
        if isinstance(error, NotAllowed) and q["kind"] in KINDS and "approvers" in error.reason:
            error = NotAllowed(f"Only approvers can {'allow' if q['kind'] == 'permission' else 'answer'} this", hint=_ask_whom(visit.client).strip())
        if visit.wants_data or error.http_status >= 500:
            raise error from None
        wrong = f"{error.message}. {error.hint}".replace(f"{q['id']} takes", "Choose").strip()
        return _page(visit, q["id"], shape.now_of(visit.client), draft._replace(wrong=wrong), error.http_status)
    return _sent(visit, q)


def _asks_why(q: Asked, given: dict[str, Any], visit: Visit) -> None:
    if given["verdict"] != "rejected" or given["text"]:
        return
    no = words.answers(q, words.script(q)).no
    if no is not None and no.needs_why:
        raise Invalid(no.why.rstrip("?") + "? Say it in a few words", hint="The question is still open.")


def _sent(visit: Visit, q: Asked) -> Shown:
    now = shape.now_of(visit.client)
    around = neighbours(visit, q["id"], now)
    after = next(iter(visit.client.inbox(only=[q["id"]])), None) if not words.is_finished(q) else None
    told = words_sent(visit.client, after or q)
    if visit.wants_data:
        result = words.result(after, visit.client.who.name) if after and after["status"] != PENDING else told
        return Data({"sent": told, "result": result, "next": around.after, "waiting": around.mine})
    if visit.field("quick") or words.is_finished(q):
        return Go(f"/inbox?sent={q['id']}")
    return Go(f"/questions/{q['id']}?sent=1")


def cancel(visit: Visit) -> Shown:
    """Before a task is ended by an answer: who stops, and what no longer waits."""
    q = find(visit.client, visit.path["id"])
    if q["status"] != PENDING:
        return Go(f"/questions/{q['id']}")
    task = visit.client.show(q["task"])
    holds = visit.client.holds_up(q["task"])
    ends = "cancel" if q["kind"] == "work" else "rejected"
    ending = {"say": ends, "who": words.name(q["asked_by"]), "branch": bool(task["branch"]), "holds_up": holds, "key": q["task"]}
    return _page(visit, q["id"], shape.now_of(visit.client), ending=ending)


def hand_back(visit: Visit) -> Shown:
    q = find(visit.client, visit.path["id"])
    visit.client.hand_back(q["task"], key=visit.key)
    return Data({"sent": f"Agents take {q['task']} again."}) if visit.wants_data else Go(f"/questions/{q['id']}")


# --- edit first -------------------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """One argument that may be changed: as text, or as JSON where it is no text or hides signs."""

    name: str
    text: str
    is_json: bool
    rows: int


def _entries(given: Any) -> list[Entry]:
    found = []
    for name, value in given.items():
        plain = isinstance(value, str) and not evidence.HIDDEN.search(value)
        text = value if plain else evidence.as_text(value) if not isinstance(value, str) else _quoted(value)
        found.append(Entry(str(name), text, not plain, min(12, text.count("\n") + 1 + len(text) // 90)))
    return found


def _quoted(value: str) -> str:
    return evidence.HIDDEN.sub(lambda m: f"\\u{ord(m[0]):04x}", json.dumps(value, ensure_ascii=False))


def _open_permission(visit: Visit) -> tuple[Asked, Any]:
    q = find(visit.client, visit.path["id"])
    given = evidence.editable(q["action"])
    if q["kind"] != "permission" or given is None:
        raise NotFound(f"{q['id']} has nothing that could be edited")
    return q, given


def edit(visit: Visit) -> Shown:
    q, given = _open_permission(visit)
    if q["status"] != PENDING:
        return Go(f"/questions/{q['id']}")
    shown = made(visit.client, q, shape.now_of(visit.client), "page")
    return Page("edit.html", {"here": "inbox", "q": shown, "entries": _entries(given), "new": None, "wrong": "", "action": ""})


def edited(visit: Visit) -> Shown:
    """Both versions, and the digest of the new one. Nothing is allowed yet."""
    q, given = _open_permission(visit)
    entries = _entries(given)
    new: dict[str, Any] = {}
    wrong = ""
    shown_again = []
    for at, entry in enumerate(entries):
        typed = visit.field(f"arg{at}")
        shown_again.append(entry._replace(text=typed))
        try:
            new[entry.name] = loads(typed, entry.name) if entry.is_json else typed
        except Invalid as error:
            wrong = f"{error}."
    name = next(n for n, value in q["action"].items() if value is given)
    action = {**q["action"], name: new}
    same = not wrong and digest(action) == q["digest"]
    shown = made(visit.client, q, shape.now_of(visit.client), "page")
    context = {
        "here": "inbox", "q": shown, "entries": shown_again,
        "new": None if wrong or same else evidence.action(action, digest(action)),
        "wrong": wrong or ("Nothing was changed. Allow it as it is, or change something." if same else ""),
        "action": json.dumps(action),
    }  # fmt: skip
    return Page("edit.html", context, 422 if wrong else 200)


# --- too late ---------------------------------------------------------------------------------------------------------


def _too_late(visit: Visit, q: Asked, given: dict[str, Any]) -> Shown:
    now = shape.now_of(visit.client)
    found = next(iter(visit.client.inbox(only=[q["id"]])), None) or q
    task = visit.client.show(q["task"])
    mine = _in_words(found, given)
    who = person(found["responded_by"] or "system")
    told = _faster(found, who, now, task["state"], visit.client.who.name)
    if visit.wants_data:
        return Data({"late": told, "yours": mine}, 409)
    shown = made(visit.client, found, now, "page")
    by = words.name(q["asked_by"])
    context = {
        "here": "inbox", "q": shown, "told": told, "mine": mine, "restart": task["state"] in ENDED, "by": by, "key": inbox.new_key(),
        "around": neighbours(visit, q["id"], now), "note": f"Late answer to {q['id']}: {mine}",
    }  # fmt: skip
    return Page("late.html", context, 409)


def _in_words(q: Asked, given: dict[str, Any]) -> str:
    value = given.get("value")
    first = words.label(q, value) if value is not None and not isinstance(value, dict) else ""
    if value is not None and isinstance(value, dict):
        first = evidence.as_text(value)
    if not first:
        answers = words.VERBS[q["kind"]]
        first = answers[0] if given["verdict"] == "approved" else answers[1].rstrip("…") or "No"
    return "\n".join(filter(None, (first, given.get("text", ""))))


def _faster(q: Asked, who: str, now: int, state: str, me: str) -> dict[str, str]:
    """Who, what and when; and how it stands now."""
    if words.is_finished(q) or q["status"] == PENDING:
        return {"lead": f"{q['task']} does not wait any more:", "rest": f"it is {state}.", "at": "", "iso": ""}
    at = {"at": shape.clock(q["responded_at"]), "iso": q["responded_at"]}
    ago = shape.ago(q["responded_at"], now)
    if q["status"] == "timeout":
        return {"lead": "The time was over:", "rest": f"{words.result(q, me)} That was {ago}.", **at}
    if q["status"] == "cancelled":
        return {"lead": f"{q['id']} is not asked any more:", "rest": words.result(q, me), **at}
    response = q["response"] or {}
    value = response.get("value")
    what = f"“{words.label(q, value)}”" if value not in (None, True) and not isinstance(value, dict) else words.result(q, me)
    lead = "You answered this before:" if q["responded_by"] == me else f"{who} was faster:"
    return {"lead": lead, "rest": f"{what.rstrip('.')}, {ago}.", **at}


def late(visit: Visit) -> Shown:
    q = find(visit.client, visit.path["id"])
    text = visit.field("note").strip()
    if visit.field("do") == "restart":
        visit.client.answer(q["id"], text=text, restart=True, key=visit.key)
    elif text:
        visit.client.note(q["task"], text, key=visit.key)
    return Go(f"/questions/{q['id']}?kept=1" if not words.is_finished(q) else "/inbox")
