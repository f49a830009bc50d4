"""Bad input of every kind is refused at the edge, with the field's name, before anything is loaded."""

from __future__ import annotations

import pytest

from yourturn.core import canonical_json, fields, settings
from yourturn.core.actions import VERBS, say
from yourturn.core.errors import Invalid
from yourturn.core.model import HOUR, MINUTE, SECOND, Who

from .kit import everything

ANA = Who("human:ana", "admin")
SURROGATE = "broken \ud800 text"
HUGE = "x" * 10_000_000


def deep(levels):
    value = "bottom"
    for _ in range(levels):
        value = [value]
    return value


BAD_LINES = [None, 5, b"bytes", "", "  ", "two\nlines", "esc \x1b[31m", "nul \x00", "bell \x07", "c1 \x9b", "del \x7f"]
BAD_LINES += ["para\u2029graph", "bidi \u202e override", "isolate \u2066", SURROGATE, "x" * 301, HUGE]


@pytest.mark.parametrize("value", BAD_LINES, ids=lambda v: ascii(v)[:20])
def test_a_line_is_one_plain_line(value):
    with pytest.raises(Invalid, match="title"):
        fields.line()("title", value)


@pytest.mark.parametrize("value", ["Add login", "ログイン　機能", "naïve café", "👩‍💻 emoji", "a\u00a0b", "نص عربي", "x" * 300])
def test_a_line_is_anything_that_people_write(value):
    assert fields.line()("title", f" {value}\n") == value


@pytest.mark.parametrize("value", [None, 5, "nul \x00", SURROGATE, "x" * 1_000_001, HUGE], ids=lambda v: ascii(v)[:20])
def test_free_text_is_text_that_every_database_can_carry(value):
    with pytest.raises(Invalid, match="description"):
        fields.text()("description", value)


def test_free_text_keeps_what_was_written():
    written = "line\n\ttab \x1b[31m \u202e bidi\r\n"
    assert fields.text()("description", written) == written
    with pytest.raises(Invalid, match="must not be empty"):
        fields.text(blank=False)("text", " \n\t ")


@pytest.mark.parametrize("value", [None, 5, "", "two words", "-dash", "../up", "/root", "a\nb", "nul\x00", SURROGATE, "x" * 101])
def test_a_name_is_one_word(value):
    with pytest.raises(Invalid, match="worker"):
        fields.name("worker", value)


@pytest.mark.parametrize("value", ["w1", "ana@example.com", "agent:coder", "feature/login", "jürgen"])
def test_a_name_can_be(value):
    assert fields.name("worker", value) == value


@pytest.mark.parametrize(
    ("given", "micros"),
    [
        ("90s", 90 * SECOND), ("30m", 30 * MINUTE), ("1h30m", 90 * MINUTE), ("1.5h", 90 * MINUTE), (" 2 d ", 48 * HOUR),
        ("250ms", 250_000), ("45", 45 * SECOND), (0.5, SECOND // 2), ("1w", 168 * HOUR), ("10 MIN", 10 * MINUTE),
    ],
)  # fmt: skip
def test_a_length_of_time(given, micros):
    assert fields.duration(given) == micros


NO_TIME = ["", " ", "soon", "-5m", "5 years", "1h-", True, None, [], float("nan"), float("inf"), -1, 10**30]
NO_TIME += ["9" * 13, "999999999999w"]


@pytest.mark.parametrize("given", NO_TIME, ids=repr)
def test_no_length_of_time(given):
    with pytest.raises(Invalid, match="timeout must be a length of time"):
        fields.span("timeout", given)


def test_nothing_is_no_length_of_time():
    with pytest.raises(Invalid, match="longer than nothing"):
        fields.span("timeout", "0s")


@pytest.mark.parametrize(
    ("checker", "good", "bad"),
    [
        (fields.integer(1, 100), {"7": 7, 100: 100, 1: 1}, [0, 101, "x", True, 1.5, None, "9" * 30, "1 2"]),
        (fields.priority, {0: 0, "P4": 4, "p1": 1, "2": 2}, [-1, 5, "P5", "", "P", None, "high"]),
        (fields.fraction, {0: 0.0, "0.5": 0.5, 1: 1.0}, [-0.1, 1.1, "x", None, float("nan"), 10**400]),
        (fields.flag, {"yes": True, "off": False, 1: True, False: False, " TRUE ": True}, ["maybe", 2, None, [], ""]),
        (fields.project_key, {"proj": "PROJ", "A1_": "A1_"}, ["", "1A", "A-B", "é", "A" * 21, None, "../A", "A\n"]),
        (fields.instant, {0: 0, 1_790_000_000_000_000: 1_790_000_000_000_000}, [-1, 10**20, "tomorrow", None]),
        (fields.choice("a", "b"), {"a": "a"}, ["c", None, [], {}, "A"]),
    ],
)  # fmt: skip
def test_small_values(checker, good, bad):
    assert {given: checker("field", given) for given in good} == good
    for value in bad:
        with pytest.raises(Invalid, match="field"):
            checker("field", value)


def test_labels_are_unique_words_in_the_order_given():
    assert fields.names("labels", "b, a b") == fields.names("labels", ["b", "a", "b"]) == ["b", "a"]
    for bad in (5, [5], ["two words"], [f"l{i}" for i in range(200_000)]):
        with pytest.raises(Invalid, match="labels"):
            fields.names("labels", bad)


def test_options_are_words_or_objects_with_unique_ids():
    found = fields.options("options", ["jwt", {"id": "s", "label": "Sessions", "value": 2, "description": "on the server"}])
    assert found == [
        {"id": "jwt", "label": "jwt", "value": "jwt", "description": ""},
        {"id": "s", "label": "Sessions", "value": 2, "description": "on the server"},
    ]
    bad = ["jwt", 5, [5], [{}], [{"value": {"a": 1}}], [{"value": ["a"]}], ["a", "a"], [""], ["x" * 101], ["a\nb"], [SURROGATE]]
    for value in [*bad, [{"value": float("nan")}], [str(i) for i in range(50_000)]]:
        with pytest.raises(Invalid, match="options"):
            fields.options("options", value)


# --- JSON -------------------------------------------------------------------------------------------------------------

NOT_JSON = [
    float("nan"), float("inf"), -float("inf"), SURROGATE, "nul \x00", {1: "a"}, {SURROGATE: 1}, {"a": {"b": float("nan")}},
    b"bytes", {1, 2}, object(), deep(40), 10**5000, {"a": 2**2000},
]  # fmt: skip


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda v: type(v).__name__)
def test_what_json_cannot_say_exactly_is_refused(value):
    for checker in (
        canonical_json.check,
        lambda v, what: fields.anything(what, v),
        lambda v, what: fields.mapping(what, {"x": v}),
    ):
        with pytest.raises(Invalid, match="metadata"):
            checker(value, "metadata")


