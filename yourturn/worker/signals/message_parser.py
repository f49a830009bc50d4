"""What a message says, and what it only shows.

An agent ends its turn with a tag or with a JSON object, but messages are also full of both: in code, in logs, in quoted
briefs, in "I will not say … yet". Taking one of those for the agent's word would close a task that is not done, so this
reader knows where somebody shows a thing instead of saying it, and when in doubt it takes it for shown. That costs one
more iteration; the other mistake costs trust.

Not said is what stands in a code fence, in inline code, in an indented block, in a quotation (`> …`), a table row, a line of
a log, a comment, between quotation marks or in a JSON string. A JSON object may also stand alone in a plain fence.

Fences are read twice, because models nest them without counting: as Markdown has it, and as if a fence with a language
opened another level. What counts is outside by both. If a fence is still open at the end, then whatever stands between
fences is shaky: one of them may have been meant the other way round.

Everything is one walk from left to right over the whole message. Each search goes on where the last one ended or remembers
that there is nothing more to find, so the time is linear in the length, whatever the text. No part is left out: whether
the last line is said can depend on the first.
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
#: Fences in fences. Whoever goes deeper will not come out again.
_DEEPEST = 100
#: The languages of a fence in which a result may stand. What is in a Python fence is a program.
_PLAIN = {"", "json", "jsonc", "json5", "text", "txt", "plaintext"}

_STRICT = re.compile(
    r'(?:[\s,:]++|"(?:[^"\\\x00-\x1f]|\\.)*+"|-?(?:\d[\d.eE+-]*+|Infinity)|true|false|null|NaN)*+(?P<run>[\[{]++|[\]}]++)?'
)
_LOOSE = re.compile(r'"(?:[^"\\\n]|\\.?)*+"?+|[\[{]++|[\]}]++|\n\n')

_PAIRS = {'"': '"', "'": "'", "“": "”", "‘": "’", "„": "“", "«": "»", "‹": "›"}
_STOP = re.compile(r"[.!?;:…](?=\s)|\s[-–—]\s")
_HOLDS_BACK = re.compile(
    r"\b(?:not|never|cannot|will|would|should|when|once|until|unless|if|instead)\b|n['’]t\b|['’]ll\b", re.IGNORECASE
)
_PUTS_OFF = re.compile(
    r"[ \t]+(?:tags?[ \t]+|signals?[ \t]+)?(?:yet|when|once|until|unless|if|only|after|would|will|is|means|tags?|signals?)\b"
)


class Piece(NamedTuple):
    sort: str  #: tag | object
    text: str  #: what stands in the tag, or the object as it was written
    trouble: str = ""  #: what is wrong with its form
    aside: bool = False  #: talked about rather than said: "I will not print … yet"
    whole: bool = False  #: there is nothing else in the message
    shaky: bool = False  #: between fences, so it counts only if all of them are closed in the end
    last: bool = False  #: on lines of its own, and nothing stands behind it


class Message:
    """Iterate over it for the pieces that are said; then `unclosed` tells whether the last fence stayed open."""

    def __init__(self, text: str) -> None:
        text = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
        self.text = text = _dedent(_BLANKS.sub("", text))
        self.size = len(text)
        self.closed = False  # has any fence been closed so far?
        self._plainly: tuple[str, int] | None = None  # the open fence, as Markdown has it
        self._nested: list[tuple[str, int, int]] = []  # the open fences, if they nest
        self._inside: tuple[int, int, bool] | None = None  # where the fence and its content begin; may a result stand there?
        self._paragraph, self._span = 0, (0, 0)
        self._spans: Iterator[tuple[int, int]] = iter(())
        self._line, self._line_end, self._counted, self._marks = 0, -1, 0, {'"': 0, "`": 0}
        self._said = 0  # the end of the last piece
        self._absent: dict[str, int] = {}  # up to where there is no such end
        self._next: dict[str, int] = {}  # where the next such mark is
        self._first, self._last = self.size - len(text.lstrip()), len(text.rstrip())

    @property
    def unclosed(self) -> bool:
        return bool(self._plainly or self._nested)

    def __iter__(self) -> Iterator[Piece]:
        text, size = self.text, self.size
        if not TAG.search(text) and '"status"' not in text:
            return
        at = 0
        while at < size:
            if self.unclosed:
                edge = _EDGE.search(text, at)
                if not edge or len(self._nested) > _DEEPEST:
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
            yield from self._fenced(size, size)

    # --- fences

    def _fence(self, m: re.Match[str]) -> Iterator[Piece]:
        late = m.re is _BLOCK and m["late"]
        run = late or m["ticks"] or m["waves"]
        info = "" if late else (m["info"] or m["word"] or "").strip()
        margin = 0 if late else len(m["margin"])
        opens = bool(late or info or m["item"])
        mark, length = run[0], len(run)
        if not self.unclosed:
            self._plainly, self._nested = (mark, length), [(mark, length, margin)]
            word = info.split(None, 1)[0].lower() if info else ""
            self._inside = (m.start(), m.end(), word in _PLAIN and not late)
            return
        if self._plainly and not opens and mark == self._plainly[0] and length >= self._plainly[1]:
            self._plainly = None
        if self._nested and mark == self._nested[-1][0] and length >= self._nested[-1][1]:
            if opens:
                self._nested.append((mark, length, margin))
                self._inside = None
            elif margin <= self._nested[-1][2] + 3:
                self._nested.pop()
        if not self.unclosed:
            yield from self._fenced(m.start(), m.end())
            self._inside, self.closed = None, True

    def _fenced(self, end: int, after: int) -> Iterator[Piece]:
        """The content of a fence that could hold a result."""
        if not self._inside or not self._inside[2]:
            return
        start, begin, _ = self._inside
        content = self.text[begin:end].strip()
        if content.startswith("{"):
            aside, whole, last = self._aside(start, after), self._alone(start, after), after >= self._last
            yield Piece("object", content, "", aside, whole, self.closed, last)

    # --- prose

    def _prose(self, at: int, end: int) -> Generator[Piece, None, int]:
        """What is said between two marks of blocks. Returns where it came to, which can be beyond the second."""
        text = self.text
        start = at
        while at <= end and (event := _EVENT.search(text, at, end)):
            here, at = event.start(), event.end()
            if coded := self._coded(start, here, end):
                at = coded
            elif event["html"]:
                at = self._html(event, here)
            elif event["tag"] is None:
                piece, at = self._object(here, end)
                if piece:
                    yield piece
            else:
                close = _TAG_OR_END.search(text, at)
                after = close.end() if close and close[1] else at
                if self._quoted(here, after):
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
                yield Piece("tag", body, aside=self._aside(here, after), shaky=self.closed)
                at = self._counted = self._said = after
        return max(at, end)

    def _coded(self, start: int, here: int, end: int) -> int:
        """The end of the inline code in which this place is, or 0."""
        if here >= self._paragraph:
            low = max(start, self._paragraph)
            begin = self.text.rfind("\n\n", low, here)
            finish = self.text.find("\n\n", here, end)
            self._paragraph = end if finish < 0 else finish
            self._spans = self._code(low if begin < 0 else begin, self._paragraph)
            self._span = next(self._spans, (self.size, self.size))
        while self._span[1] <= here:
            self._span = next(self._spans, (self.size, self.size))
        return self._span[1] if self._span[0] <= here else 0

    def _code(self, at: int, end: int) -> Iterator[tuple[int, int]]:
        """Inline code: a run of backticks up to the next run of the same length, within a paragraph."""
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
        self._look(here)
        if event[0] != "<code>" and here - self._line <= 3 and not self.text[self._line : here].strip():
            found = self.text.find(close, event.end())
            return found + len(close) if found >= 0 else self.size
        if self._absent.get(close, 0) >= self._paragraph:
            return event.end()
        found = self.text.find(close, event.end(), self._paragraph)
        if found < 0:
            self._absent[close] = self._paragraph
            return event.end()
        return found + len(close)

    def _object(self, here: int, end: int) -> tuple[Piece | None, int]:
        """One outermost JSON value, by its brackets. What is in it, is in it, even if it turns out to be unfinished."""
        text, at, depth = self.text, here, 0
        while found := _STRICT.match(text, at, end):
            at, run = found.end(), found["run"]
            if run is None:
                break
            if run[0] in "[{":
                depth += len(run)
            elif len(run) < depth:
                depth -= len(run)
            else:
                at = found.start("run") + depth
                if text[here] == "[" or self._quoted(here, at):
                    return None, at
                last = at >= self._last and not text[self._line : here].strip()
                return Piece("object", text[here:at], "", self._aside(here, at), self._alone(here, at), self.closed, last), at
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
        if text[here] == "[" or self._quoted(here, at):
            return None, at
        return Piece("object", text[here:at], "It is not JSON.", whole=self._alone(here, at), shaky=self.closed), at

    # --- places

    def _look(self, here: int) -> None:
        """Know the line of this place. Places only move on."""
        if here > self._line_end:
            self._line = self.text.rfind("\n", max(self._line_end, 0), here) + 1 or max(self._line, 0)
            self._line_end = self._end_of_line(here)
            self._counted = max(self._line, self._counted)
            self._marks = {'"': 0, "`": 0}

    def _end_of_line(self, here: int) -> int:
        end = self.text.find("\n", here)
        return self.size if end < 0 else end

    def _quoted(self, here: int, after: int) -> bool:
        """Is it between quotation marks, or behind a mark that makes it plain text?"""
        self._look(here)
        text = self.text
        for mark in self._marks:
            self._marks[mark] += text.count(mark, self._counted, here)
        self._counted = max(here, self._counted)
        before = text[here - 1] if here else ""
        if before and (before in "\\`" or (before in _PAIRS and text[after : after + 1] == _PAIRS[before])):
            return True
        line_end = self._line_end if after <= self._line_end else self._end_of_line(after)
        return any(odd % 2 and self._comes(mark, after, line_end) for mark, odd in self._marks.items())

    def _comes(self, mark: str, after: int, line_end: int) -> bool:
        if self._next.get(mark, -1) < after:
            found = self.text.find(mark, after)
            self._next[mark] = self.size if found < 0 else found
        return self._next[mark] < line_end

    def _aside(self, here: int, after: int) -> bool:
        """Does the sentence around it hold it back? "When the tests pass, I will print … " """
        self._look(here)
        text = self.text
        before = text[max(self._line, self._said, here - 200) : here]
        if self._said <= self._line and not before.strip(" \t*_#-"):
            before = text[max(0, self._line - 200) : self._line].rstrip().rpartition("\n")[2]
            before = before[:-1] if before.endswith(":") else ""
        stops = [m.end() for m in _STOP.finditer(before)]
        return bool(_HOLDS_BACK.search(before, stops[-1] if stops else 0) or _PUTS_OFF.match(text, after))

    def _alone(self, here: int, after: int) -> bool:
        return here <= self._first and after >= self._last


def _dedent(text: str) -> str:
    """A message that is indented as a whole is not code."""
    margin = text[: len(text) - len(text.lstrip(" \t"))] if text[:1] in (" ", "\t") else ""
    if not margin or len(margin) > 100 or re.search(rf"^(?!{margin}|$)", text, re.M):
        return text
    return re.sub(f"^{margin}", "", text, flags=re.M)
