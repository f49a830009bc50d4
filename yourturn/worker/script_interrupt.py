"""Interrupts the threads of a script that does not come to its next durable call.

A worker that is told to stop leaves a script at its next durable call. A script that loops or blocks between two calls never
gets there, and Python has no public way to end a thread of the same process. A process per script would have one, but costs an
interpreter and a desk connection for each run. So, in this module only, two CPython functions are used:

- `sys._current_frames()` gives the stack of each thread. A thread counts as being in the script if its innermost frame that is
  ours or the script's is the script's; a library belongs to its caller. Our own code (a write to the desk, say) is never
  interrupted, so that no transaction is torn. The function of a `step()` belongs to the script even where it calls our code
  again, because it may wait there for a person.
- `PyThreadState_SetAsyncExc` raises an exception in a thread at its next bytecode. It does not reach a thread that is blocked in
  C code (a socket, a sleep).

After GRACE seconds without a durable call each thread in the script gets `Halted`, again and again; after twice that the
script is abandoned, as a daemon thread. Abandoning is safe because the claim is given back: the desk refuses whatever the thread
still tries to write. On another interpreter the two functions would have to be replaced; without them the only loss is that a
script is abandoned without the exception.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from ..flow import script_modules
from ..flow.results import Halted

GRACE = 5.0  #: seconds that a script has to come to its next call
PACKAGE = str(Path(__file__).parents[1])
_LUA = str(Path(PACKAGE, "flow", "lua.py"))  #: our module that runs a script's Lua code
_STEP = (str(Path(PACKAGE, "flow", "api.py")), "_outcome")  #: our function that calls the function of a step()


def wait(ended: threading.Event, stop: threading.Event, name: str) -> bool:
    """Wait until the script of the thread `name` has ended. False: it did not react to `stop`, and is abandoned."""
    since: float | None = None
    while not ended.wait(0.05 if since else 0.25):
        now = time.monotonic()
        threads = _in_script(name) if stop.is_set() else []
        if not threads:
            since = None
            continue
        since = since or now
        if now - since >= 2 * GRACE:
            return False
        if now - since >= GRACE:
            for thread in threads:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Halted))
    return True


def _in_script(name: str) -> list[int]:
    """The threads that run the script's own code now, or a library that it called."""
    frames = sys._current_frames()
    threads = [t for t in threading.enumerate() if t.name == name or t.name.startswith(f"{name}/")]
    return [t.ident for t in threads if t.ident in frames and _is_script(frames[t.ident])]


def _is_script(frame: FrameType | None) -> bool:
    innermost: bool | None = None
    while frame is not None:
        code = frame.f_code
        if (code.co_filename, code.co_name) == _STEP:
            return True
        if innermost is None and code.co_filename.startswith(PACKAGE):
            innermost = code.co_filename == _LUA
        elif innermost is None and str(frame.f_globals.get("__name__")).startswith(script_modules.PREFIX):
            innermost = True
        frame = frame.f_back
    return bool(innermost)
