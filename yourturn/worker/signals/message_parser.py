"""Finds the signals in the last message of an agent: tags and JSON objects that are meant, not quoted.

An agent ends its turn with a tag or a JSON object, but messages also contain both as quotations: in code, in logs, in quoted
briefs, in "I will not print … yet". A quotation that is taken for a signal closes a task that is not done. So the parser
recognises the places of quotations, and in doubt ignores the tag. That costs one more turn; the other mistake costs trust.

These places do not count: a code fence, inline code, an indented block, a quotation (`> …`), a table row, a line of a log, a
comment, a text in quotation marks, a JSON string. A JSON object may be the only content of a plain fence.

Models nest fences without counting backticks, so a fence with a language inside a fence opens another level. (Markdown closes a
fence earlier or at the same edge, so nothing outside by this reading is inside by Markdown's.) If a fence is still open at the
end, all pieces after the first closed fence are uncertain: an edge may have been meant the other way round.

The parser walks once from left to right over the whole message. Each search starts where the last one ended, or remembers that
there is nothing more to find, so the time is linear in the length for any text. No part is skipped: whether the last line counts
can depend on the first.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import NamedTuple

TAG = re.compile(r"<(?:promise|PROMISE)[ \t]*+>")
_TAG_OR_END = re.compile(r"<(/?)(?:promise|PROMISE)[ \t]*+>")

_EVENT = re.compile(
    r"""[<{\[] (?: (?<=<) (?: (?P<tag>(?:promise|PROMISE)[ \t]*+>) | (?P<html>!--|pre>|code>) )
              | (?<=\{) \s*+ (?=") | (?<=\[) \s*+ (?=[\[{"]) )""",
    re.X,
)
_HTML = {"<!--": "-->", "<pre>": "</pre>", "<code>": "</code>"}

_FENCE = r"""
    (?P<margin>[ \t]*+ (?P<item>(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+))
    (?: (?P<ticks>`{3,}+) (?P<info>[^`\n]*+) | (?P<waves>~{3,}+) (?P<word>[^\n]*+) ) $"""
_EDGE = re.compile(rf"^{_FENCE}", re.M | re.X)
_BLOCK = re.compile(
    rf"""^(?:
      {_FENCE}
    | (?P<line> [ \t]*+ (?:(?:[-*+]|\d{{1,9}}[.)])[ \t]++)*+ [>|]         # a quotation, a row of a table
              | [ \t]*+ \$[ ]                                             # a prompt
              | \[? \d{{4}}-\d\d-\d\d [T ] \d | \[? \d\d:\d\d:\d\d        # a log
              | [^\s:]{{1,300}} :\d{{1,9}}: )                             # a line found in a file
    | [^`\n]++ (?P<late>`{{3,}}+) [\w+-]*+ [ \t]*+ $                      # prose that ends in an opening fence
    )
    | (?<=\n\n) (?P<indented> (?: (?:[ ]{{4}}|[ ]{{0,3}}\t) (?![ \t]*+(?:```|~~~)) [^\n]*+ (?:\n|\Z) )++ )""",
    re.M | re.X,
)
_TICKS = re.compile("`++")
_BLANKS = re.compile(r"^[ \t]++$", re.M)
#: Nested fences; beyond this depth the rest of the message is ignored.
_MAX_DEPTH = 100
#: The languages of a fence that may contain a result. A Python fence contains a program.
_PLAIN = {"", "json", "jsonc", "json5", "text", "txt", "plaintext"}

_STRICT = re.compile(
    r'(?:[\s,:]++|"(?:[^"\\\x00-\x1f]|\\.)*+"|-?(?:\d[\d.eE+-]*+|Infinity)|true|false|null|NaN)*+(?P<run>[\[{]++|[\]}]++)?'
)
_LOOSE = re.compile(r'"(?:[^"\\\n]|\\.?)*+"?+|[\[{]++|[\]}]++|\n\n')

_PAIRS = {'"': '"', "'": "'", "“": "”", "‘": "’", "„": "“", "«": "»", "‹": "›"}
_STOP = re.compile(r"[.!?;:…](?=\s)|\s[-–—]\s")
_WITHHOLDS = re.compile(
    r"\b(?:not|never|cannot|will|would|should|when|once|until|unless|if|instead)\b|n['’]t\b|['’]ll\b", re.IGNORECASE
)
_POSTPONES = re.compile(
    r"[ \t]+(?:tags?[ \t]+|signals?[ \t]+)?(?:yet|when|once|until|unless|if|only|after|would|will|is|means|tags?|signals?)\b"
)


class Piece(NamedTuple):
    kind: str  #: tag | object
    text: str  #: the content of the tag, or the object, as written
    error: str = ""  #: what is malformed
    hypothetical: bool = False  #: talked about rather than meant: "I will not print … yet"
    whole: bool = False  #: the message has nothing else
    uncertain: bool = False  #: after a fence, so it counts only if all fences are closed at the end
    last: bool = False  #: on lines of its own, and the last of the message


class MessageParser:
    """Iterates over the pieces that count; afterwards `unclosed` tells whether a fence is still open."""

    def __init__(self, text: str) -> None:
        text = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
        self.text = text = _dedent(_BLANKS.sub("", text))
        self.size = len(text)
        self.closed = False  #: a fence has been closed
        self._fences: list[tuple[str, int, int]] = []  #: the open fences: mark, length, margin
        self._inside: tuple[int, int, bool] | None = None  #: start of the fence, of its content; it may contain a result
        self._paragraph, self._span = 0, (0, 0)
        self._spans: Iterator[tuple[int, int]] = iter(())
        self._line, self._line_end, self._counted, self._marks = 0, -1, 0, {'"': 0, "`": 0}
        self._piece_end = 0  #: of the last piece
        self._absent: dict[str, int] = {}  #: the position up to which there is no such end
        self._next_marks: dict[str, int] = {}  #: the position of the next such mark
        self._first, self._last = self.size - len(text.lstrip()), len(text.rstrip())

    @property
    def unclosed(self) -> bool:
        return bool(self._fences)

    def __iter__(self) -> Iterator[Piece]:
        text, size = self.text, self.size
        if not TAG.search(text) and '"status"' not in text:
            return
        at = 0
        while at < size:
            if self.unclosed:
                edge = _EDGE.search(text, at)
                if not edge or len(self._fences) > _MAX_DEPTH:
                    break
                yield from self._fence(edge)
                at = edge.end()
                continue
            block = _BLOCK.search(text, at)
            end = size if not block else block.start() if block["late"] is None else block.start("late")
            at = yield from self._prose(at, end)
            if at > end:
                continue
            if not block:
                break
            if block["line"] is not None:
                at = self._end_of_line(block.end())
            elif block["indented"] is None:
                yield from self._fence(block)
                at = block.end()
            else:
                at = block.end()
        if self._inside and not self.closed:
            yield from self._fence_content(size, size)

    # --- fences

    def _fence(self, m: re.Match[str]) -> Iterator[Piece]:
        late = m.re is _BLOCK and m["late"]
        run = late or m["ticks"] or m["waves"]
        info = "" if late else (m["info"] or m["word"] or "").strip()
        margin = 0 if late else len(m["margin"])
        opens = bool(late or info or m["item"])
        mark, length = run[0], len(run)
        if not self.unclosed:
            self._fences = [(mark, length, margin)]
            word = info.split(None, 1)[0].lower() if info else ""
            self._inside = (m.start(), m.end(), word in _PLAIN and not late)
            return
        if mark == self._fences[-1][0] and length >= self._fences[-1][1]:
            if opens:
                self._fences.append((mark, length, margin))
                self._inside = None
            elif margin <= self._fences[-1][2] + 3:
                self._fences.pop()
        if not self.unclosed:
            yield from self._fence_content(m.start(), m.end())
            self._inside, self.closed = None, True

    def _fence_content(self, end: int, after: int) -> Iterator[Piece]:
        """The content of a fence, if it can be a result."""
        if not self._inside or not self._inside[2]:
            return
        start, begin, _ = self._inside
        content = self.text[begin:end].strip()
        if content.startswith("{"):
            hypothetical, whole, last = self._is_hypothetical(start, after), self._is_alone(start, after), after >= self._last
            yield Piece("object", content, "", hypothetical, whole, self.closed, last)

    # --- prose

    def _prose(self, at: int, end: int) -> Generator[Piece, None, int]:
        """The pieces between two blocks. Returns the position reached, which can be beyond `end`."""
        text = self.text
        start = at
        while at <= end and (event := _EVENT.search(text, at, end)):
            here, at = event.start(), event.end()
            if span_end := self._code_span_end(start, here, end):
                at = span_end
            elif event["html"]:
                at = self._html(event, here)
            elif event["tag"] is None:
                piece, at = self._object(here, end)
                if piece:
                    yield piece
            else:
                close = _TAG_OR_END.search(text, at)
                after = close.end() if close and close[1] else at
                if self._is_quoted(here, after):
                    continue
                if not close:
                    yield Piece("tag", text[at : at + 200], "The tag is never closed.")
                    return self.size
                if not close[1]:
                    yield Piece("tag", text[at : at + 200], "A tag begins inside a tag.")
                    return self.size
                body = text[at : close.start()]
                if sum(1 for _ in _EDGE.finditer(body)) % 2:
                    yield Piece("tag", body[:200], "The tag is closed inside a code fence.")
                    return self.size
                yield Piece("tag", body, hypothetical=self._is_hypothetical(here, after), uncertain=self.closed)
                at = self._counted = self._piece_end = after
        return max(at, end)

    def _code_span_end(self, start: int, here: int, end: int) -> int:
        """The end of the inline code at this position, or 0."""
        if here >= self._paragraph:
            low = max(start, self._paragraph)
            begin = self.text.rfind("\n\n", low, here)
            finish = self.text.find("\n\n", here, end)
            self._paragraph = end if finish < 0 else finish
            self._spans = self._code_spans(low if begin < 0 else begin, self._paragraph)
            self._span = next(self._spans, (self.size, self.size))
        while self._span[1] <= here:
            self._span = next(self._spans, (self.size, self.size))
        return self._span[1] if self._span[0] <= here else 0

    def _code_spans(self, at: int, end: int) -> Iterator[tuple[int, int]]:
        """The spans of inline code: from a run of backticks to the next run of the same length, within a paragraph."""
        text = self.text
        last = {len(run[0]): run.start() for run in _TICKS.finditer(text, at, end)}
        while run := _TICKS.search(text, at, end):
            start, at = run.span()
            slashes = start
            while slashes and text[slashes - 1] == "\\":
                slashes -= 1
            start += (start - slashes) % 2
            if last.get(at - start, -1) < at:
                continue
            close = next(m for m in _TICKS.finditer(text, at, end) if len(m[0]) == at - start)
            at = close.end()
            yield start, at

    def _html(self, event: re.Match[str], here: int) -> int:
        close = _HTML[event[0]]
        self._enter_line(here)
        if event[0] != "<code>" and here - self._line <= 3 and not self.text[self._line : here].strip():
            end = self.text.find(close, event.end())
            return end + len(close) if end >= 0 else self.size
        if self._absent.get(close, 0) >= self._paragraph:
            return event.end()
        end = self.text.find(close, event.end(), self._paragraph)
        if end < 0:
            self._absent[close] = self._paragraph
            return event.end()
        return end + len(close)

    def _object(self, here: int, end: int) -> tuple[Piece | None, int]:
        """The outermost JSON value at this position, by its brackets. Its content is skipped, also if it is unfinished."""
        text, at, depth = self.text, here, 0
        while brackets := _STRICT.match(text, at, end):
            at, run = brackets.end(), brackets["run"]
            if run is None:
                break
            if run[0] in "[{":
                depth += len(run)
            elif len(run) < depth:
                depth -= len(run)
            else:
                at = brackets.start("run") + depth
                if text[here] == "[" or self._is_quoted(here, at):
                    return None, at
                last = at >= self._last and not text[self._line : here].strip()
                hypothetical, whole = self._is_hypothetical(here, at), self._is_alone(here, at)
                return Piece("object", text[here:at], "", hypothetical, whole, self.closed, last), at
        for token in _LOOSE.finditer(text, at, end):
            mark = token[0][0]
            if mark == "\n":
                at = token.start()
                break
            at = token.end()
            if mark != '"':
                depth += len(token[0]) if mark in "[{" else -len(token[0])
            if depth <= 0:
                break
        else:
            at = end
        if text[here] == "[" or self._is_quoted(here, at):
            return None, at
        return Piece("object", text[here:at], "It is not JSON.", whole=self._is_alone(here, at), uncertain=self.closed), at

    # --- positions

    def _enter_line(self, here: int) -> None:
        """Find the line of this position. Positions only grow."""
        if here > self._line_end:
            self._line = self.text.rfind("\n", max(self._line_end, 0), here) + 1 or max(self._line, 0)
            self._line_end = self._end_of_line(here)
            self._counted = max(self._line, self._counted)
            self._marks = {'"': 0, "`": 0}

    def _end_of_line(self, here: int) -> int:
        end = self.text.find("\n", here)
        return self.size if end < 0 else end

    def _is_quoted(self, here: int, after: int) -> bool:
        """True if the piece is in quotation marks, or escaped."""
        self._enter_line(here)
        text = self.text
        for mark in self._marks:
            self._marks[mark] += text.count(mark, self._counted, here)
        self._counted = max(here, self._counted)
        before = text[here - 1] if here else ""
        if before and (before in "\\`" or (before in _PAIRS and text[after : after + 1] == _PAIRS[before])):
            return True
        line_end = self._line_end if after <= self._line_end else self._end_of_line(after)
        return any(odd % 2 and self._occurs(mark, after, line_end) for mark, odd in self._marks.items())

    def _occurs(self, mark: str, after: int, line_end: int) -> bool:
        if self._next_marks.get(mark, -1) < after:
            position = self.text.find(mark, after)
            self._next_marks[mark] = self.size if position < 0 else position
        return self._next_marks[mark] < line_end

    def _is_hypothetical(self, here: int, after: int) -> bool:
        """True if the sentence around the piece postpones it: "When the tests pass, I will print …"."""
        self._enter_line(here)
        text = self.text
        before = text[max(self._line, self._piece_end, here - 200) : here]
        if self._piece_end <= self._line and not before.strip(" \t*_#-"):
            before = text[max(0, self._line - 200) : self._line].rstrip().rpartition("\n")[2]
            before = before[:-1] if before.endswith(":") else ""
        stops = [m.end() for m in _STOP.finditer(before)]
        return bool(_WITHHOLDS.search(before, stops[-1] if stops else 0) or _POSTPONES.match(text, after))

    def _is_alone(self, here: int, after: int) -> bool:
        return here <= self._first and after >= self._last


def _dedent(text: str) -> str:
    """Remove the indentation of the whole message, which does not make it code."""
    margin = text[: len(text) - len(text.lstrip(" \t"))] if text[:1] in (" ", "\t") else ""
    if not margin or len(margin) > 100 or re.search(rf"^(?!{margin}|$)", text, re.M):
        return text
    return re.sub(f"^{margin}", "", text, flags=re.M)
