"""What an agent meant by what it said at the end of its turn, in every dialect.

There are three: a signal file (`{"status": "NEEDS_HUMAN", …}`), a JSON result (`{"status": "completed", …}`) and a tag
(`<promise>COMPLETE</promise>`). They are trusted in this order, but none is allowed to overrule another: if two of them, or
two of a kind, say different things, the outcome is `broken`, and a person looks. The same goes for what is malformed. So a
task is closed only by a word that was said clearly and was not contradicted anywhere.

Questions do not contradict each other: all that one source asks are questions of one handoff. Only two that would end the
task in different ways (signed off, and done by a person instead) do.

What a word means stands in tables: the kinds of questions in `core/rules.py`, the words of JSON below. Which tags and objects
are said at all, and which are only shown, is the matter of `message.py`.

Nothing here raises, whatever the input is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...core.canonical_json import loads
from ...core.errors import Invalid
from ...core.field_text import line_of, told
from ...core.fields import TEXT_LIMIT, line
from ...core.rules import KINDS, REASONS, SIGNALS
from .message_parser import Message, Piece
from .result_questions import MANY, asked

#: How large a signal file or a JSON result may be, in bytes or characters.
LIMIT = 1_000_000
#: How much of an agent's last message a person is shown, and where the words of a tag without words are looked for.
SHOWN, TAIL = 4_000, 20_000


class Outcome(NamedTuple):
    what: str  #: done | ask | failed | nothing | broken (malformed or contradictory: for a person to look at)
    status: str = ""  #: the word as it was said
    kind: str = ""  #: of the question, if it asks
    text: str = ""  #: the question, the reason or the summary
    context: dict[str, Any] = {}  #: what else was said
    reason: str | None = None  #: a code of core.rules.REASONS
    source: str = ""  #: file | json | promise
    fields: dict[str, Any] = {}  #: how the question is asked: options, default …; `also`: the other questions
    raw: tuple[str, ...] = ()  #: the beginnings of its tags or objects, as they were written

    @property
    def questions(self) -> list[dict[str, Any]]:
        """All that it asks."""
        return [{"kind": self.kind, "text": self.text}, *self.fields.get("also", ())] if self.what == "ask" else []


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
#: In the JSON of a message, which can be about anything: trackers also say DONE. The last object, with a summary, may.
RESULTS: dict[str, Word] = {word: row for word, row in STATUSES.items() if word not in ("COMPLETE", "DONE")}

#: Where the text of an outcome stands, best first.
TEXTS: dict[str, tuple[str, ...]] = {
    "ask": ("question", "reason", "summary", "message", "details"),
    "done": ("summary", "message", "reason"),
    "failed": ("summary", "reason", "message", "details"),
    "nothing": ("message", "reason", "summary"),
}
RESULT_FIELDS = {"summary", "details", "question", "questions", "questionContext", "issues", "reason", "message"}
#: A thing with one of these is a record of something, unless it is all that was said.
RECORD_FIELDS = {"id", "key", "title", "name", "url", "type"}

_STATUS = re.compile(r'"status"\s*+:\s*+"([\w -]{1,40})"')
_RESULT = re.compile(r'"(?:summary|question)"\s*+:')
_WORD = re.compile(r"[\w -]{1,40}")
_TAGS = re.compile(r"<(?:promise|PROMISE)[ \t]*+>.*?</(?:promise|PROMISE)[ \t]*+>", re.S)
_BETWEEN = re.compile(r"[\s-]++")
NOTHING = Outcome("nothing")


def from_message(text: str) -> Outcome:
    """The final message of an agent."""
    return read(text, None)


def from_file(data: bytes) -> Outcome:
    """A signal file."""
    return read("", data)


def _by_file(data: bytes) -> Outcome:
    """A status that is nobody's word is for a workflow to read: `nothing`, with the status."""
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
    return _meaning(found, status, STATUSES.get(_plain(status), Word("nothing")), "file", text)


