"""The outcome of a turn, from the signals at its end.

There are three forms: a signal file (`{"status": "NEEDS_HUMAN", …}`), a JSON result (`{"status": "completed", …}`) and a tag
(`<promise>COMPLETE</promise>`). They are trusted in this order, but none overrules another: if two of them, or two of the same
form, differ, the outcome is `broken`, and a person decides. A malformed signal is `broken`, too. So only a clear signal without a
contradiction closes a task.

Questions do not contradict each other: all questions of one source belong to one handoff. Only two that would end the task in
different ways (signed off, and done by a person instead) do.

Tables give the meaning of a status: the kinds of questions in `core/rules.py`, the statuses of JSON below.
`message_parser.py` finds the tags and objects of a message that count.

No function here raises an error, for any input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...core.actions import MANY
from ...core.canonical_json import loads
from ...core.errors import Invalid
from ...core.field_text import as_lines, line_of
from ...core.fields import TEXT_LIMIT, line
from ...core.rules import KINDS, REASONS, SIGNALS
from .message_parser import MessageParser, Piece
from .result_questions import read_questions

#: Longest signal file or JSON result, in bytes or characters.
LIMIT = 1_000_000
#: Characters of an agent's last message that a person sees, and from which the text of a tag without text is taken.
SHOWN, TAIL = 4_000, 20_000


class Outcome(NamedTuple):
    what: str  #: done | ask | failed | nothing | broken (malformed or contradictory: a person decides)
    status: str = ""  #: as written
    kind: str = ""  #: of the question
    text: str = ""  #: the question, the reason or the summary
    context: dict[str, Any] = {}  #: the other fields
    reason: str | None = None  #: a code of core.rules.REASONS
    source: str = ""  #: file | json | promise
    fields: dict[str, Any] = {}  #: options of the question, its default …; `also`: further questions
    raw: tuple[str, ...] = ()  #: the beginnings of its tags or objects, as written

    @property
    def questions(self) -> list[dict[str, Any]]:
        """All questions of the outcome."""
        return [{"kind": self.kind, "text": self.text}, *self.fields.get("also", ())] if self.what == "ask" else []


class Word(NamedTuple):
    what: str
    kind: str = ""
    reason: str | None = None


#: The statuses of a tag.
TAGS: dict[str, Word] = {word: Word("ask", kind) if kind else Word("done") for word, kind in SIGNALS.items()}
#: The statuses of a signal file; `blocked` is about an external cause, while the old tag BLOCKED asks for information.
STATUSES: dict[str, Word] = {
    **TAGS,
    "COMPLETED": Word("done"),
    "DONE": Word("done"),
    "FAILED": Word("failed"),
    "BLOCKED": Word("ask", "escalation", "blocked_external"),
}
#: The statuses of JSON in a message, which can be about anything: trackers have DONE, too. Only the last object, with a summary,
#: may use the others.
RESULTS: dict[str, Word] = {word: row for word, row in STATUSES.items() if word not in ("COMPLETE", "DONE")}

#: The fields with the text of an outcome, by priority.
TEXTS: dict[str, tuple[str, ...]] = {
    "ask": ("question", "reason", "summary", "message", "details"),
    "done": ("summary", "message", "reason"),
    "failed": ("summary", "reason", "message", "details"),
    "nothing": ("message", "reason", "summary"),
}
RESULT_FIELDS = {"summary", "details", "question", "questions", "questionContext", "issues", "reason", "message"}
#: An object with one of these fields is a record of something, unless the message has nothing else.
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


def _from_signal_file(data: bytes) -> Outcome:
    """The outcome of a signal file. An unknown status is `nothing` with the status: a script may know it."""
    if len(data) > LIMIT:
        return _broken("file", f"The signal file is too long: at most {LIMIT:,} bytes.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _broken("file", "The signal file is not UTF-8 text.")
    try:
        result = loads(text, "The signal file")
    except Invalid as trouble:
        return _broken("file", f"{trouble}.", text)
    if not isinstance(result, dict):
        return _broken("file", "The signal file holds no JSON object.", text)
    try:
        status = line(100)("its status", result.get("status"))
    except Invalid as trouble:
        return _broken("file", f"The signal file says nothing clear: {trouble}.", text)
    return _meaning(result, status, STATUSES.get(_normalized(status), Word("nothing")), "file", text)


def read(message: str, file: bytes | None, *, alone: bool = True) -> Outcome:
    """The outcome of a turn: of the file, else the JSON, else the tag, if they agree.

    `alone`: no other question is open, so a tag without text asks what the message says.
    """
    by_file = NOTHING if file is None else _from_signal_file(file)
    outcome = _reconcile([by_file, *_from_pieces(message)])
    raw, outcome = outcome.raw, outcome._replace(raw=())
    if outcome.what == "broken":
        quotes = exact(message, file)
        hidden = [quote for quote in raw if not any(quote in text for text in quotes.values())]
        return outcome._replace(context={**({"said": "\n".join(hidden)} if hidden else {}), **quotes})
    if alone and outcome.what == "ask" and not outcome.text and KINDS[outcome.kind].response_type == "text":
        return outcome._replace(text=_last_words(message))
    return outcome


def exact(message: str, file: bytes | None) -> dict[str, Any]:
    """The end of the agent's message and signal file as written, for a person."""
    texts = {"final_message": message.strip(), "signal_file": (file or b"")[-4 * SHOWN :].decode("utf-8", "replace").strip()}
    return {name: _storable(text if len(text) <= SHOWN else f"…{text[-SHOWN:]}") for name, text in texts.items() if text}


