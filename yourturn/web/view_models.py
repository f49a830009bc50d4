"""View models: what a template shows, as plain values. Input: values of client/serialize.py and the time. Output: tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from ..client import Client
from ..core.time_format import iso
from ..display import person
from ..display.runs import agent
from ..display.terminal import countdown as remaining
from ..display.terminal import length, micros
from . import labels as words

MINUTE, HOUR, DAY = 60, 3600, 86400
#: A kind's picture and weight: decide (grey), sign off (blue), gate (amber), trouble (red).
WEIGHTS = {
    "work": "", "approval": "sign", "review": "sign", "content": "sign", "checkpoint": "sign", "permission": "gate",
    "question": "", "choice": "", "recovery": "trouble", "escalation": "trouble",
}  # fmt: skip
#: A task's state: its word, picture and weight.
STATES = {
    "created": ("New", "ready", ""), "ready": ("Ready", "ready", ""), "blocked": ("Blocked", "blocked", ""),
    "working": ("Working", "working", "sign"), "human": ("Needs human", "work", "gate"), "review": ("Review", "review", "sign"),
    "done": ("Done", "check", "good"), "failed": ("Failed", "x", "trouble"), "cancelled": ("Cancelled", "x", ""),
    "deferred": ("Deferred", "clock", ""),
}  # fmt: skip


#: What can happen when a time is over, and leaves the question open: the time runs again.
AGAIN = frozenset({"remind", "escalate"})
#: How a task stands after nobody answered.
FATES = {"failed": "has failed", "deferred": "is put aside"}


class Who(NamedTuple):
    name: str
    letter: str
    agent: bool
    role: str = ""


class Kind(NamedTuple):
    name: str
    label: str
    icon: str
    weight: str


class Time(NamedTuple):
    """A countdown. `seconds` is None where none runs."""

    words: str
    seconds: int | None = None
    of: int = 0
    share: int = 0
    level: str = ""
    until: int = 0  #: the deadline in milliseconds of the desk's clock: pages count down to that, however old they are
    closes: bool = True  #: does the question close then? A reminder only starts the time again


class Moment(NamedTuple):
    words: str
    iso: str
    full: str


class Tag(NamedTuple):
    label: str
    icon: str
    weight: str


def who(actor: str | None, role: str = "") -> Who:
    """human:ana is round, agent:coder is square, and the system is Yourturn itself."""
    actor = actor or "system"
    name = "Yourturn" if actor == "system" else person(actor)
    return Who(name, next((c for c in name.upper() if c.isalnum()), "?"), not actor.startswith("human:"), role)


def question_sort(q: Mapping[str, Any]) -> str:
    """What a picture stands for: the kind, or the form of an input."""
    if q["kind"] != "input":
        return str(q["kind"])
    return "choice" if q["response_type"] == "choice" else "question"


def kind(q: Mapping[str, Any]) -> Kind:
    sort = question_sort(q)
    return Kind(sort, sort.capitalize(), sort, WEIGHTS[sort])


def state(name: str) -> Tag:
    return Tag(*STATES[name])


def now_of(client: Client) -> int:
    """What time it is at the desk, in microseconds."""
    return micros(client.now())


def seconds_until(moment: str, now: int) -> int:
    return (micros(moment) - now) // 1_000_000


def short(seconds: float) -> str:
    """How long something goes on already, on a page that may be a minute old: '22 min', '3 h'."""
    return "a moment" if seconds < MINUTE else length(seconds, brief=True)


def level(seconds: float) -> str:
    return "last" if seconds < 2 * MINUTE else "soon" if seconds < 10 * MINUTE else ""


def deadline(q: Mapping[str, Any]) -> str | None:
    """When silence has an effect, if ever."""
    ends: str | None = q["timeout_at"] if q["on_timeout"] != "keep" else None
    return ends


def millis(moment: str | None) -> int:
    return micros(moment) // 1000 if moment else 0


def countdown(q: Mapping[str, Any], now: int) -> Time:
    ends = deadline(q)
    if q["status"] == "timeout":
        return Time(f"timed out {ago(q['responded_at'], now)}")
    if ends is None or q["status"] != "pending":
        return Time("no limit" if q["blocking"] else "no hurry")
    left = max(0, seconds_until(ends, now))
    if left == 0:
        return Time("time is up")
    of = max(left, 1, (micros(ends) - micros(q["asked_at"])) // 1_000_000)
    closes = q["on_timeout"] not in AGAIN
    return Time(remaining(left), left, of, round(100 * left / of), level(left), millis(ends), closes)


def fate(q: Mapping[str, Any], task: Mapping[str, Any]) -> str:
    """What silence did to the task, where the question's own result does not say it: ' API-25 has failed.'"""
    if q["status"] != "timeout" or (q["response"] or {}).get("value") is not None:
        return ""
    told = FATES.get(task["state"])
    return f" {task['key']} {told}." if told else ""


