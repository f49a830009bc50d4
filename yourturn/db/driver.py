"""psycopg, imported in less time: a command on PostgreSQL mostly waits for that.

What we use of it is the part that speaks to the server, psycopg.pq, and its errors (line.py). So the package stands there, but
its own file, which loads and registers all the rest, is run when somebody asks it for more than its modules. From then on
it is as if it had been imported the usual way, and nobody else can tell: it is the same module all the time.

Even that part loads importlib.metadata, and with it parsers of mail and of zip files, to find out its own version; ctypes, to
find a library that it brings along; asyncio, for the name of one error; ssl, for what its C part sets up; logging, for what
is never said. While it is being imported, others stand in for these: they know what it asks them at once, and get the real
module for whatever else somebody wants of them. And nothing that an import makes is garbage, so nobody looks for any meanwhile.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

# --- who stands in --------------------------------------------------------------------------------------------------------


class _Later(ModuleType):
    """Is imported when somebody uses it; and at once, if that is another thread, which happens to import it now."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._thread = threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and self._thread == threading.get_ident():
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        real = importlib.import_module(self.__name__)
        if hasattr(real, name) or name.startswith("__"):
            return getattr(real, name)
        return importlib.import_module(f"{self.__name__}.{name}")


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


class _Cancelled(BaseException):
    """Nobody raises it: whoever could has the real one (_run)."""


class _Async(_Later):
    def __getattr__(self, name: str) -> Any:
        ours = name == "CancelledError" and self._thread == threading.get_ident()
        return _Cancelled if ours else super().__getattr__(name)


class _Secure(_Later):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        importlib.import_module("_ssl")


class _Logger:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("logging").getLogger(self._name), name)


class _Logs(_Later):
    getLogger = _Logger


_SORTS = {
    "importlib.metadata": _Versions, "ctypes": _Later, "ctypes.util": _Later, "asyncio": _Async, "ssl": _Secure, "logging": _Logs,
}  # fmt: skip


def _load(*names: str) -> list[Any]:
    standing_in = {name: sort(name) for name, sort in _SORTS.items() if name not in sys.modules}
    sys.modules.update(standing_in)
    if "importlib.metadata" in standing_in:
        importlib.metadata = standing_in["importlib.metadata"]
    looking = gc.isenabled()
    gc.disable()
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        if looking:
            gc.enable()
        for name, module in standing_in.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
        if getattr(importlib, "metadata", None) is standing_in.get("importlib.metadata", 0):
            del importlib.metadata


# --- the package ----------------------------------------------------------------------------------------------------------

_running, _under_way = threading.RLock(), set[ModuleType]()


class _Package(ModuleType):
    """Its own file is run when somebody asks for more than its modules."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__all__", "__version__"):
            raise AttributeError(name)
        if PathFinder.find_spec(f"{self.__name__}.{name}", self.__path__):
            return importlib.import_module(f"{self.__name__}.{name}")
        with _running:
            if type(self) is _Package and self not in _under_way:
                _run(self)
        return ModuleType.__getattribute__(self, name)

    def __dir__(self) -> list[str]:
        return sorted(self.__dict__) if self.__all__ else []


def _run(package: Any) -> None:
    _under_way.add(package)
    try:
        real = importlib.import_module("asyncio").CancelledError
        errors.CancelledError = real
        errors._NO_TRACEBACK = tuple(real if one is _Cancelled else one for one in getattr(errors, "_NO_TRACEBACK", ()))
        package.__spec__.loader.exec_module(package)
        package.__class__ = ModuleType
    finally:
        _under_way.clear()


def _stand_there() -> None:
    spec = PathFinder.find_spec("psycopg")
    if "psycopg" not in sys.modules and spec is not None and spec.origin and spec.submodule_search_locations:
        package = sys.modules["psycopg"] = _Package("psycopg")
        package.__spec__, package.__loader__, package.__package__ = spec, spec.loader, spec.name
        package.__file__, package.__path__ = spec.origin, list(spec.submodule_search_locations)


_stand_there()
try:
    pq, errors = _load("psycopg.pq", "psycopg.errors")
except BaseException:
    sys.modules.pop("psycopg", None)
    raise