def account(context: dict[str, Any]) -> dict[str, Any]:
    """`details` and `issues` of a result; its other fields belong to the details."""
    issues, rest = context.get("issues"), {name: value for name, value in context.items() if name not in ("details", "issues")}
    listed = issues if isinstance(issues, list) else [issues]
    details = "\n".join([*as_lines({"text": context.get("details")}), *as_lines(rest)])
    return {"details": details, "issues": [line for line in map(line_of, listed) if line]}


def unknown(status: str, source: str) -> str:
    """The error for an unknown status where no script waits for one."""
    words = STATUSES if source == "file" else RESULTS
    return f"There is no status {_shortened(status)}. There are: {', '.join(word.lower() for word in words)}."


def _last_words(message: str) -> str:
    """The message around a tag without text, which is the question."""
    words = _TAGS.sub("", _storable(message[-TAIL:])).strip()
    return words if len(words) <= SHOWN else f"…{words[-SHOWN:]}"


def _from_pieces(text: str) -> list[Outcome]:
    """The outcomes of the message's JSON and of its tags."""
    message = MessageParser(text)
    certain: dict[str, list[Outcome]] = {"json": [], "promise": []}
    uncertain: dict[str, list[Outcome]] = {"json": [], "promise": []}
    for piece in message:
        outcome = _from_tag(piece) if piece.kind == "tag" else _from_object(piece)
        if outcome.what != "nothing" or outcome.status:
            _add((uncertain if piece.uncertain else certain)[outcome.source], outcome)
    if not message.unclosed:
        for source, outcomes in uncertain.items():
            for outcome in outcomes:
                _add(certain[source], outcome)
    return [_single(certain["json"]), _single(certain["promise"])]


def _from_tag(piece: Piece) -> Outcome:
    if piece.error:
        return _broken("promise", piece.error, piece.text)
    head, _, text = _split(piece.text)
    word = TAGS.get(_normalized(head))
    text = text.strip()
    if word is None:
        return _broken("promise", f"There is no signal {_shortened(head)}. There are: {', '.join(TAGS)}.", piece.text)
    if word.what == "done" and piece.hypothetical:
        return NOTHING
    if len(text) > TEXT_LIMIT:
        return _broken("promise", f"The text of {_normalized(head)} is too long: at most {TEXT_LIMIT:,} characters.", text)
    if word.what == "ask" and text[:1] == "{" and (fields := _fields(text)) is not None:
        return _meaning(fields, head.strip(), word, "promise", piece.text)
    return Outcome(word.what, head.strip(), word.kind, _storable(text), {}, word.reason, "promise", raw=_raw(piece.text))


def _fields(text: str) -> dict[str, Any] | None:
    """The fields of a question, if the text of a tag is a JSON object."""
    try:
        fields = loads(text, "The tag")
    except Invalid:
        return None
    return fields if isinstance(fields, dict) else None


def _split(body: str) -> tuple[str, str, str]:
    """Split `STATUS: text`, or a status on a line of its own and the text below."""
    body = body.strip()
    colon, newline = body.find(":"), body.find("\n")
    at = newline if newline >= 0 and (colon < 0 or newline < colon) else colon
    return (body[:at], body[at], body[at + 1 :]) if at >= 0 else (body, "", "")