def ago(moment: str, now: int) -> str:
    """'11 min ago', '2 h ago', 'yesterday', 'Tuesday', '3 November'."""
    seconds = max(0, -seconds_until(moment, now))
    if seconds < 45:
        return "just now"
    if seconds < HOUR:
        return f"{max(1, seconds // MINUTE)} min ago"
    if seconds < 20 * HOUR:
        return f"{seconds // HOUR} h ago"
    then, today = datetime.fromisoformat(moment).astimezone(), datetime.fromisoformat(iso(now)).astimezone()
    days = (today.date() - then.date()).days
    if days <= 1:
        return "yesterday"
    return f"{then:%A}" if days < 7 else f"{then.day} {then:%B}" + (f" {then.year}" if then.year != today.year else "")


def clock(moment: str) -> str:
    return f"{datetime.fromisoformat(moment).astimezone():%H:%M}"


def seconds(moment: str) -> str:
    return f"{datetime.fromisoformat(moment).astimezone():%H:%M:%S}"


def day(moment: str, now: int) -> str:
    """A date to come: 'today, 18:00', '24 December'."""
    then, today = datetime.fromisoformat(moment).astimezone(), datetime.fromisoformat(iso(now)).astimezone()
    days = (then.date() - today.date()).days
    if days < 2:
        return f"{('today', 'tomorrow')[max(0, days)]}, {then:%H:%M}"
    return f"{then.day} {then:%B}" + (f" {then.year}" if then.year != today.year else "")


def holder(t: Mapping[str, Any]) -> Who | None:
    """Which agent works on a task: by its name, or else its worker's."""
    if not t["claim"]:
        return None
    name = agent(dict(t)) if t["workflow"] else (t["seat"] or {}).get("agent")
    return who(f"agent:{name or t['claim']['worker']}")


def local(moment: str) -> datetime:
    return datetime.fromisoformat(moment).astimezone()


def parted(seconds: float) -> tuple[str, str]:
    """A number and its unit: ('6', 'min'), ('1.6', 'h')."""
    for size, unit in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min"), (1, "s")):
        if seconds >= size or size == 1:
            share = seconds / size
            return (f"{share:.1f}".removesuffix(".0") if share < 10 else str(round(share))), unit
    raise AssertionError


def about(seconds: float) -> str:
    """Roughly how long: '1.6 min', '34 min', '4.3 h'."""
    return " ".join(parted(seconds))


def at(moment: str, now: int) -> Moment:
    there = datetime.fromisoformat(moment).astimezone()
    return Moment(ago(moment, now), moment, f"{there:%Y-%m-%d %H:%M:%S %Z}")


class Choice(NamedTuple):
    """A quick answer in a row."""

    verb: str
    effect: str
    verdict: str
    option: str
    send: str


class Row(NamedTuple):
    """A question in a list."""

    id: str
    href: str
    title: str
    kind: Kind
    who: Who
    task: str
    facts: tuple[str, ...]
    time: Time
    then: str
    proof: str
    proof_is_error: bool
    quick: tuple[Choice, ...]
    result: str
    batch: bool
    key: str


def row(q: Mapping[str, Any], now: int, me: str, run: str = "", key: str = "", effects: Sequence[Mapping[str, Any]] = ()) -> Row:
    pending = q["status"] == "pending"
    proof, wrong = _proof(q)
    waits = f"waits {short(max(0, -seconds_until(q['asked_at'], now)))}"
    time = countdown(q, now)
    return Row(
        q["id"], f"/questions/{q['id']}", q["text"], kind(q), who(f"agent:{run}" if run else q["asked_by"]), q["task"], _facts(q),
        time, words.silence(q, run, short=True) or waits, proof, wrong,
        quick(q, effects, run) if pending else (), "" if pending else words.result(q, me),
        pending and words.batch_verb(q, effects, run) is not None, key,
    )  # fmt: skip