def read(message: str, file: bytes | None, *, alone: bool = True) -> Outcome:
    """All that an agent said: the file before the JSON before the tag, if they agree.

    `alone`: nothing else was asked, so a tag without words asks what the message says.
    """
    by_file = NOTHING if file is None else _by_file(file)
    found = _settle([by_file, *_by_message(message)])
    raw, found = found.raw, found._replace(raw=())
    if found.what == "broken":
        shown = exact(message, file)
        hidden = [said for said in raw if not any(said in text for text in shown.values())]
        return found._replace(context={**({"said": "\n".join(hidden)} if hidden else {}), **shown})
    if alone and found.what == "ask" and not found.text and KINDS[found.kind].response_type == "text":
        return found._replace(text=_last_words(message))
    return found


def exact(message: str, file: bytes | None) -> dict[str, Any]:
    """What an agent said last, as it said it, for a person to look at."""
    said = {"final_message": message.strip(), "signal_file": (file or b"")[-4 * SHOWN :].decode("utf-8", "replace").strip()}
    return {name: _clean(text if len(text) <= SHOWN else f"…{text[-SHOWN:]}") for name, text in said.items() if text}


def account(context: dict[str, Any]) -> dict[str, Any]:
    """`details` and `issues` of a result; whatever else it says belongs to the details."""
    issues, rest = context.get("issues"), {name: value for name, value in context.items() if name not in ("details", "issues")}
    seen = issues if isinstance(issues, list) else [issues]
    details = "\n".join([*told({"text": context.get("details")}), *told(rest)])
    return {"details": details, "issues": [line for line in map(line_of, seen) if line]}


def unknown(status: str, source: str) -> str:
    """What is said of a status that is nobody's word, where no script waits for one."""
    words = STATUSES if source == "file" else RESULTS
    return f"There is no status {_short(status)}. There are: {', '.join(word.lower() for word in words)}."


def _last_words(message: str) -> str:
    """What an agent says around a tag without words is what it asks."""
    words = _TAGS.sub("", _clean(message[-TAIL:])).strip()
    return words if len(words) <= SHOWN else f"…{words[-SHOWN:]}"


def _by_message(text: str) -> list[Outcome]:
    """By JSON and by tag."""
    message = Message(text)
    sure: dict[str, list[Outcome]] = {"json": [], "promise": []}
    shaky: dict[str, list[Outcome]] = {"json": [], "promise": []}
    for piece in message:
        found = _by_tag(piece) if piece.sort == "tag" else _by_object(piece)
        if found.what != "nothing" or found.status:
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
    if len(text) > TEXT_LIMIT:
        return _broken("promise", f"The text of {_plain(head)} is too long: at most {TEXT_LIMIT:,} characters.", text)
    if word.what == "ask" and text[:1] == "{" and (fields := _fields(text)) is not None:
        return _meaning(fields, head.strip(), word, "promise", piece.text)
    return Outcome(word.what, head.strip(), word.kind, _clean(text), {}, word.reason, "promise", raw=_raw(piece.text))


def _fields(text: str) -> dict[str, Any] | None:
    """The text of a tag may be an object with the fields of a question. Words in braces are words."""
    try:
        found = loads(text, "The tag")
    except Invalid:
        return None
    return found if isinstance(found, dict) else None


def _split(body: str) -> tuple[str, str, str]:
    """WORD: text, or the word on a line of its own and the text below."""
    body = body.strip()
    colon, newline = body.find(":"), body.find("\n")
    at = newline if newline >= 0 and (colon < 0 or newline < colon) else colon
    return (body[:at], body[at], body[at + 1 :]) if at >= 0 else (body, "", "")


