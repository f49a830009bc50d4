"""An approval covers exactly the shown call, and one run of it, also if the program is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.approval.person import edit
from yourturn.approval.decorator import requires_approval
from yourturn.core.errors import KeyReused, StillWaiting

# --- killed programs ---------------------------------------------------------------------------------------------

_PROGRAM = """
import os, signal, sys
import yourturn

@yourturn.requires_approval(key="pay {amount}")
def pay(amount):
    with open("paid", "a") as ledger:
        ledger.write(f"{amount}\\n")
    if os.environ.get("DIE"):
        os.kill(os.getpid(), signal.SIGKILL)

try:
    pay(int(sys.argv[1]))
except yourturn.core.errors.YourturnError as error:
    print("\\n".join(error.lines()))
    sys.exit(error.exit_code)
"""


@pytest.mark.processes
def test_restarted_program_runs_once(address, open_desk, tmp_path):
    desk = open_desk(fake=False)
    (tmp_path / "payer.py").write_text(_PROGRAM)
    env = {**os.environ, "YOURTURN_DB": address, "USER": "ana"}

    def start(**more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "payer.py", "5"], cwd=tmp_path, env={**env, **more}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    with start() as waiting:  # killed while it waits: the question stays
        for _ in desk.watch(seconds=30):
            if desk.inbox():
                break
        waiting.kill()
    (q,) = desk.inbox()
    assert (q["text"], q["asked_by"]) == ("Run payer.pay(amount=5)?", "agent:payer")
    desk.approve(q["id"])
    with start(DIE="1") as dies:  # finds the answer, runs, and is killed in the middle
        assert (dies.wait(30), dies.stderr.read()) == (-9, "")
    with start() as again:  # the yes was for one run
        out, err = again.communicate(timeout=30)
    assert (again.returncode, err) == (4, "")
    assert "payer.pay has not run" in out and "was used already" in out
    assert (tmp_path / "paid").read_text() == "5\n"
    assert len(desk.list()) == 1


# --- exact arguments -----------------------------------------------------------------------------------

_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcé ", max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
_settings = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def exactly(value: Any) -> str:
    """Tells 1 from 1.0 and True, which are equal in Python."""
    return json.dumps(value, sort_keys=True)


@_settings
@given(a=_json, rest=st.lists(_json, max_size=2), e=_json, more=st.dictionaries(st.sampled_from("xyz"), _json, max_size=2))
def test_shown_arguments_are_the_ones_that_run(desk, a, rest, e, more):
    number = len(desk.list())

    @requires_approval(desk=desk, wait=0, key=f"call {number}")
    def call(a, /, *rest, e=None, **more):
        return {"a": a, "rest": list(rest), "e": e, "more": more}

    with pytest.raises(StillWaiting) as caught:
        call(a, *rest, e=e, **more)
    q = desk.show(caught.value.question)
    desk.approve(q["id"])
    ran = call(a, *rest, e=e, **more)
    assert exactly(ran) == exactly(q["action"]["arguments"]) == exactly({"a": a, "rest": rest, "e": e, "more": more})


@_settings
@example(shown=1, called=True)
@example(shown=1, called=1.0)
@example(shown=[], called=[])
@given(shown=_json, called=_json)
def test_approval_does_not_cover_another_call(desk, shown, called):
    """Values that are equal in Python are different calls: 1, 1.0 and True."""
    number, ran = len(desk.list()), []
    call = requires_approval(desk=desk, wait=0, key=f"call {number}")(lambda it: ran.append(it))
    with pytest.raises(StillWaiting) as caught:
        call(shown)
    desk.approve(caught.value.question)
    if exactly(shown) == exactly(called):
        call(called)
        assert exactly(ran) == exactly([shown])
    else:
        with pytest.raises(KeyReused):
            call(called)
        assert ran == []


@_settings
@example(shown=1, edited=True)
@example(shown=1, edited=1.0)
@given(shown=_json, edited=_json)
def test_edited_argument_is_the_one_that_runs(desk, shown, edited):
    number = len(desk.list())
    call = requires_approval(desk=desk, wait=0, key=f"call {number}")(lambda it: it)
    with pytest.raises(StillWaiting) as caught:
        call(shown)
    edit(desk, it=edited)(desk.show(caught.value.question))
    assert exactly(call(shown)) == exactly(edited)