def _facts(q: Mapping[str, Any]) -> tuple[str, ...]:
    found = []
    if q.get("holds_up"):
        found.append(f"{words.plural(q['holds_up'], 'task')} wait{'s' * (q['holds_up'] == 1)}")
    if q["kind"] == "recovery" and q["options"]:
        found.append(f"{words.plural(len(q['options']), 'way')} out")
    if q["step"]:
        found.append(f"step {q['step']}")
    if q["reviewer"]:
        found.append(f"for {q['reviewer']}")
    return tuple(found)


def _proof(q: Mapping[str, Any]) -> tuple[str, bool]:
    """The one line of evidence that a row shows, cut where it ends; and is it an error?"""
    from .evidence import command_of, error_of

    if q["kind"] == "permission" and q["action"] is not None:
        return " ".join(command_of(q["action"])[:300].split()), False
    error = error_of(q["context"])
    return (" ".join(error.split())[:200], True) if error else ("", False)


#: Kinds that are never answered in a row: what they ask has to be read whole.
SLOW = frozenset({"permission", "recovery", "escalation", "work"})
#: Characters of an option's label that still fit a button in a row, and of a question that a row shows whole.
BRIEF, WHOLE = 24, 110


def _sentence(effect: str, name: str) -> str:
    """A name is written as it is, also at the beginning."""
    named = effect.startswith(f"{name} ") and name != words.name("system")
    return f"{effect}." if named else f"{effect[0].upper()}{effect[1:]}."


def quick(q: Mapping[str, Any], effects: Sequence[Mapping[str, Any]], run: str) -> tuple[Choice, ...]:
    """Two answers that may be given in a row, or none. Never one that ends a task."""
    who_ = name_ = run or words.name(q["asked_by"])
    if not q["blocking"]:
        return _keep(q, name_)
    if q["kind"] in SLOW or "\n" in q["text"].strip() or len(q["text"]) > WHOLE:
        return ()
    said = words.answers(q, effects, run)
    if not said.yes:
        return ()
    yes = said.yes[0]
    if q["response_type"] == "approval" and said.no is not None and said.no.verdict:
        both = ((said.no, "rejected"), (yes, "approved"))
        send = {"approved": _sends(yes, q), "rejected": said.no.verb}
        return tuple(Choice(_brief_verb(say), _sentence(say.effect, name_), v, "", send[v]) for say, v in both)
    if q["response_type"] == "boolean":
        return tuple(Choice(s.verb, _sentence(s.effect, name_), "approved", s.value, f"Send “{s.verb}”") for s in said.yes)
    if q["response_type"] == "choice" and not q["multi"] and len(q["options"]) == 2:
        labels = [str(o["label"]) for o in q["options"]]
        if all(len(one) <= BRIEF and one.isprintable() for one in labels):
            return tuple(
                Choice(one, f"{who_} goes on with {one}.", "approved", str(at_), f"Send “{one}”")
                for at_, one in enumerate(labels)
            )
    return ()


def _brief_verb(say: words.Say) -> str:
    return {"Approve and finish": "Approve", "Approve the PR": "Approve", "Approve the text": "Approve"}.get(say.verb, say.verb)


def _sends(yes: words.Say, q: Mapping[str, Any]) -> str:
    return f"{yes.verb} {q['task']}" if yes.verb == "Approve and finish" else yes.verb


def _keep(q: Mapping[str, Any], who_: str) -> tuple[Choice, ...]:
    """What the agent went on with can be kept with a tap; another answer of two short ones, too."""
    if q["response_type"] not in ("choice", "boolean") or q["multi"]:
        return ()
    pairs = (
        [(str(o["label"]), o["value"], str(i)) for i, o in enumerate(q["options"])]
        if q["response_type"] == "choice"
        else [("Yes", True, "yes"), ("No", False, "no")]
    )
    if len(pairs) != 2 or not all(len(one) <= BRIEF and one.isprintable() for one, _, _ in pairs):
        return ()
    out = []
    for text, value, option in sorted(pairs, key=lambda pair: pair[1] != q["default"]):
        kept = value == q["default"]
        told = f"{who_} stays with it." if kept else f"{who_} is told, and changes what it wrote."
        out.append(
            Choice(f"Keep “{text}”" if kept else text, told, "approved", option, f"Keep “{text}”" if kept else f"Send “{text}”")
        )
    return tuple(out)


def wishes(client: Client) -> dict[str, Any]:
    """How this person likes their pages."""
    if not client.who.is_person:
        return {}
    found = client.preferences()
    theme = found.get("theme")
    return {"theme": theme if theme in ("light", "dark") else "", "keyless": found.get("keys") is False}