def test_json_is_kept_as_it_is_up_to_a_size_and_a_depth():
    value = {"b": [1, 2.5, None, True, "ü\n"], "a": {"nested": deep(29)}}
    assert fields.anything("value", value) == value == canonical_json.loads(canonical_json.dumps(value))
    for checker, given in ((fields.anything, HUGE), (fields.mapping, HUGE), (fields.mapping, {"a": [HUGE[:600_000]] * 2})):
        with pytest.raises(Invalid, match="context is too long"):
            checker("context", given)
    for bad in (5, [], True):
        with pytest.raises(Invalid, match="must be an object"):
            fields.mapping("context", bad)
    assert fields.mapping("context", "words") == {"text": "words"}


BROKEN = ['{"a": 1, "a": 2}', '{"x": {"a": 1, "a": 1}}', "NaN", "[Infinity]", "-Infinity", "1e999", "{", "", "'a'"]
BROKEN += ["[1,]", '"\\ud800"', "[" * 100_000, "[" * 40 + "]" * 40, "1" * 5000, '"nul \\u0000"', "{} {}"]


@pytest.mark.parametrize("text", BROKEN, ids=lambda t: t[:16])
def test_broken_json_is_refused(text):
    with pytest.raises(Invalid, match="body"):
        canonical_json.loads(text, "body")


def test_the_same_value_has_the_same_digest_on_every_machine():
    assert canonical_json.dumps({"b": 1, "a": ["ü", None, 1.5]}) == '{"a":["ü",null,1.5],"b":1}'
    assert canonical_json.digest({"b": 1, "a": 2}) == canonical_json.digest({"a": 2, "b": 1})
    assert canonical_json.digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert canonical_json.digest([1]) != canonical_json.digest(["1"])


def test_every_part_of_an_event_is_in_its_hash():
    parts = ["prev", "PROJ-1", 1, 5, "human:ana", "note", "{}"]
    hashes = {canonical_json.link(*parts)}
    for i in range(len(parts)):
        changed = [*parts]
        changed[i] = 9 if isinstance(parts[i], int) else f"{parts[i]}x"
        hashes.add(canonical_json.link(*changed))
    assert len(hashes) == len(parts) + 1


# --- the vocabulary ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_takes_what_it_does_not_know(verb):
    with pytest.raises(Invalid, match=f"{verb} takes no 'nonsense'"):
        say(verb, ANA, nonsense=1)
    for name in VERBS[verb].required:
        with pytest.raises(Invalid, match=f"{verb} needs"):
            say(verb, ANA, **{other: None for other in VERBS[verb].required if other != name})


def test_settings_are_checked_too():
    for name, value in (("nonsense", 1), ("review", "soon"), ("lease", "0s"), ("max_retries", 0), ("approvals", "all")):
        with pytest.raises(Invalid):
            settings.check(name, value)
    assert settings.check("review", "ask") == "ask" and settings.check("review", "auto") == 0


def test_bad_input_reaches_no_database(bench):
    """Whatever the field: Invalid, and nothing was written."""
    key = bench.ready()
    before = everything(bench.desk)
    for bad in ("nul \x00", SURROGATE, HUGE):
        calls = [
            lambda b=bad: bench.desk.create(b),
            lambda b=bad: bench.desk.create("T", description=b),
            lambda b=bad: bench.desk.update(key, acceptance=b),
            lambda b=bad: bench.desk.note(key, b),
            lambda b=bad: bench.desk.ask(key, b),
            lambda b=bad: bench.desk.ask(key, "?", context={"diff": b}),
            lambda b=bad: bench.desk.ask(key, "?", options=[b, "other"]),
            lambda b=bad: bench.desk.ask(key, "?", kind="permission", action={"tool": b}),
            lambda b=bad: bench.desk.flag(key, b),
            lambda b=bad: bench.desk.cancel(key, b),
            lambda b=bad: bench.desk.claim(key, b),
        ]
        for call in calls:
            with pytest.raises(Invalid):
                call()
    question = bench.desk.flag(key, "?", kind="input")
    waiting = everything(bench.desk)
    for bad in ("nul \x00", SURROGATE, HUGE, {"a": float("nan")}, deep(40), 10**5000):
        with pytest.raises(Invalid):
            bench.desk.answer(question, bad)
    assert everything(bench.desk) == waiting and len(waiting["tasks"]) == len(before["tasks"])
