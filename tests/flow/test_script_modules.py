"""Modules beside a script: separate for each folder, and reloaded after a change."""

from __future__ import annotations

import importlib.util
import sys
from datetime import datetime

import pytest

from yourturn.core.errors import Invalid
from yourturn.flow import script
from yourturn.flow.script_modules import PREFIX


def lay(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, body in files.items():
        (folder / f"{name}.py").write_text(body)
    return folder


MAIN = "from helpers import WHO\n\ndef workflow(prompt):\n    pause('Go on?')\n    return WHO\n"


def test_two_scripts_with_a_helper_of_the_same_name(stage, tmp_path):
    a = lay(tmp_path / "a", main=MAIN, helpers="WHO = 'a'\n")
    b = lay(tmp_path / "b", main=MAIN, helpers="WHO = 'b'\n")
    first, second = stage(a / "main.py").run(), stage(b / "main.py").run()
    assert (first.approve().summary, second.approve().summary) == ("a", "b")
    assert "helpers" not in sys.modules and str(a) not in sys.path


LAZY = """
def workflow(prompt):
    import helpers.deep as deep
    from helpers import deep as again
    return deep.WHO + again.WHO
"""


def test_packages_and_late_imports_too(stage, tmp_path):
    for name in ("a", "b"):
        lay(tmp_path / name, main=LAZY)
        other = f"import words\nWHO = words.W + '{name}'\n"
        lay(tmp_path / name / "helpers", __init__="", deep="from .other import WHO\n", other=other)
        lay(tmp_path / name, words=f"W = '{name.upper()}'\n")
    assert [stage(tmp_path / name / "main.py").run().summary for name in ("a", "b")] == ["AaAa", "BbBb"]


def test_a_helper_that_was_changed_is_read_again(stage, tmp_path):
    """Also of the same length, and in the same second."""
    folder = lay(tmp_path / "a", main=MAIN, helpers="WHO = 'v1'\n")
    s = stage(folder / "main.py").run()
    (folder / "helpers.py").write_text("WHO = 'v2'\n")
    assert s.approve().summary == "v2"
    assert not (folder / "__pycache__").exists(), "nothing is left beside the script"


def test_a_helper_that_was_not_changed_is_loaded_once(stage, tmp_path):
    helpers = f"from pathlib import Path\nPath({str(tmp_path / 'log')!r}).open('a').write('x')\nWHO = 1\n"
    folder = lay(tmp_path / "a", main=MAIN, helpers=helpers)
    stage(folder / "main.py").run().approve()
    assert (tmp_path / "log").read_text() == "x"


def test_modules_are_removed(stage, tmp_path):
    before = {name for name in sys.modules if name.startswith(PREFIX)}
    folder = lay(tmp_path / "a", main=MAIN, helpers="WHO = 'v1'\n")
    for number in range(5):
        (folder / "helpers.py").write_text(f"WHO = 'v{number + 2}'\n")
        stage(folder / "main.py").run().approve()
    left = {name for name in sys.modules if name.startswith(PREFIX)} - before
    assert len(left) == 2, "one folder, and its helpers as they are now"


def test_a_script_in_a_package(stage, tmp_path):
    main = "from .helpers import WHO\nfrom flows.helpers import WHO as W2\n\ndef workflow(p):\n    return WHO + W2\n"
    lay(tmp_path / "flows", __init__="", main=main, helpers="WHO = 'x'\n")
    assert stage(tmp_path / "flows" / "main.py").run().summary == "xx"


def test_error_in_a_helper_names_its_line(tmp_path):
    lay(tmp_path, main=MAIN, helpers="def broken(:\n")
    with pytest.raises(Invalid) as error:
        script.must_read("main.py", tmp_path)
    assert error.value.message == "main.py cannot be loaded" and "line 1: SyntaxError" in error.value.reason
    lay(tmp_path, main="import nothing_of_that_name\n")
    with pytest.raises(Invalid, match=r"cannot be loaded: line 1: ModuleNotFoundError: No module named 'nothing_of_that_name'"):
        script.must_read("main.py", tmp_path)


DATACLASS = """
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, get_type_hints

class Color(Enum):
    RED = "red"

@dataclass
class Inner:
    n: int = 1

@dataclass
class Outer:
    inner: Inner = field(default_factory=Inner)
    color: Color = Color.RED

class Row(NamedTuple):
    a: int

def workflow(prompt):
    pause("Go on?")
    return f"{Outer().inner.n} {get_type_hints(Outer)['inner'] is Inner} {Row(2).a}"
"""


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_dataclasses_load(stage, future):
    assert stage(future + DATACLASS).run().approve().summary == "1 True 2"


MODELS = """
from pydantic import BaseModel

class Inner(BaseModel):
    n: int = 1

class Outer(BaseModel):
    inner: "Inner"

def workflow(prompt):
    got = step(lambda: Outer(inner=Inner(n=3)).model_dump())
    pause("Go on?")
    return str(Outer(**got).inner.n)
"""


@pytest.mark.skipif(importlib.util.find_spec("pydantic") is None, reason="pydantic is not installed")
@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_nested_models_load(stage, future):
    assert stage(future + MODELS).run().approve().summary == "3"


def test_a_workflow_takes_the_prompt(tmp_path):
    lay(tmp_path, main="def workflow():\n    pass\n")
    with pytest.raises(Invalid, match=r"workflow in main.py does not take the prompt"):
        script.must_read("main.py", tmp_path)


# --- which module is meant ----------------------------------------------------------------------------------------------


def test_modules_beside_the_script_precede_installed_ones(stage, tmp_path):
    """As for any Python script; only the standard library cannot be replaced."""
    body = "import json, pydantic\n\ndef workflow(prompt):\n    return pydantic.WHO + json.dumps(1)\n"
    folder = lay(tmp_path / "a", main=body, pydantic="WHO = 'beside'\n", json="dumps = None\n")
    assert stage(folder / "main.py").run().summary == "beside1"


@pytest.mark.parametrize("line", ["import importlib", "import importlib.util", "from importlib import import_module"])
def test_import_module_finds_modules_beside_the_script(stage, tmp_path, line):
    call = "import_module" if line.startswith("from") else "importlib.import_module"
    body = f"{line}\n\ndef workflow(prompt):\n    return {call}('helpers.deep').WHO + {call}('json').dumps(1)\n"
    for name in ("a", "b"):
        lay(tmp_path / name, main=body)
        lay(tmp_path / name / "helpers", __init__="", deep=f"WHO = '{name}'\n")
    assert [stage(tmp_path / name / "main.py").run().summary for name in ("a", "b")] == ["a1", "b1"]
    assert "helpers" not in sys.modules


def test_changed_helper_is_named_in_the_question(stage, tmp_path):
    body = "from helpers import WHO\n\ndef workflow(prompt):\n    step(str, WHO)\n    pause('Go on?')\n"
    folder = lay(tmp_path / "a", main=body, helpers="WHO = 'v1'\n")
    s = stage(folder / "main.py").run()
    (folder / "helpers.py").write_text("WHO = 'v2'\n")
    s.approve()
    assert s.waiting.text.splitlines()[0] == (
        "main.py is as it was: a module beside it was changed while PROJ-1 waited (helpers.py), or it does not call the same "
        "every time. Use now(), random(), uuid() and step() for what changes."
    )
    (folder / "helpers.py").write_text("WHO = 'v1'\n")
    assert s.answer("retry").state == "done"


# --- config() beside the functions --------------------------------------------------------------------------------------

TOP = "config(human_timeout='7d', on_timeout='notify_again')\n\ndef workflow(prompt):\n    pause('Go on?')\n"


def days(s):
    q = s.waiting.question
    return (datetime.fromisoformat(q["timeout_at"]) - datetime.fromisoformat(q["asked_at"])).days


def test_config_beside_the_functions_is_the_runs(stage, tmp_path):
    folder = lay(tmp_path / "a", main=TOP, other="def workflow(prompt):\n    pause('Go on?')\n")
    assert days(stage(folder / "main.py").run()) == 7
    assert days(stage(folder / "other.py").run()) == 1, "each run has its own"
    s = stage(TOP).run().advance(days=8)
    assert s.state == "human" and s.waiting.text == "Go on?"


def test_invalid_config_is_reported_before_the_run(tmp_path):
    lay(tmp_path, main="config(patience=1)\n" + TOP)
    with pytest.raises(Invalid, match=r"main.py cannot be loaded: line 1: Invalid: config\(\) has no setting 'patience'"):
        script.must_read("main.py", tmp_path)


def test_a_helper_module_changes_no_global_configuration(tmp_path):
    lay(tmp_path, main="import helpers\n" + TOP, helpers="from yourturn.flow import config\nconfig(human_timeout='1h')\n")
    with pytest.raises(Invalid, match="outside of a workflow"):
        script.must_read("main.py", tmp_path)
