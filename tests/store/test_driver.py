"""psycopg is imported lightly, and nobody else notices."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("importlib.metadata", "ctypes", "ctypes.util", "email.message")

_SCRIPT = f"""
import json, sys
import yourturn.store.postgres, psycopg, psycopg_binary, psycopg.pq.misc
light = [name for name in {HEAVY} if name in sys.modules]
looked_up = psycopg.pq.misc.ctypes.util.find_library.__module__
import ctypes.util, gc, importlib, importlib.metadata
real = [ctypes.util.__file__, importlib.metadata.__file__, importlib.metadata.distribution("psycopg").version]
said = [psycopg.__version__, psycopg_binary.__version__]
print(json.dumps([light, looked_up, real, said, gc.isenabled()]))
"""


def test_what_stands_in_is_gone_afterwards():
    light, looked_up, real, said, looking = json.loads(subprocess.check_output([sys.executable, "-c", _SCRIPT]))
    assert light == [], "none of it was needed"
    assert looked_up == "ctypes.util"
    assert real[0].endswith("ctypes/util.py") and real[1].endswith("metadata/__init__.py")
    assert said == [real[2], real[2]]
    assert looking
