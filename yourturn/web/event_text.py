"""Events as sentences, with the text that an actor wrote as a separate quotation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..core.actions import VERBS
from . import times, view_models

#: Actions whose sentence has no actor.
WITHOUT_ACTOR = frozenset({"block", "unblock", "unvet", "parent", "expire", "timeout", "step", "fence"})

#: Fields that a worker updates when an agent's session begins.
SESSION_FIELDS = frozenset({"host", "seat", "session_id"})


class EventView(NamedTuple):
    seq: int
    who: view_models.ActorView
    without_actor: bool
    before: str  #: the sentence up to the task's key, and after it
    after: str
    task: str
    quote: str  #: the text that the actor wrote
    move: tuple[view_models.Tag, view_models.Tag] | None
    at: times.Moment
    clock: str
    tone: str
    brief: str  #: the sentence without the task


def _words(e: Mapping[str, Any]) -> str:
    if e["action"] == "update" and SESSION_FIELDS.issuperset(e["data"].get("set", {"": ""})):
        return "began to work on {key}"
    return VERBS[e["action"]].event or f"{e['action'].replace('_', ' ')} {{key}}"


def event_view(e: Mapping[str, Any], now: int) -> EventView:
    data = e["data"]
    words = _words(e)
    before, _, after = words.replace("{it}", _it(e)).partition("{key}")
    before, after = " ".join(before.split()), after.strip()
    source, target = data.get("from"), data.get("to")
    moved = (view_models.state(source), view_models.state(target)) if source and target and source != target else None
    actor = e["actor"]
    return EventView(
        e["seq"],
        view_models.actor_view(actor),
        e["action"] in WITHOUT_ACTOR,
        before,
        after,
        e["task"] or "",
        _quote(e),
        moved,
        times.moment(e["at"], now),
        times.clock(e["at"]),
        tone(e),
        sentence(e),
    )


def merge_steps(events: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Merge consecutive step events of a run into one event, with their number as `many`."""
    merged: dict[str, Any] = {}
    for e in events:
        if e["action"] == "step" and merged and e["task"] == merged["task"]:
            merged = {**merged, "many": merged["many"] + 1, "seq": e["seq"]}
            continue
        if merged:
            yield merged
        merged = {**e, "many": 1} if e["action"] == "step" else {}
        if not merged:
            yield e
    if merged:
        yield merged


def sentence(e: Mapping[str, Any]) -> str:
    """The sentence without the key of the task: 'asked Q118', 'took it'."""
    text = _words(e).replace("{it}", _it(e)).replace(" about {key}", "").replace("{key}", "it")
    return " ".join(text.split())


def _it(e: Mapping[str, Any]) -> str:
    data, action = e["data"], e["action"]
    asked = [q["id"] for name in ("opened", "closed") for q in data.get(name, ())]
    if action == "step":
        many = e.get("many", 1)
        return f"{many} steps" if many > 1 else "a step"
    if action in ("dep_add", "dep_remove"):
        return ", ".join(str(pair[1]) for name in ("needs_added", "needs_removed") for pair in data.get(name, ()))
    if action == "update":
        return ", ".join(data.get("set", {})) or "something"
    if action == "user_set":
        return f"{data.get('user')} {_a(str(data.get('role', 'member')))}"
    if action == "project_set":
        return f"{data.get('setting')} of {data.get('project') or 'the workspace'}"
    for name in ("user", "token", "project"):
        if name in data:
            return str(data[name])
    return ", ".join(asked[:4]) or "a question"


def _a(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _quote(e: Mapping[str, Any]) -> str:
    """All texts of the event, joined."""
    data = e["data"]
    texts = [str(q["text"]) for q in data.get("opened", ()) if q.get("text")]
    texts += [str(note["text"]) for note in data.get("notes", ())]
    for q in data.get("closed", ()):
        response = q.get("response") or {}
        value = response.get("value")
        if q.get("status") == "timeout" and value is not None:
            texts.append(f"Went on with the default “{_value(value)}”.")
        elif response.get("verdict") == "rejected":
            texts.append("No." + (f" {response['text']}" if response.get("text") else ""))
        elif response.get("text") or isinstance(value, (str, int, float)):
            texts.append(str(response.get("text") or _value(value)))
    changed = data.get("set", {})
    texts += [str(changed[name]) for name in ("summary", "reason") if changed.get(name)]
    if e["action"] == "create" and changed.get("title"):
        texts.insert(0, str(changed["title"]))
    return " · ".join(dict.fromkeys(texts))[:600]


def _value(value: Any) -> str:
    return ("No", "Yes")[value] if isinstance(value, bool) else str(value)


def tone(e: Mapping[str, Any]) -> str:
    if e["action"] in ("ask", "flag") or e["data"].get("to") == "human" != e["data"].get("from"):
        return "gate"
    return {"done": "good", "failed": "trouble"}.get(
        str(e["data"].get("to")) if e["data"].get("to") != e["data"].get("from") else "", ""
    )
