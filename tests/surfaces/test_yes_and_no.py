"""Yes is yes on every surface: each kind of question × each form of answer × words × surfaces, drawn from the table of answers.

Every combination that can be asked is answered with yes and with no on every surface, and a word that is neither is refused and
changes nothing. On the Python surface every word of the parser is tried; the others, which are slower, try a few of each.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests import forked_commands
from tests.fixtures.server import Site
from tests.surfaces.argument_values import Scene
from tests.surfaces.calls import web as in_the_browser
from yourturn.client.remote import RemoteClient
from yourturn.core.answers import ANSWERS, NO, VERDICT_FORMS, YES, verdict_of, way
from yourturn.core.errors import Invalid, Precondition
from yourturn.core.rules import outcome

#: No verdict, on any surface. Some were taken for a yes once.
NEITHER = ("nope", "cancel", "banana", "yes please", "No, do not delete them", "-", "on", "off", "sure", "continue", "stop", "2")
LANDS = {"done": "done", "cancelled": "cancelled", "back": "ready"}
#: Values of the forms that take more than a yes.
VALUES = {"text": "so", "choice": "a", "number": "7"}


def ask(site: Site, kind: str, form: str) -> str:
    """A question that holds a ready task up."""
    options = {"options": ["a", "b"]} if form == "choice" else {}
    task = site.desk.create("work")["key"]
    return str(site.desk.flag(task, "Now?", None, kind, response_type=form, **options)["questions"][-1]["id"])


def closed(site: Site, asked: str) -> tuple[str, Any, str]:
    q = site.desk.show(asked)
    return q["response"]["verdict"], q["response"]["value"], site.desk.show(q["task"])["state"]


def expected(kind: str, form: str, yes: bool) -> tuple[str, Any, str] | None:
    """What the table says; None where the kind has no such answer."""
    found = way(kind, form, yes)
    return None if found is None else (found.verdict, found.value, LANDS[outcome(kind, found.verdict)])


def untouched(site: Site, asked: str) -> bool:
    q = site.desk.show(asked)
    return q["status"] == "pending" and site.desk.show(q["task"])["state"] == "human"


# --- the words ------------------------------------------------------------------------------------------------------------


def test_list_of_yes_and_no_words():
    """As published; a word that is added or lost is noticed."""
    assert YES == ("yes", "y", "true", "approve", "approved", "accept", "allow", "ok", "1")
    assert NO == ("no", "n", "false", "reject", "rejected", "deny", "denied", "decline", "0")
    assert not set(YES) & set(NO)
    for word in YES:
        assert verdict_of(f" {word.upper()}! ") is True
    for word in NO:
        assert verdict_of(f"{word.title()}.") is False
    assert verdict_of(True) is True and verdict_of(False) is False and verdict_of(1) is True and verdict_of(0) is False
    for word in (*NEITHER, "", None, [], {}, ["yes"], {"value": "yes"}, 1.5):
        assert verdict_of(word) is None, word


@pytest.mark.parametrize(("kind", "form"), [pair for pair in ANSWERS if pair[1] in VERDICT_FORMS])
def test_every_word_on_every_kind(sqlite_site, kind, form):
    desk = sqlite_site.desk
    for word in (*YES, *NO, True, False):
        asked = ask(sqlite_site, kind, form)
        wanted = expected(kind, form, bool(verdict_of(word)))
        if wanted is None:
            with pytest.raises(Precondition):
                desk.answer(asked, word)
            assert untouched(sqlite_site, asked)
            continue
        told = desk.answer(asked, word)
        assert closed(sqlite_site, asked) == wanted, (kind, form, word)
        assert told["task_state"] == wanted[2], "the reply says where it led"
    asked = ask(sqlite_site, kind, form)
    for word in (*NEITHER, "", [], {"a": 1}):
        for given in ({"value": word}, {"text": word}) if isinstance(word, str) and word else ({"value": word},):
            with pytest.raises(Invalid) as error:
                desk.answer(asked, **given)
            if kind != "permission" or not isinstance(word, dict):
                assert "approve" in str(error.value), "the allowed words are named"
                assert ("deny" in str(error.value)) == (way(kind, form, False) is not None), "only those"
    assert untouched(sqlite_site, asked)


def test_a_verdict_and_a_value_that_contradict_each_other_are_refused(sqlite_site):
    for kind, form in ANSWERS:
        if form not in VERDICT_FORMS:
            continue
        asked = ask(sqlite_site, kind, form)
        no = way(kind, form, False)
        with pytest.raises((Invalid, Precondition)):
            sqlite_site.desk.answer(asked, "yes", verdict="rejected")
        if no is None or no.verdict == "rejected":
            with pytest.raises((Invalid, Precondition)):
                sqlite_site.desk.answer(asked, "no", verdict="approved")
        assert untouched(sqlite_site, asked), (kind, form)


# --- the surfaces ---------------------------------------------------------------------------------------------------------


def _python(site: Site, folder: Path, asked: str, word: str) -> bool:
    try:
        site.desk.answer(asked, word)
    except (Invalid, Precondition):
        return False
    return True


def _remote(site: Site, folder: Path, asked: str, word: str) -> bool:
    client = RemoteClient(site.url, site.token("admin"))
    try:
        client.respond(asked, word)
    except (Invalid, Precondition):
        return False
    finally:
        client.close()
    return True


def _http(site: Site, folder: Path, asked: str, word: str) -> bool:
    reply = site.post(f"/api/questions/{asked}/answer", {"value": word})
    assert reply.status in (200, 409, 422), reply.raw
    return bool(reply.status == 200)


def _jobs(site: Site, folder: Path, asked: str, word: str) -> bool:
    form = site.desk.show(asked)["response_type"]
    reply = site.post(f"/api/questions/{asked}/answer", {"response": {"type": form, "value": word}})
    assert reply.status in (200, 409, 422), reply.raw
    return bool(reply.status == 200)


def _command(site: Site, folder: Path, asked: str, word: str, verb: str = "respond") -> bool:
    env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
    env |= {"YOURTURN_DB": site.address, "USER": "ana", "HOME": str(folder)}
    done = forked_commands.turn([verb, asked, word, "--json"] if word else [verb, asked, "--json"], folder, env)
    assert "Traceback" not in done.stderr and done.returncode in (0, 4, 6), done.stderr
    return done.returncode == 0


SURFACES = {"python": _python, "remote": _remote, "http": _http, "jobs": _jobs, "command": _command}


@pytest.mark.parametrize("surface", SURFACES)
def test_yes_no_and_neither_on_every_surface(sqlite_site, tmp_path, surface):
    say = SURFACES[surface]
    for kind, form in ANSWERS:
        if form not in VERDICT_FORMS or (surface == "jobs" and (kind, form) == ("permission", "boolean")):
            continue
        for word in ("Yes", "deny", "nope"):
            asked, yes = ask(sqlite_site, kind, form), verdict_of(word)
            wanted = None if yes is None else expected(kind, form, yes)
            assert say(sqlite_site, tmp_path, asked, word) == (wanted is not None), (kind, form, word)
            assert (closed(sqlite_site, asked) == wanted) if wanted else untouched(sqlite_site, asked), (kind, form, word)


def test_values_and_a_no_where_more_than_a_yes_is_asked_for(sqlite_site, tmp_path):
    for kind, form in ANSWERS:
        if form in VERDICT_FORMS:
            continue
        for surface, say in SURFACES.items():
            asked = ask(sqlite_site, kind, form)
            assert say(sqlite_site, tmp_path, asked, VALUES[form]), (surface, kind, form)
            assert closed(sqlite_site, asked)[::2] == ("approved", "ready")
        asked = ask(sqlite_site, kind, form)
        assert _command(sqlite_site, tmp_path, asked, "not now", "reject")
        assert closed(sqlite_site, asked) == expected(kind, form, False)


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_the_two_verbs_of_people_say_yes_and_no_to_every_form(sqlite_site, verb):
    for kind, form in ANSWERS:
        asked, wanted = ask(sqlite_site, kind, form), expected(kind, form, verb == "approve")
        if wanted is None or (verb == "approve" and form in ("choice", "number")):
            with pytest.raises((Invalid, Precondition)):
                getattr(sqlite_site.desk, verb)(asked)
            assert untouched(sqlite_site, asked), (kind, form)
        else:
            getattr(sqlite_site.desk, verb)(asked)
            assert closed(sqlite_site, asked) == wanted, (kind, form)


def test_buttons_of_a_page_have_the_labels_of_the_table(sqlite_site, tmp_path):
    """Each button of each form, pressed: what is recorded is the row of the table that it was drawn from."""
    for (kind, form), ways in ANSWERS.items():
        for one in ways:
            asked = ask(sqlite_site, kind, form)
            scene = Scene(sqlite_site.desk)
            scene.question = asked
            args: dict[str, Any] = {"text": "because"} if one.why_needed else {}
            if one.name == "answer":
                args |= {"option": "0"} if form == "choice" else {"value": VALUES[form]}
                args["verdict"] = "approved"
            elif form == "boolean":
                args["verdict"] = f"approved {one.name}"
            else:
                args["verdict"] = one.verdict
            assert in_the_browser(sqlite_site, tmp_path, scene, "answer", args) == "", (kind, form, one.name)
            verdict, value, state = closed(sqlite_site, asked)
            assert (verdict, state) == (one.verdict, LANDS[outcome(kind, one.verdict)]), (kind, form, one.name)
            if one.name != "answer":
                assert value == one.value


def test_a_form_without_a_button_is_neither_yes_nor_no(sqlite_site, tmp_path):
    for kind, form in ANSWERS:
        if form not in VERDICT_FORMS:
            continue
        scene = Scene(sqlite_site.desk)
        scene.question = ask(sqlite_site, kind, form)
        reply = in_the_browser(sqlite_site, tmp_path, scene, "answer", {"verdict": "", "text": "No, do not do this"})
        assert reply.startswith("422") and untouched(sqlite_site, scene.question), (kind, form)


def test_answer_that_cancels_is_announced_before(sqlite_site):
    for kind, form in ANSWERS:
        asked = ask(sqlite_site, kind, form)
        ways = sqlite_site.get(f"/api/questions/{asked}/answers").json["answers"]
        assert all(f" {asked}" in way["command"] for way in ways)
        told = {e["answer"]: e["state"] for e in ways}
        wanted = {one.name: LANDS[outcome(kind, one.verdict)] for one in ANSWERS[kind, form]}
        assert told == wanted, (kind, form)
