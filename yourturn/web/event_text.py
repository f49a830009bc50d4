"""Events in words: who did what. What somebody wrote stands apart, as a quotation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from . import times, view_models

#: action -> what was done; {key} is the task, {it} a detail of the event.
DID = {
    "create": "wrote {key} down",
    "import": "brought {key} in from another tracker",
    "vet": "vetted {key}",
    "block": "{key} waits for other tasks",
    "unblock": "{key} is ready: nothing is in its way",
    "unvet": "{key} is too large: decompose it, or call it smaller",
    "parent": "all parts of {key} have ended",
    "claim": "took {key}",
    "release": "gave {key} back",
    "expire": "the lease on {key} is over",
    "park": "parked {key}",
    "ask": "asked {it} about {key}",
    "flag": "asked {it} about {key}",
    "answer": "answered {it} about {key}",
    "approve": "approved {it} about {key}",
    "timeout": "nobody answered {it} about {key} in time",
    "withdraw": "took {it} off the desk",
    "hand_back": "handed {key} back to agents",
    "resolve": "settled {key}: it is done",
    "complete": "finished {key}",
    "accept": "accepted {key}: it is done",
    "reject": "sent {key} back",
    "decompose": "split {key} into parts",
    "fail": "{key} failed",
    "stop": "stopped {key} as stuck",
    "cancel": "cancelled {key}",
    "close": "closed {key} as done",
    "defer": "put {key} aside",
    "wake": "woke {key}",
    "reopen": "reopened {key}",
    "note": "wrote a note on {key}",
    "update": "changed {it} of {key}",
    "use": "used {it} for {key}",
    "assign": "sent {it} to somebody else",
    "dep_add": "made {key} wait for {it}",
    "dep_remove": "let {key} no longer wait for {it}",
    "step": "{key} went {it} on",
    "rewind": "let {key} go on from an earlier step",
    "fence": "{key}: what was allowed before the restore is void",
    "project_create": "opened the project {it}",
    "project_set": "changed the setting {it}",
    "user_set": "made {it}",
    "user_remove": "removed {it}",
    "token_create": "made the token {it}",
    "token_revoke": "revoked the token {it}",
    "password_set": "set the password of {it}",
    "login": "signed in",
    "logout": "signed out",
    "link_create": "made a link for {it}",
    "link_use": "came in by a link",
    "prefs_set": "changed their preferences",
    "restore": "restored this desk from a backup",
}
#: Whose events are about nobody: the sentence stands alone.
ALONE = frozenset({"block", "unblock", "unvet", "parent", "expire", "timeout", "step", "fence"})

#: What a worker writes down when an agent's session begins.
SESSION = frozenset({"host", "seat", "session_id"})


class Told(NamedTuple):
    seq: int
    who: view_models.ActorView
    alone: bool
    before: str  #: the sentence up to the task's key, and after it
    after: str
    task: str
    said: str  #: what somebody wrote
    move: tuple[view_models.Tag, view_models.Tag] | None
    at: times.Moment
    clock: str
    tone: str
    brief: str  #: the sentence without the task


def _words(e: Mapping[str, Any]) -> str:
    if e["action"] == "update" and SESSION.issuperset(e["data"].get("set", {"": ""})):
        return "began to work on {key}"
    return DID.get(e["action"], f"{e['action'].replace('_', ' ')} {{key}}")


def told(e: Mapping[str, Any], now: int) -> Told:
    data = e["data"]
    words = _words(e)
    before, _, after = words.replace("{it}", _it(e)).partition("{key}")
    before, after = " ".join(before.split()), after.strip()
    source, target = data.get("from"), data.get("to")
    moved = (view_models.state(source), view_models.state(target)) if source and target and source != target else None
    actor = e["actor"]
    return Told(
        e["seq"],
        view_models.actor_view(actor),
        e["action"] in ALONE,
        before,
        after,
        e["task"] or "",
        _said(e),
        moved,
        times.moment(e["at"], now),
        times.clock(e["at"]),
        tone(e),
        sentence(e),
    )


def gathered(events: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Steps of a run that follow each other are one line, which says how many."""
    kept: dict[str, Any] = {}
    for e in events:
        if e["action"] == "step" and kept and e["task"] == kept["task"]:
            kept = {**kept, "many": kept["many"] + 1, "seq": e["seq"]}
            continue
        if kept:
            yield kept
        kept = {**e, "many": 1} if e["action"] == "step" else {}
        if not kept:
            yield e
    if kept:
        yield kept


def sentence(e: Mapping[str, Any]) -> str:
    """Without the task: 'asked Q118', 'took it'."""
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


def _said(e: Mapping[str, Any]) -> str:
    """The words that came with it, in one piece."""
    data = e["data"]
    found = [str(q["text"]) for q in data.get("opened", ()) if q.get("text")]
    found += [str(note["text"]) for note in data.get("notes", ())]
    for q in data.get("closed", ()):
        response = q.get("response") or {}
        value = response.get("value")
        if q.get("status") == "timeout" and value is not None:
            found.append(f"Went on with the default “{_value(value)}”.")
        elif response.get("verdict") == "rejected":
            found.append("No." + (f" {response['text']}" if response.get("text") else ""))
        elif response.get("text") or isinstance(value, (str, int, float)):
            found.append(str(response.get("text") or _value(value)))
    changed = data.get("set", {})
    found += [str(changed[name]) for name in ("summary", "reason") if changed.get(name)]
    if e["action"] == "create" and changed.get("title"):
        found.insert(0, str(changed["title"]))
    return " · ".join(dict.fromkeys(found))[:600]


def _value(value: Any) -> str:
    return ("No", "Yes")[value] if isinstance(value, bool) else str(value)


def tone(e: Mapping[str, Any]) -> str:
    if e["action"] in ("ask", "flag") or e["data"].get("to") == "human" != e["data"].get("from"):
        return "gate"
    return {"done": "good", "failed": "trouble"}.get(
        str(e["data"].get("to")) if e["data"].get("to") != e["data"].get("from") else "", ""
    )
