"""Outcomes: a clear signal counts, a quoted one never does, and a person decides about an unclear one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yourturn.core.canonical_json import check
from yourturn.core.rules import KINDS, REASONS, SIGNALS
from yourturn.testing import temporary_desk
from yourturn.worker.prompt.brief import answers, brief
from yourturn.worker.signals.outcomes import STATUSES, Outcome, from_file, from_message, read

from .corpus import COMPLETE, FILES, MESSAGES


def short(outcome: Outcome) -> str:
    return f"{outcome.what}:{outcome.kind}" if outcome.kind else outcome.what


def sound(outcome: Outcome) -> Outcome:
    """The invariants of every outcome."""
    assert outcome.what in ("done", "ask", "failed", "nothing", "broken")
    assert (outcome.kind in KINDS) == (outcome.what == "ask")
    assert (outcome.reason == "protocol_error") == (outcome.what == "broken") and outcome.reason in (None, *REASONS)
    assert bool(outcome.source) == (outcome.what != "nothing" or bool(outcome.status))
    assert outcome.text or outcome.what not in ("broken",)
    check([outcome.status, outcome.text, outcome.context])
    return outcome


# --- the corpus


@pytest.mark.parametrize(("text", "what"), [pytest.param(text, what, id=name) for name, text, what in MESSAGES])
def test_outcome_of_a_message(text, what):
    assert short(sound(from_message(text))) == what
    assert short(sound(read(text, None))) == what


@pytest.mark.parametrize(("data", "what"), [pytest.param(data, what, id=name) for name, data, what in FILES])
def test_outcome_of_a_signal_file(data, what):
    assert short(sound(from_file(data))) == what
    assert short(sound(read("", data))) == what


def test_every_signal_of_the_table_is_read_as_its_kind():
    for word, kind in SIGNALS.items():
        assert short(from_message(f"<promise>{word}: why</promise>")) == (f"ask:{kind}" if kind else "done")
        assert from_file(json.dumps({"status": word, "reason": "why"}).encode()).kind == STATUSES[word].kind


def test_repeated_brief_is_no_signal():
    """The command `cat` repeats the brief."""
    result = '{"status": "completed", "summary": "x"}'
    words = f"When it works, print\n\n{COMPLETE}\n\n```\n{result}\n"
    with temporary_desk() as desk:
        key = desk.create(f"Print {COMPLETE}", description=words, acceptance=result)["key"]
        desk.note(key, words)
        desk.ask(key, words)
        desk.respond(key, words)
        text = brief(desk.show(key), agent="coder", role=words)
        assert COMPLETE in text
        assert from_message(text).what == "nothing"
        assert from_message(f"{text}\n{COMPLETE}").what == "done"
        assert from_message(answers(desk.show(key))).what == "nothing"


# --- what is kept of it


def test_status_and_text_of_a_tag():
    assert from_message("<promise>input_needed:  Which\n\nport?\r\n</promise>") == Outcome(
        "ask", "input_needed", "input", "Which\n\nport?", {}, None, "promise"
    )
    assert from_message("<promise>COMPLETE: 12:30, see http://a/b</promise>").text == "12:30, see http://a/b"
    assert from_message("<promise>EJECT: a\x00b\ud800</promise>").text == "a\ufffdb?"


def test_signal_with_text_wins_over_the_same_without():
    assert from_message(f"<promise>COMPLETE: tidy</promise> {COMPLETE}").text == "tidy"


def test_result_keeps_all_fields():
    said = {"status": "needs_input", "summary": "s", "details": "d", "question": "q?", "questionContext": "c", "issues": ["i"]}
    assert from_message(json.dumps(said)) == Outcome(
        "ask",
        "needs_input",
        "input",
        "q?",
        {"text": "c", "summary": "s", "details": "d", "issues": ["i"]},
        None,
        "json",
    )
    blocked = from_message('{"status": "blocked", "summary": "the API is down", "details": null, "issues": []}')
    assert blocked == Outcome("ask", "blocked", "escalation", "the API is down", {}, "blocked_external", "json")


def test_signal_file_keeps_reasons_and_unknown_statuses():
    asked = from_file(b'{"status": "NEEDS_HUMAN", "reason": "decision_needed", "question": "A or B?"}')
    assert (asked.text, asked.reason, asked.context) == ("A or B?", "decision_needed", {})
    assert from_file(b'{"status": "NEEDS_HUMAN", "reason": "A or B?"}').reason is None
    own = from_file(b'{"status": "Needs_Review", "summary": "see it", "files": ["a"]}')
    assert own == Outcome("nothing", "Needs_Review", "", "see it", {"summary": "see it", "files": ["a"]}, None, "file")


def test_broken_outcome_has_reason_and_quote():
    unknown = from_message("<promise>FINISHED: x</promise>")
    assert unknown.text.startswith("There is no signal 'FINISHED'. There are: COMPLETE, EJECT,")
    assert unknown.context == {"final_message": "<promise>FINISHED: x</promise>"}
    both = from_message(f"I wonder.\n{COMPLETE}\n<promise>EJECT: no key</promise>\n")
    assert both.text == "The agent contradicts itself: it says 'COMPLETE' and 'EJECT' (the tags)."
    assert both.context == {"final_message": f"I wonder.\n{COMPLETE}\n<promise>EJECT: no key</promise>"}
    file = from_file(b'{"status": "DONE", ')
    assert file.context == {"signal_file": '{"status": "DONE",'}


def test_long_broken_message_shows_its_end_and_the_error():
    long = from_message(f"<promise>FINISHED: x</promise>\n{'word ' * 2000}the end")
    assert long.context["said"] == "FINISHED: x"
    assert long.context["final_message"].endswith("word the end") and len(long.context["final_message"]) == 4001


# --- several sources

FILE = {"done": b'{"status": "DONE", "summary": "file"}', "failed": b'{"status": "failed", "summary": "file"}',
        "input": b'{"status": "NEEDS_HUMAN", "reason": "file"}',
        "own": b'{"status": "NEEDS_REVIEW"}', "bad": b"{", "": None}  # fmt: skip
JSON = {"done": '{"status": "completed", "summary": "json"}', "failed": '{"status": "failed", "summary": "json"}',
        "input": '{"status": "needs_input", "question": "json"}',
        "bad": '{"status": "completed", "summary": ', "": ""}  # fmt: skip
TAG = {"done": "<promise>COMPLETE: promise</promise>", "input": "<promise>INPUT_NEEDED: promise</promise>",
       "bad": "<promise>", "": ""}  # fmt: skip
WHAT = {"done": "done", "failed": "failed", "input": "ask", "own": "nothing", "": "nothing"}


@pytest.mark.parametrize(("file", "result", "tag"), list(product(FILE, JSON, TAG)))
def test_sources_that_differ_are_broken(file, result, tag):
    outcome = sound(read(f"{TAG[tag]}\n\n{JSON[result]}" if tag != "bad" else f"{JSON[result]}\n\n{TAG[tag]}", FILE[file]))
    words = {word for word in (file, result, tag) if word}
    if "bad" in words or len(words) > 1:
        assert outcome.what == "broken"
    else:
        assert outcome.what == WHAT[words.pop() if words else ""]
        assert outcome.source == ("file" if file else "json" if result else "promise" if tag else "")
        assert outcome.text in (outcome.source, "")


def test_a_contradiction_names_both_sources():
    outcome = read(COMPLETE, b'{"status": "NEEDS_HUMAN", "reason": "which?"}')
    assert outcome.text == "The agent contradicts itself: it says 'NEEDS_HUMAN' and 'COMPLETE' (the signal file and the tag)."


# --- whatever the text is

#: Words that mean something to the reader, to be thrown together.
MARKS = ("`", "``", "```", "```\n", "\n```sh\n", "~~~", "\n\n", "\n", "    ", "\t", "> ", "- ", "| ", '"', "'", "\\", "{", "}",
         "[", "]",
         '{"', '{"status": "completed"', '"summary": "x"}', ",", ":", "<promise>", "</promise>", "COMPLETE", "INPUT_NEEDED: a",
         "<!--", "-->", "<pre>", "</pre>", "<code>", "if", " not ", "$ ", "\r", "\x00", "\ud800", "x", "word ", ". ")  # fmt: skip
noise = st.lists(st.sampled_from(MARKS), max_size=25).map("".join)
#: As above, but nothing that could close or open a fence.
calm = st.lists(st.sampled_from([mark for mark in MARKS if "`" not in mark and "~" not in mark]), max_size=25).map("".join)
letters = st.text(st.characters(exclude_characters='`~<{["\n\r', exclude_categories=("Cs",)), max_size=40)

ALWAYS = ("```sh\n{}\n```", "~~~ text\n{}\n~~~", "> {}", "- > {}", "| a | {} |", '"{}"', "`{}`", '{{"a": "{}"}}', "$ echo {}",
          "a\n\n    {}", "<!-- {} -->", "x <code>{}</code>", "I will not say {} yet.", "10:00:00 {}", "'{}'", "\\{}")  # fmt: skip
FENCED = (
    "```\n{}\n```",
    "~~~\n{}\n~~~",
    "```\n{}",
    "  ```\n  {}\n  ```",
    "- ```\n  {}\n  ```",
    "``` {} ```",
    "text ```\n{}\n```",
)


@settings(max_examples=200, deadline=None)
@given(noise)
def test_no_message_raises(text):
    sound(from_message(text))
    sound(read(text, text.encode("utf-8", "surrogatepass")))


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | st.recursive(
    st.none() | st.booleans() | st.floats() | st.sampled_from(["DONE", "x", "NEEDS_HUMAN"]),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(st.sampled_from(["status", "summary", "question", "a"]), some),
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_no_file_raises(data):
    sound(from_file(data))


@settings(max_examples=200, deadline=None)
@given(noise, st.sampled_from(ALWAYS), noise)
def test_quoted_signals_never_close(before, place, after):
    before, after = (text.replace("COMPLETE", "x").replace("completed", "x") for text in (before, after))
    assert from_message(f"{before}\n\n{place.format(COMPLETE)}\n\n{after}").what != "done"


@settings(max_examples=150, deadline=None)
@given(calm, st.sampled_from(FENCED), calm)
def test_fenced_signals_never_close(before, place, after):
    before, after = (text.replace("COMPLETE", "x").replace("completed", "x") for text in (before, after))
    assert from_message(f"{before}\n\n{place.format(COMPLETE)}\n\n{after}").what != "done"


@settings(max_examples=150, deadline=None)
@given(
    st.lists(letters), st.sampled_from(["{}", "Ready. {}", "Ready! {} Bye", "**{}**", "- {}", "{} \r", "# {}"]), st.lists(letters)
)
def test_plain_signals_always_close(before, place, after):
    text = "\n".join([*before, "Ready.", place.format(COMPLETE), *after])
    assert from_message(text).what == "done"


strings = st.text(
    st.sampled_from('{}[]"\\`<>/:, \nabx') | st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), max_size=30
)
values = st.recursive(
    st.none() | st.integers(-9, 9) | strings, lambda v: st.lists(v, max_size=2) | st.dictionaries(strings, v, max_size=2)
)


@settings(max_examples=100, deadline=None)
@given(st.lists(letters), strings, values, st.sampled_from([None, 2]), st.booleans(), st.lists(letters))
def test_result_with_any_content_is_found(before, summary, details, indent, fenced, after):
    said = json.dumps({"details": details, "status": "completed", "summary": f"x{summary}"}, indent=indent, ensure_ascii=False)
    said = f"```json\n{said}\n```" if fenced else said
    outcome = from_message("\n".join([*before, "Ready.", said, *after]))
    assert (outcome.what, outcome.text, outcome.source) == ("done", f"x{summary}".strip(), "json")


@settings(max_examples=100, deadline=None)
@given(values, letters)
def test_ordinary_json_is_no_signal(value, text):
    assert from_message(f"{text}\n{json.dumps({'a': value, 'b': COMPLETE}, ensure_ascii=False)}\n{text}").what == "nothing"


# --- however much of it

HOSTILE: dict[str, Callable[[int], str]] = {
    "tags": lambda n: COMPLETE * (n // 27),
    "tags on lines": lambda n: f"{COMPLETE}\n" * (n // 28),
    "different tags": lambda n: "".join(f"<promise>EJECT: {i}</promise>" for i in range(n // 30)),
    "openings": lambda n: "<promise>" * (n // 9),
    "escaped openings": lambda n: "\\<promise>" * (n // 10),
    "quoted tags": lambda n: f'"{COMPLETE * (n // 27)}"',
    "tags between quotes": lambda n: f'" {COMPLETE} ' * (n // 30),
    "braces": lambda n: "{" * n + '"status"',
    "brackets": lambda n: "[" * n + '"status"',
    "unfinished objects": lambda n: '{"status":' * (n // 10),
    "unfinished objects, apart": lambda n: '{"status":\n\n' * (n // 12),
    "bad objects": lambda n: '{"status":x ' * (n // 12),
    "results": lambda n: '{"status": "completed", "summary": "x"}\n' * (n // 40),
    "arrays": lambda n: '["status",' * (n // 10),
    "escapes": lambda n: '{"status": x "' + '\\"' * (n // 2),
    "backticks": lambda n: "` `` " * (n // 5) + "<promise>",
    "longer and longer backticks": lambda n: " ".join("`" * i for i in range(1, int((2 * n) ** 0.5))) + "<promise>",
    "backticks and tags": lambda n: "` `<promise> ``" * (n // 15),
    "backslashes": lambda n: "\\" * n + "`<promise>",
    "fences": lambda n: "```\n" * (n // 4) + "<promise>",
    "nested fences": lambda n: "```x\n" * (n // 5) + "<promise>",
    "spaces": lambda n: " " * n + "<promise>",
    "spaces in tags": lambda n: ("<promise" + " " * 99) * (n // 107) + "<promise>",
    "empty lines": lambda n: "x" + "\n" * n + "<promise>",
    "bullets": lambda n: "- " * (n // 2) + "<promise>",
    "html": lambda n: "x <code> <!-- <pre>" * (n // 19) + "<promise>",
    "comments": lambda n: "\n<!-- x" * (n // 7) + "<promise>",
    "one line": lambda n: "x" * n + f"\n\n{COMPLETE}",
    "a log": lambda n: '12:00:00 {"status": "ok"}\n' * (n // 26) + COMPLETE,
}


def measured(text: str) -> float:
    best = 9e9
    for _ in range(2):
        start = time.process_time()
        from_message(text)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("shape", HOSTILE)
def test_time_is_linear_in_the_length(shape):
    """Four times the text: a factor of 4 is linear, 16 is quadratic."""
    ratios = []
    for _ in range(4):
        ratios.append(measured(HOSTILE[shape](120_000)) / measured(HOSTILE[shape](30_000)))
        if ratios[-1] < 9:
            return
    raise AssertionError(f"{shape}: {ratios}")


@pytest.mark.long
def test_ten_megabytes_are_read_to_the_end():
    log = f"collected 3 items, {'x' * 900}, all of them `passed` in a moment\n" * 10_400
    assert from_message(f"{log}\n{COMPLETE}").what == "done"
    assert from_message(f"```\n{log}\n{COMPLETE}").what == "nothing"
