"""What an agent meant by what it said at the end of its turn, in every dialect.

There are three: a signal file (`{"status": "NEEDS_HUMAN", …}`), a JSON result (`{"status": "completed", …}`) and a tag
(`<promise>COMPLETE</promise>`). They are trusted in this order, but none is allowed to overrule another: if two of them, or
two of a kind, say different things, the outcome is `broken`, and a person looks. The same goes for what is malformed. So a
task is closed only by a word that was said clearly and was not contradicted anywhere.

What a word means stands in tables: the kinds of questions in `core/rules.py`, the words of JSON below. Which tags and objects
are said at all, and which are only shown, is the matter of `message.py`.

Nothing here raises, whatever the input is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..core.canon import loads
from ..core.errors import Invalid
from ..core.fields import TEXT_LIMIT, line
from ..core.rules import KINDS, REASONS, SIGNALS
from .message import Message, Piece

#: How large a signal file or a JSON result may be, in bytes or characters.
LIMIT = 1_000_000


class Outcome(NamedTuple):
    what: str  #: done | ask | failed | nothing | broken (malformed or contradictory: for a person to look at)
    status: str = ""  #: the word as it was said
    kind: str = ""  #: of the question, if it asks
    text: str = ""  #: the question, the reason or the summary
    context: dict[str, Any] = {}  #: what else was said
    reason: str | None = None  #: a code of core.rules.REASONS
    source: str = ""  #: file | json | promise


class Word(NamedTuple):
    what: str
    kind: str = ""
    reason: str | None = None


#: In a tag.
TAGS: dict[str, Word] = {word: Word("ask", kind) if kind else Word("done") for word, kind in SIGNALS.items()}
#: In JSON; `blocked` is about something outside here, while the old tag asks for information.
STATUSES: dict[str, Word] = {
    **TAGS,
    "COMPLETED": Word("done"),
    "DONE": Word("done"),
    "FAILED": Word("failed"),
    "BLOCKED": Word("ask", "escalation", "blocked_external"),
}
#: In the JSON of a message, which can be about anything: trackers also say DONE.
RESULTS: dict[str, Word] = {word: row for word, row in STATUSES.items() if word not in ("COMPLETE", "DONE")}

#: Where the text of an outcome stands, best first.
TEXTS: dict[str, tuple[str, ...]] = {
    "ask": ("question", "reason", "summary", "message", "details"),
    "done": ("summary", "message", "reason"),
    "failed": ("summary", "reason", "message", "details"),
    "nothing": ("message", "reason", "summary"),
}
RESULT_FIELDS = {"summary", "details", "question", "questionContext", "issues", "reason", "message"}
#: A thing with one of these is a record of something, unless it is all that was said.
RECORD_FIELDS = {"id", "key", "title", "name", "url", "type"}

_STATUS = re.compile(r'"status"\s*+:\s*+"([\w -]{1,40})"')
_RESULT = re.compile(r'"(?:summary|question)"\s*+:')
_BETWEEN = re.compile(r"[\s-]++")
NOTHING = Outcome("nothing")


def from_message(text: str) -> Outcome:
    """The final message of an agent."""
    return _settle(_by_message(text))


def from_file(data: bytes) -> Outcome:
    """A signal file. A status that is nobody's word is for a workflow to read: `nothing`, with the status."""
    if len(data) > LIMIT:
        return _broken("file", f"The signal file is too long: at most {LIMIT:,} bytes.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _broken("file", "The signal file is not UTF-8 text.")
    try:
        found = loads(text, "The signal file")
    except Invalid as trouble:
        return _broken("file", f"{trouble}.", text)
    if not isinstance(found, dict):
        return _broken("file", "The signal file holds no JSON object.", text)
    try:
        status = line(100)("its status", found.get("status"))
    except Invalid as trouble:
        return _broken("file", f"The signal file says nothing clear: {trouble}.", text)
    return _meaning(found, status, STATUSES.get(_plain(status), Word("nothing")), "file")


def read(message: str, file: bytes | None) -> Outcome:
    """All that an agent said: the file before the JSON before the tag, if they agree."""
    by_file = NOTHING if file is None else from_file(file)
    return _settle([by_file, *_by_message(message)])


def _by_message(text: str) -> list[Outcome]:
    """By JSON and by tag."""
    message = Message(text)
    sure: dict[str, list[Outcome]] = {"json": [], "promise": []}
    shaky: dict[str, list[Outcome]] = {"json": [], "promise": []}
    for piece in message:
        found = _by_tag(piece) if piece.sort == "tag" else _by_object(piece)
        if found.what != "nothing":
            _add((shaky if piece.shaky else sure)[found.source], found)
    if not message.unclosed:
        for source, found_there in shaky.items():
            for found in found_there:
                _add(sure[source], found)
    return [_one(sure["json"]), _one(sure["promise"])]


def _by_tag(piece: Piece) -> Outcome:
    if piece.trouble:
        return _broken("promise", piece.trouble, piece.text)
    head, _, text = _split(piece.text)
    word = TAGS.get(_plain(head))
    text = text.strip()
    if word is None:
        return _broken("promise", f"There is no signal {_short(head)}. There are: {', '.join(TAGS)}.", piece.text)
    if word.what == "done" and piece.aside:
        return NOTHING
    if not text and word.kind and KINDS[word.kind].response_type == "text":
        return _broken("promise", f"{_plain(head)} asks nothing: the text is missing.", piece.text)
    if len(text) > TEXT_LIMIT:
        return _broken("promise", f"The text of {_plain(head)} is too long: at most {TEXT_LIMIT:,} characters.", text)
    return Outcome(word.what, head.strip(), word.kind, _clean(text), {}, word.reason, "promise")


def _split(body: str) -> tuple[str, str, str]:
    """WORD: text, or the word on a line of its own and the text below."""
    body = body.strip()
    colon, newline = body.find(":"), body.find("\n")
    at = newline if newline >= 0 and (colon < 0 or newline < colon) else colon
    return (body[:at], body[at], body[at + 1 :]) if at >= 0 else (body, "", "")


def _by_object(piece: Piece) -> Outcome:
    said = [word for word in _STATUS.findall(piece.text) if _plain(word) in RESULTS]
    if not said:
        return NOTHING
    if piece.trouble or len(piece.text) > LIMIT:
        clear = piece.whole or _RESULT.search(piece.text)
        why = piece.trouble or f"It is too long: at most {LIMIT:,} characters."
        return _broken("json", f"The result '{said[0]}' cannot be read. {why}", piece.text) if clear else NOTHING
    try:
        found = loads(piece.text, "The result")
    except Invalid as trouble:
        return _broken("json", f"{trouble}.", piece.text) if piece.whole or _RESULT.search(piece.text) else NOTHING
    status = found.get("status")
    word = RESULTS.get(_plain(status)) if isinstance(status, str) else None
    if word is None or not _is_result(found, piece.whole) or (word.what == "done" and piece.aside):
        return NOTHING
    return _meaning(found, status.strip(), word, "json")


def _is_result(found: dict[str, Any], whole: bool) -> bool:
    """Objects with a status are everywhere; a result is about the agent's own turn."""
    if whole:
        return len(found) == 1 or bool(RESULT_FIELDS & set(found))
    told = any(isinstance(found.get(field), str) and found[field].strip() for field in ("summary", "question", "reason"))
    return told and not RECORD_FIELDS & set(found)


def _meaning(found: dict[str, Any], status: str, word: Word, source: str) -> Outcome:
    """An object whose status is known."""
    fields = TEXTS[word.what]
    bad = next((name for name in ("question", "summary", "reason", "message") if not _is_text(found.get(name))), None)
    if bad:
        return _broken(source, f"'{bad}' beside the status '{status}' is not text.", found)
    code = found.get("reason")
    if code not in REASONS:
        code = None
    texts = [name for name in fields if isinstance(found.get(name), str) and found[name].strip()]
    if code and len(texts) > 1:
        texts.remove("reason")
    if not texts and word.kind and KINDS[word.kind].response_type == "text":
        return _broken(source, f"The status '{status}' asks nothing: there is no question beside it.", found)
    used = texts[0] if texts else ""
    told = "" if word.what == "nothing" else used  # a word of its own is for a script, which finds every field
    context = {k: v for k, v in found.items() if k not in ("status", told) and v not in (None, "", [], {})}
    if code:
        context.pop("reason", None)
    text = found[used].strip() if used else ""
    return Outcome(word.what, status, word.kind, text, context, code or word.reason, source)


def _settle(outcomes: Iterable[Outcome]) -> Outcome:
    """One outcome of several sources, the most trusted first."""
    found = [outcome for outcome in outcomes if outcome.what != "nothing" or outcome.status]
    for outcome in found:
        if outcome.what == "broken":
            return outcome
    for other in found[1:]:
        if not _agree(found[0], other):
            return _contradiction(found[0], other)
    return found[0] if found else NOTHING


def _agree(one: Outcome, other: Outcome) -> bool:
    same = one.kind == other.kind or _plain(one.status) == _plain(other.status)
    return one.what == other.what and same


def _one(found: list[Outcome]) -> Outcome:
    """One outcome of several by the same source."""
    for outcome in found:
        if outcome.what == "broken":
            return outcome
    return found[0] if len(found) == 1 else _contradiction(found[0], found[1]) if found else NOTHING


def _add(found: list[Outcome], new: Outcome) -> None:
    """The same said twice is said once. Three different ones are as good as a thousand."""
    for i, old in enumerate(found):
        if _same(old) == _same(new):
            if new.text:
                found[i] = new
            return
    if len(found) < 3 or new.what == "broken":
        found.append(new)


def _same(outcome: Outcome) -> tuple[str, ...]:
    return (outcome.what, outcome.kind, outcome.text if outcome.what == "ask" else "")


def _contradiction(one: Outcome, other: Outcome) -> Outcome:
    names = {"file": "the signal file", "json": "the JSON result", "promise": "the tag"}
    places = f"{names[one.source]} and {names[other.source]}" if one.source != other.source else f"{names[one.source]}s"
    words = (
        f"'{one.status}' and '{other.status}'" if one.status != other.status else f"'{one.status}' twice, with different texts"
    )
    told = [{"source": o.source, "status": o.status, "text": o.text[:1000]} for o in (one, other)]
    text = f"The agent contradicts itself: it says {words} ({places})."
    return Outcome("broken", f"{one.status}, {other.status}"[:200], "", text, {"said": told}, "protocol_error", one.source)


def _broken(source: str, text: str, said: Any = None) -> Outcome:
    """A person will look at this, so it shows the beginning of what was said."""
    context = {} if said is None else {"said": _clean(said[:1000]) if isinstance(said, str) else said}
    return Outcome("broken", "", "", _clean(text), context, "protocol_error", source)


def _plain(word: str) -> str:
    """A word as the tables have it: Input needed, input-needed and INPUT_NEEDED are one."""
    return _BETWEEN.sub("_", word.strip()[:100]).upper()


def _short(word: str) -> str:
    word = " ".join(word[:200].split())
    return f"'{word[:40]}…'" if len(word) > 40 else f"'{word}'"


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _clean(text: str) -> str:
    """What every database can carry."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