def _by_object(piece: Piece) -> Outcome:
    words = _STATUS.findall(piece.text)
    said = [word for word in words if _plain(word) in RESULTS]
    if not said and not (words and piece.last):
        return NOTHING
    if piece.trouble or len(piece.text) > LIMIT:
        clear = said and (piece.whole or _RESULT.search(piece.text))
        why = piece.trouble or f"It is too long: at most {LIMIT:,} characters."
        return _broken("json", f"The result '{said[0]}' cannot be read. {why}", piece.text) if clear else NOTHING
    try:
        found = loads(piece.text, "The result")
    except Invalid as trouble:
        return _broken("json", f"{trouble}.", piece.text) if said and (piece.whole or _RESULT.search(piece.text)) else NOTHING
    status = found.get("status")
    if not isinstance(status, str) or not _is_result(found, piece.whole):
        return NOTHING
    word = RESULTS.get(_plain(status))
    if word is None and piece.last and str(found.get("summary") or "").strip() and not RECORD_FIELDS & set(found):
        word = STATUSES.get(_plain(status))
    if word is None and piece.last and not piece.aside and _WORD.fullmatch(status) and len(found) > 1:
        word = Word("nothing")
    if word is None or (word.what == "done" and piece.aside):
        return NOTHING
    return _meaning(found, status.strip(), word, "json", piece.text)


def _is_result(found: dict[str, Any], whole: bool) -> bool:
    """Objects with a status are everywhere; a result is about the agent's own turn."""
    if whole:
        return len(found) == 1 or bool(RESULT_FIELDS & set(found))
    said = any(isinstance(found.get(field), str) and found[field].strip() for field in ("summary", "question", "reason"))
    said = said or isinstance(found.get("questions"), list)
    return said and not RECORD_FIELDS & set(found)


def _meaning(found: dict[str, Any], status: str, word: Word, source: str, raw: str) -> Outcome:
    """An object whose status is known."""
    bad = next((name for name in ("question", "summary", "reason", "message") if not _is_text(found.get(name))), None)
    if bad:
        return _broken(source, f"'{bad}' beside the status '{status}' is not text.", raw)
    if word.what == "ask":
        return _asking(found, status, word, source, raw)
    code = found.get("reason")
    if code not in REASONS:
        code = None
    texts = [name for name in TEXTS[word.what] if isinstance(found.get(name), str) and found[name].strip()]
    if code and len(texts) > 1:
        texts.remove("reason")
    used = texts[0] if texts else ""
    spoken = "" if word.what == "nothing" else used  # a word of its own is for a script, which finds every field
    context = {k: v for k, v in found.items() if k not in ("status", spoken) and v not in (None, "", [], {})}
    if code:
        context.pop("reason", None)
    text = found[used].strip() if used else ""
    return Outcome(word.what, status, word.kind, text, context, code or word.reason, source, raw=_raw(raw))


def _asking(found: dict[str, Any], status: str, word: Word, source: str, raw: str) -> Outcome:
    try:
        first, *also = asked(found, word.kind, word.reason, TEXTS["ask"])
    except Invalid as trouble:
        more = f" {trouble.hint}" if trouble.hint else ""
        return _broken(source, f"What stands beside '{status}' cannot be asked: {trouble}.{more}", raw)
    kind, text, context, reason = (first.pop(name, default) for name, default in _FIRST)
    if not text and source != "promise" and KINDS[kind].response_type == "text":
        return _broken(source, f"The status '{status}' asks nothing: there is no question beside it.", raw)
    fields = {**first, **({"also": also} if also else {})}
    return _one([Outcome("ask", status, kind, text, context, reason, source, fields, _raw(raw))])


_FIRST: tuple[tuple[str, Any], ...] = (("kind", ""), ("text", ""), ("context", {}), ("reason", None))


def _settle(outcomes: Iterable[Outcome]) -> Outcome:
    """One outcome of several sources, the most trusted first."""
    found = [outcome for outcome in outcomes if outcome.what != "nothing" or outcome.status]
    for outcome in found:
        if outcome.what == "broken":
            return outcome
    for other in found[1:]:
        if not _agree(found[0], other):
            return _contradiction(found[0], other)
    return _with_words_of(found[0], found[1:]) if found else NOTHING