def _from_object(piece: Piece) -> Outcome:
    words = _STATUS.findall(piece.text)
    known = [word for word in words if _normalized(word) in RESULTS]
    if not known and not (words and piece.last):
        return NOTHING
    if piece.error or len(piece.text) > LIMIT:
        clear = known and (piece.whole or _RESULT.search(piece.text))
        why = piece.error or f"It is too long: at most {LIMIT:,} characters."
        return _broken("json", f"The result '{known[0]}' cannot be read. {why}", piece.text) if clear else NOTHING
    try:
        result = loads(piece.text, "The result")
    except Invalid as trouble:
        return _broken("json", f"{trouble}.", piece.text) if known and (piece.whole or _RESULT.search(piece.text)) else NOTHING
    status = result.get("status")
    if not isinstance(status, str) or not _is_result(result, piece.whole):
        return NOTHING
    word = RESULTS.get(_normalized(status))
    if word is None and piece.last and str(result.get("summary") or "").strip() and not RECORD_FIELDS & set(result):
        word = STATUSES.get(_normalized(status))
    if word is None and piece.last and not piece.hypothetical and _WORD.fullmatch(status) and len(result) > 1:
        word = Word("nothing")
    if word is None or (word.what == "done" and piece.hypothetical):
        return NOTHING
    return _meaning(result, status.strip(), word, "json", piece.text)


def _is_result(result: dict[str, Any], whole: bool) -> bool:
    """True if an object with a status is about the agent's own turn: many other objects have one."""
    if whole:
        return len(result) == 1 or bool(RESULT_FIELDS & set(result))
    has_text = any(isinstance(result.get(field), str) and result[field].strip() for field in ("summary", "question", "reason"))
    has_text = has_text or isinstance(result.get("questions"), list)
    return has_text and not RECORD_FIELDS & set(result)


def _meaning(result: dict[str, Any], status: str, word: Word, source: str, raw: str) -> Outcome:
    """The outcome of an object whose status is known."""
    bad = next((name for name in ("question", "summary", "reason", "message") if not _is_text(result.get(name))), None)
    if bad:
        return _broken(source, f"'{bad}' beside the status '{status}' is not text.", raw)
    if word.what == "ask":
        return _asking(result, status, word, source, raw)
    code = result.get("reason")
    if code not in REASONS:
        code = None
    texts = [name for name in TEXTS[word.what] if isinstance(result.get(name), str) and result[name].strip()]
    if code and len(texts) > 1:
        texts.remove("reason")
    field = texts[0] if texts else ""
    text_field = "" if word.what == "nothing" else field  # a script gets all fields
    context = {k: v for k, v in result.items() if k not in ("status", text_field) and v not in (None, "", [], {})}
    if code:
        context.pop("reason", None)
    text = result[field].strip() if field else ""
    return Outcome(word.what, status, word.kind, text, context, code or word.reason, source, raw=_raw(raw))


def _asking(result: dict[str, Any], status: str, word: Word, source: str, raw: str) -> Outcome:
    try:
        first, *others = read_questions(result, word.kind, word.reason, TEXTS["ask"])
    except Invalid as trouble:
        more = f" {trouble.hint}" if trouble.hint else ""
        return _broken(source, f"What stands beside '{status}' cannot be asked: {trouble}.{more}", raw)
    kind, text, context, reason = (first.pop(name, default) for name, default in _FIRST)
    if not text and source != "promise" and KINDS[kind].response_type == "text":
        return _broken(source, f"The status '{status}' asks nothing: there is no question beside it.", raw)
    fields = {**first, **({"also": others} if others else {})}
    return _single([Outcome("ask", status, kind, text, context, reason, source, fields, _raw(raw))])


_FIRST: tuple[tuple[str, Any], ...] = (("kind", ""), ("text", ""), ("context", {}), ("reason", None))


