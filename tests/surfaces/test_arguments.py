"""Every argument of every verb arrives in its row, on every surface that has the verb."""

from __future__ import annotations

import inspect

import pytest

from tests.surfaces.argument_values import CASES, PARTS, After, Scene, arguments, expected
from tests.surfaces.calls import LACKS, NOWHERE, SAID, SURFACES, lacks
from yourturn.core.actions import ABOUT, VERBS, say
from yourturn.core.errors import Invalid


def test_no_argument_of_a_verb_has_a_name_that_an_action_uses_itself():
    own = {name for name, p in inspect.signature(say).parameters.items() if p.kind is p.KEYWORD_ONLY}
    assert own <= ABOUT
    for verb, about in VERBS.items():
        assert not ABOUT & about.args.keys(), verb


@pytest.mark.parametrize("verb", sorted(SAID))
def test_every_argument_has_a_value_that_must_arrive(verb):
    """A new argument needs a row in argument_values.py: then each surface passes it, or calls.py tells why it does not."""
    seen = {name for case in CASES if case.verb == verb for name in case.seen}
    everywhere = lacks("*", verb)
    assert set(arguments(verb)) - seen == set(everywhere), verb
    assert seen <= set(arguments(verb))


def test_what_is_left_out_is_a_surface_an_argument_and_a_reason():
    assert set(VERBS) == SAID | NOWHERE.keys()
    for (surface, verb), names in LACKS.items():
        assert surface in {*SURFACES, "*"}
        assert verb in SAID
        assert set(names) <= set(arguments(verb)), (surface, verb)
        assert all(len(why) > 10 for why in names.values())
        assert surface == "*" or verb in SURFACES[surface][1], (surface, verb)


def _rows():
    for surface, (_, verbs) in SURFACES.items():
        for case in CASES:
            if case.verb in verbs and case.seen.keys() - lacks(surface, case.verb).keys():
                yield pytest.param(surface, case, id=f"{surface}-{case.verb}-{case.name}")


@pytest.mark.parametrize(("surface", "case"), list(_rows()))
def test_it_arrives(sqlite_site, tmp_path, surface, case):
    scene = Scene(sqlite_site.desk)
    case.stage(scene)
    missing = lacks(surface, case.verb)
    args = without(case.verb, case.args(scene), missing)
    code = SURFACES[surface][0](sqlite_site, tmp_path, scene, case.verb, args)
    assert code == case.refused
    if case.refused:
        return
    after = After(scene, case)
    for name, (look, _) in case.seen.items():
        if name not in missing:
            assert look(after) == expected(case, scene, name), name


def without(verb, args, missing):
    """The arguments, without what the surface leaves out; parts of an argument likewise."""
    found = {}
    for name, value in args.items():
        if (verb, name) in PARTS:
            parts = value if isinstance(value, list) else [value]
            kept = [{n: v for n, v in part.items() if f"{name}.{n}" not in missing} for part in parts]
            found[name] = kept if isinstance(value, list) else kept[0]
        elif name not in missing:
            found[name] = value
    return found


def test_a_question_without_a_kind_is_refused(site):
    """It would be lost: nothing is made."""
    before = len(site.desk.list())
    for name in ("question", "reviewer"):
        with pytest.raises(Invalid, match=f"{name} goes with awaiting"):
            site.desk.create("A", **{name: "ana"})
        assert site.post("/api/tasks", {"title": "A", name: "ana"}).code == "invalid"
    assert len(site.desk.list()) == before