def _agree(one: Outcome, other: Outcome) -> bool:
    if one.what != other.what or one.what in ("done", "failed"):
        return one.what == other.what
    kinds = one.what == "ask" and {q["kind"] for q in other.questions} <= {q["kind"] for q in one.questions}
    return kinds or _plain(one.status) == _plain(other.status)


def _with_words_of(one: Outcome, others: list[Outcome]) -> Outcome:
    """The same question in two dialects is one question; what only the other says is shown beside it."""
    known = {q["text"] for q in one.questions}
    more = [q["text"] for other in others for q in other.questions if q["text"] and q["text"] not in known]
    return one._replace(context={**one.context, "also_said": "\n".join(dict.fromkeys(more))}) if more else one


def _one(found: list[Outcome]) -> Outcome:
    """One outcome of several by the same source."""
    for outcome in found:
        if outcome.what == "broken":
            return outcome
    if all(outcome.what == "ask" for outcome in found):
        return _together(found)
    return found[0] if len(found) == 1 else _contradiction(found[0], found[1])


def _together(found: list[Outcome]) -> Outcome:
    """All that one source asks."""
    if not found:
        return NOTHING
    worded = {outcome.kind for outcome in found if outcome.text}
    found = [outcome for outcome in found if outcome.text or outcome.kind not in worded]
    first = found[0]
    ends = {q["kind"]: outcome for outcome in found for q in outcome.questions if KINDS[q["kind"]].approved == "done"}
    if len(ends) > 1:
        one, other = list(ends.items())[:2]
        return _contradiction(one[1], other[1], f"'{one[0]}' and '{other[0]}'")
    also = [question for outcome in found[1:] for question in asks(outcome)]
    if len(first.questions) + len(also) > MANY:
        return _broken(first.source, f"It asks more than {MANY} questions at once.", *first.raw)
    return first._replace(fields={**first.fields, "also": [*first.fields.get("also", ()), *also]}) if also else first


def asks(outcome: Outcome) -> list[dict[str, Any]]:
    """Its questions as arguments of `flag`."""
    if outcome.what != "ask":
        return []
    own = {name: value for name, value in outcome.fields.items() if name != "also"}
    first = {"kind": outcome.kind, "text": outcome.text, "context": outcome.context, "reason": outcome.reason, **own}
    return [{name: value for name, value in first.items() if value}, *outcome.fields.get("also", ())]


def _add(found: list[Outcome], new: Outcome) -> None:
    """The same said twice is said once. More than may be asked are as good as a thousand."""
    for i, old in enumerate(found):
        if _same(old) == _same(new):
            if new.text:
                found[i] = new
            return
    if len(found) <= MANY or new.what == "broken":
        found.append(new)


def _same(outcome: Outcome) -> tuple[str, ...]:
    text = outcome.text if outcome.what == "ask" else _plain(outcome.status) if outcome.what == "nothing" else ""
    return (outcome.what, outcome.kind, text)


def _contradiction(one: Outcome, other: Outcome, words: str = "") -> Outcome:
    names = {"file": "the signal file", "json": "the JSON result", "promise": "the tag"}
    places = f"{names[one.source]} and {names[other.source]}" if one.source != other.source else f"{names[one.source]}s"
    words = words or f"'{one.status}' and '{other.status}'"
    text = f"The agent contradicts itself: it says {words} ({places})."
    said = one.raw if one is other else one.raw + other.raw
    return Outcome("broken", f"{one.status}, {other.status}"[:200], "", text, {}, "protocol_error", one.source, {}, said)


def _broken(source: str, text: str, *said: str) -> Outcome:
    return Outcome("broken", "", "", _clean(text), {}, "protocol_error", source, {}, _raw(*said))


def _raw(*said: str) -> tuple[str, ...]:
    return tuple(_clean(text[:1000]).strip() for text in said)


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