def _reconcile(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome of several sources, given by priority."""
    signals = [outcome for outcome in outcomes if outcome.what != "nothing" or outcome.status]
    for outcome in signals:
        if outcome.what == "broken":
            return outcome
    for other in signals[1:]:
        if not _agree(signals[0], other):
            return _contradiction(signals[0], other)
    return _with_questions_of(signals[0], signals[1:]) if signals else NOTHING


def _agree(first: Outcome, other: Outcome) -> bool:
    if first.what != other.what or first.what in ("done", "failed"):
        return first.what == other.what
    kinds = first.what == "ask" and {q["kind"] for q in other.questions} <= {q["kind"] for q in first.questions}
    return kinds or _normalized(first.status) == _normalized(other.status)


def _with_questions_of(first: Outcome, others: list[Outcome]) -> Outcome:
    """The first outcome, with the texts of the other sources' questions in its context."""
    texts = {q["text"] for q in first.questions}
    more = [q["text"] for other in others for q in other.questions if q["text"] and q["text"] not in texts]
    return first._replace(context={**first.context, "also_said": "\n".join(dict.fromkeys(more))}) if more else first


def _single(outcomes: list[Outcome]) -> Outcome:
    """The outcome of several signals of one source."""
    for outcome in outcomes:
        if outcome.what == "broken":
            return outcome
    if all(outcome.what == "ask" for outcome in outcomes):
        return _merge_questions(outcomes)
    return outcomes[0] if len(outcomes) == 1 else _contradiction(outcomes[0], outcomes[1])


def _merge_questions(outcomes: list[Outcome]) -> Outcome:
    """The questions of one source as one outcome."""
    if not outcomes:
        return NOTHING
    kinds_with_text = {outcome.kind for outcome in outcomes if outcome.text}
    outcomes = [outcome for outcome in outcomes if outcome.text or outcome.kind not in kinds_with_text]
    first = outcomes[0]
    ends = {q["kind"]: outcome for outcome in outcomes for q in outcome.questions if KINDS[q["kind"]].approved == "done"}
    if len(ends) > 1:
        first_end, second_end = list(ends.items())[:2]
        return _contradiction(first_end[1], second_end[1], f"'{first_end[0]}' and '{second_end[0]}'")
    others = [question for outcome in outcomes[1:] for question in asks(outcome)]
    if len(first.questions) + len(others) > MANY:
        return _broken(first.source, f"It asks more than {MANY} questions at once.", *first.raw)
    return first._replace(fields={**first.fields, "also": [*first.fields.get("also", ()), *others]}) if others else first


def asks(outcome: Outcome) -> list[dict[str, Any]]:
    """The questions of an outcome as arguments of `flag`."""
    if outcome.what != "ask":
        return []
    own = {name: value for name, value in outcome.fields.items() if name != "also"}
    first = {"kind": outcome.kind, "text": outcome.text, "context": outcome.context, "reason": outcome.reason, **own}
    return [{name: value for name, value in first.items() if value}, *outcome.fields.get("also", ())]


def _add(outcomes: list[Outcome], new: Outcome) -> None:
    """Add an outcome that is not a repetition. More than MANY are an error anyway, so further ones are dropped."""
    for i, old in enumerate(outcomes):
        if _same(old) == _same(new):
            if new.text:
                outcomes[i] = new
            return
    if len(outcomes) <= MANY or new.what == "broken":
        outcomes.append(new)


def _same(outcome: Outcome) -> tuple[str, ...]:
    text = outcome.text if outcome.what == "ask" else _normalized(outcome.status) if outcome.what == "nothing" else ""
    return (outcome.what, outcome.kind, text)


def _contradiction(first: Outcome, other: Outcome, statuses: str = "") -> Outcome:
    names = {"file": "the signal file", "json": "the JSON result", "promise": "the tag"}
    places = f"{names[first.source]} and {names[other.source]}" if first.source != other.source else f"{names[first.source]}s"
    statuses = statuses or f"'{first.status}' and '{other.status}'"
    text = f"The agent contradicts itself: it says {statuses} ({places})."
    raw = first.raw if first is other else first.raw + other.raw
    return Outcome("broken", f"{first.status}, {other.status}"[:200], "", text, {}, "protocol_error", first.source, {}, raw)


def _broken(source: str, text: str, *raw: str) -> Outcome:
    return Outcome("broken", "", "", _storable(text), {}, "protocol_error", source, {}, _raw(*raw))


def _raw(*texts: str) -> tuple[str, ...]:
    return tuple(_storable(text[:1000]).strip() for text in texts)


def _normalized(word: str) -> str:
    """A status as in the tables: Input needed, input-needed and INPUT_NEEDED are the same."""
    return _BETWEEN.sub("_", word.strip()[:100]).upper()


def _shortened(word: str) -> str:
    word = " ".join(word[:200].split())
    return f"'{word[:40]}…'" if len(word) > 40 else f"'{word}'"


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _storable(text: str) -> str:
    """The text without characters that a database refuses."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
