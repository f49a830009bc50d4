"""psycopg, imported in less time: a command on PostgreSQL mostly waits for that.

It loads importlib.metadata, and with it parsers of mail and of zip files, to find out its own version; and ctypes, to find a
library that it brings along. While it is being imported, others stand in for these: they know what it asks them at once, and
get the real module for whatever else somebody wants of them. And nothing that an import makes is garbage, so nobody looks for
any meanwhile.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """Is imported when somebody uses it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        real = importlib.import_module(self.__name__)
        return getattr(real, name) if hasattr(real, name) else importlib.import_module(f"{self.__name__}.{name}")


class _Versions(_Later):
    def version(self, name: str) -> str:
        start, end = name.replace("-", "_") + "-", ".dist-info"
        for folder in sys.path:
            try:
                found = [file for file in os.listdir(folder or ".") if file.startswith(start)]  # noqa: PTH208
            except OSError:
                continue
            for file in found:
                if file.endswith(end):
                    return file[len(start) : -len(end)]
        answer: str = self.__getattr__("version")(name)
        return answer


def _import() -> ModuleType:
    sorts = {"importlib.metadata": _Versions, "ctypes": _Later, "ctypes.util": _Later}
    standing_in = {name: sort(name) for name, sort in sorts.items() if name not in sys.modules}
    sys.modules.update(standing_in)
    if "importlib.metadata" in standing_in:
        importlib.metadata = standing_in["importlib.metadata"]
    looking = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module("psycopg")
    finally:
        if looking:
            gc.enable()
        for name, module in standing_in.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
        if getattr(importlib, "metadata", None) is standing_in.get("importlib.metadata", 0):
            del importlib.metadata


psycopg = _import()
errors = importlib.import_module("psycopg.errors")
