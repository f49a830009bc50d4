"""The rules of docs/style.md that a program can check: the worst relapses in names, comments, docstrings and docs."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: Words that hide the component that acts.
RIDDLES = re.compile(r"\b(nobody|somebody|whoever|whom|whomever)\b", re.I)
#: A sentence that begins with "Who" and is not a question.
BEGINS_WITH_WHO = re.compile(r"(?:^|[.!:;]\s+)Who [^?.!]*(?:[.!]|$)")
#: Variables that say nothing about their value.
EMPTY_NAMES = {"found", "said"}


def python_files() -> list[Path]:
    return [path for folder in ("yourturn", "tools", "tests", "bench") for path in sorted((ROOT / folder).rglob("*.py"))]


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Line number and text of each comment; comments on successive lines are one text."""
    first, last, lines = 0, -1, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        row = token.start[0]
        if row != last + 1 and lines:
            yield first, " ".join(lines)
            lines = []
        first, last = (first if lines else row), row
        lines.append(token.string.lstrip("#: "))
    if lines:
        yield first, " ".join(lines)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def variables(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def paragraphs(page: str) -> Iterator[tuple[int, str]]:
    """Line number and text of each paragraph, without code and without words in italics, which are quoted words."""
    page = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), page, flags=re.S | re.M)
    row = 1
    for part in re.split(r"\n(?=\s*(?:\n|[-|#]|\d+\.))", page):
        text = re.sub(r"`[^`]*`|(?<!\*)\*[\w ]+\*(?!\*)", "", " ".join(part.split()))
        yield row, text.lstrip("-|# ")
        row += part.count("\n") + 1


def riddles(text: str) -> list[str]:
    return [match[0].strip() for pattern in (RIDDLES, BEGINS_WITH_WHO) for match in pattern.finditer(text)]


def python_relapses(path: Path) -> list[str]:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    relapses = [f"{row}: {word!r}" for row, text in (*comments(source), *docstrings(tree)) for word in riddles(text)]
    if source.strip() and not (ast.get_docstring(tree) or "").strip():
        relapses.append("1: no docstring")
    if path.is_relative_to(ROOT / "yourturn"):
        relapses += [f"{row}: variable {name!r}" for row, name in variables(tree) if name in EMPTY_NAMES]
    return relapses


def page_relapses(path: Path) -> list[str]:
    return [f"{row}: {word!r}" for row, text in paragraphs(path.read_text(encoding="utf-8")) for word in riddles(text)]


def relapses() -> dict[str, list[str]]:
    """By file."""
    by_file = {name_of(path): python_relapses(path) for path in python_files()}
    by_file |= {name_of(path): page_relapses(path) for path in pages()}
    return {name: lines for name, lines in by_file.items() if lines}


def test_code_and_docs_use_plain_technical_english():
    lines = [f"{name}:{line}" for name, lines in relapses().items() for line in lines]
    assert not lines, "See docs/style.md:\n" + "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Who goes to sleep wakes late.", 1),
        ("Blocks until an answer comes. Who waits pays for it.", 1),
        ("Returns the task, or None if nobody holds it.", 1),
        ("Who is asking?", 0),
        ("The component is the subject.", 0),
    ],
)
def test_relapses_are_noticed_and_questions_are_not(text, count):
    assert len(riddles(text)) == count
