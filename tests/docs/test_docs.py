"""Docs that cannot lie: tables are printed from the code, examples run, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tools import generate_docs
from yourturn.client import Client
from yourturn.client.verbs import Verbs
from yourturn.config import init
from yourturn.core.actions import VERBS
from yourturn.core.rules import ADMIN_VERBS, ALIASES, KINDS, TRANSITIONS, matrix
from yourturn.flow.api import FUNCTIONS
from yourturn.testing import Stage, approve, done

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

PEOPLE = {verb for (_, verb), rule in TRANSITIONS.items() if rule.who != {"system"}}
SAID = sorted({*(word for word, _ in ALIASES), *ADMIN_VERBS, *PEOPLE})

#: Methods of the client that serve other parts of Yourturn.
INSIDE = {"as_", "check_question", "claim_is_for", "do", "log", "sleep_until_due"}


def test_generated_files_are_current():
    for path, make in generate_docs.GENERATED.items():
        assert (ROOT / path).read_text(encoding="utf-8") == make(), f"{path}: run make docs"


def test_check_reports_a_file_that_differs(tmp_path, monkeypatch, capsys):
    for path in generate_docs.GENERATED:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(generate_docs, "ROOT", tmp_path)
    assert generate_docs.main(["--check"]) == 1
    assert "make docs" in capsys.readouterr().err
    assert generate_docs.main([]) == 0
    assert generate_docs.main(["--check"]) == 0
    for path in generate_docs.GENERATED:
        (tmp_path / path).write_text((tmp_path / path).read_text() + "\n")
        assert generate_docs.main(["--check"]) == 1
        assert generate_docs.main([]) == 0
    assert generate_docs.main(["--nonsense"]) == 2
    monkeypatch.setattr(generate_docs, "ROOT", tmp_path / "nowhere")
    assert generate_docs.main([]) == 1


def test_only_the_system_is_left_out():
    assert sorted(set(VERBS) - set(SAID)) == ["block", "expire", "fence", "parent", "timeout", "unblock", "unvet"]


@pytest.mark.parametrize("verb", SAID)
def test_every_verb_is_documented(verb):
    assert re.search(rf"^\| `{verb}` \| {re.escape(VERBS[verb].about)}", generate_docs.page(), re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_documented(kind):
    assert f"| `{kind}` | {KINDS[kind].asks} | {KINDS[kind].approved} | {KINDS[kind].rejected} |" in generate_docs.page()


def test_the_diagram_shows_every_open_way():
    drawn = set(re.findall(r"^    (\w+) --> (\w+): ", generate_docs.as_mermaid(), re.MULTILINE))
    always = {"cancel", "close"}
    assert drawn == {(a, b) for (a, b), verbs in matrix().items() if a != b and set(verbs) - always}


# --- links -----------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The names that a reader's browser gives to headings."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link}"
        assert target.is_relative_to(ROOT), f"{page.name}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {link}"


@pytest.mark.parametrize("page", ["architecture.md", "style.md", "glossary.md"])
def test_files_that_the_docs_name_exist(page):
    named = set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.(?:py|sql))?)`", (DOCS / page).read_text(encoding="utf-8")))
    roots = [ROOT, ROOT / "yourturn"]
    assert not {name for name in named if not any((root / name).exists() for root in roots)}


def test_every_page_can_be_reached():
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        if page.name != "README.md":
            assert f"({page.relative_to(DOCS)})" in index, f"docs/README.md does not mention {page.name}"


# --- examples --------------------------------------------------------------------------------------------------------


def blocks(page: Path) -> list[tuple[int, str, str]]:
    """(line, Python, the words that it prints): the words stand beside each print, or in the next plain block."""
    found = []
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", text, re.MULTILINE | re.DOTALL):
        beside = re.findall(r"^ *print\(.*\) +# (.*)$", match[1], re.MULTILINE)
        shown = "\n".join(beside) if beside or not match[2] else match[2].rstrip("\n")
        found.append((text[: match.start()].count("\n") + 2, match[1], shown))
    return found


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    """docs/python.md from top to bottom, in a fresh folder, as ana."""
    page = DOCS / "python.md"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("USER", "ana")
    init(None, "PROJ", None, {"USER": "ana"})[0].close()
    names: dict[str, object] = {"__name__": "example"}
    try:
        for line, source, shown in blocks(page):
            exec(compile("\n" * (line - 1) + source, str(page), "exec"), names)
            assert capsys.readouterr().out.rstrip("\n") == shown, f"python.md, line {line}"
    finally:
        for value in names.values():
            if isinstance(value, Client):
                value.close()
    assert len(blocks(page)) > 10


def test_the_workflows_run(capsys):
    """docs/workflows.md from top to bottom, and its tests."""
    page = DOCS / "workflows.md"
    names: dict[str, Any] = {"__name__": "example"}
    for line, source, shown in blocks(page):
        exec(compile("\n" * (line - 1) + source, str(page), "exec"), names)
        assert capsys.readouterr().out.rstrip("\n") == shown, f"workflows.md, line {line}"
    tests = [value for name, value in names.items() if name.startswith("test_")]
    for test in tests:
        test()
    assert len(tests) > 5 and set(FUNCTIONS) <= set(re.findall(r"`(\w+)\(", page.read_text(encoding="utf-8")))
    stage = Stage(names["both"], {"coder": {"the API": done("an API"), "the page": done("a page")}}, [approve()])
    assert stage.play().summary == "merged"
    (lua,) = re.findall(r"^```lua\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    stage = Stage(lua, {"architect": done(), "coder": done(), "deployer": done("live")}, [approve()], file="feature.lua")
    assert stage.play().summary == "live"


def test_the_workflow_of_the_readme_runs():
    (source,) = [source for _, source, _ in blocks(ROOT / "README.md") if "@workflow" in source]
    stage = Stage(source, {"architect": done(), "coder": done(), "deployer": done("live")}, [approve()], file="feature.py")
    assert stage.play("Add login").summary == "live"


def test_the_stage_is_documented():
    text = (DOCS / "workflows.md").read_text(encoding="utf-8").partition("## Testing a workflow")[2]
    inside = {"go", "proceed", "close", "key", "strict", "ended"}
    public = {name for name in dir(Stage(lambda prompt: None)) if not name.startswith("_")} - inside
    assert {name for name in public if not re.search(rf"\b{name}\b", text)} == set()


def test_every_method_is_documented():
    text = (DOCS / "python.md").read_text(encoding="utf-8").partition("## All methods")[2]
    named = set(re.findall(r"`(\w+)`", text))
    public = {name for name in dir(Client) if not name.startswith("_") and callable(getattr(Client, name))}
    assert public - named - INSIDE - vars(Verbs).keys() == set(), "name it in docs/python.md, or in INSIDE if it is not for users"
    assert {name for name in named if name not in public} == set()
